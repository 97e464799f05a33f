import Glibc

/// A signal to the parent process that this program accepts requests: one line on a descriptor, which is then closed.
public struct ReadySignal: Sendable {
    private let descriptor: Int32?

    /// Creates a signal on an inherited descriptor; nil sends nothing.
    ///
    /// Standard input, output and error are never closed, so that `--ready-fd 1` can be used interactively.
    public init(descriptor: Int32?) {
        self.descriptor = descriptor
        if let descriptor, descriptor > 2 {
            // Workers must not inherit it, because its reader also waits for end of file.
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        }
    }

    /// Sends the signal; called once, after everything is bound.
    public func send() {
        guard let descriptor, descriptor > 0 else { return }
        let line = Array("ready\n".utf8)
        _ = write(descriptor, line, line.count)
        if descriptor > 2 { close(descriptor) }
    }
}
