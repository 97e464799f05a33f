import Glibc

/// Tells whoever started this program that it takes requests: one line on a descriptor, which is then closed.
public struct ReadySignal: Sendable {
    private let descriptor: Int32?

    /// A signal on an inherited descriptor; `nil` says nothing.
    ///
    /// Standard input, output and error are never closed: `--ready-fd 1` is for people.
    public init(descriptor: Int32?) {
        self.descriptor = descriptor
        if let descriptor, descriptor > 2 {
            // Workers must not inherit it: its reader waits for the end of it too.
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        }
    }

    /// Says it, once, after everything is bound.
    public func send() {
        guard let descriptor, descriptor > 0 else { return }
        let line = Array("ready\n".utf8)
        _ = write(descriptor, line, line.count)
        if descriptor > 2 { close(descriptor) }
    }
}
