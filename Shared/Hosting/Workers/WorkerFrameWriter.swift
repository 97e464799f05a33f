import CProcess
import Glibc
import JSONValue

/// Writes one frame to a socket, blocking or not.
struct WorkerFrameWriter {
    private var parts: ArraySlice<[UInt8]>
    private var offset = 0
    private var files: [Int32]
    /// True if any byte was sent.
    private(set) var hasBegun = false

    /// Creates a writer of a frame; the descriptors must stay open until ``isDone``.
    init(_ frame: WorkerFrame, files: [Int32] = []) {
        self.parts = ([frame.head] + frame.attachments)[...]
        self.files = files
    }

    var isDone: Bool { parts.isEmpty }

    /// Sends as many bytes as the socket accepts.
    mutating func send(to socket: Int32) throws(WorkerChannelError) {
        while let part = parts.first {
            guard offset < part.count else {
                parts.removeFirst()
                offset = 0
                continue
            }
            let start = offset
            let sending = files
            var problem: Int32 = 0
            let count = part.withUnsafeBytes { bytes in
                let rest = UnsafeRawBufferPointer(rebasing: bytes[start...])
                let count = safelight_send(socket, rest.baseAddress, rest.count, sending, sending.count)
                problem = count < 0 ? errno : 0
                return count
            }
            if problem == EAGAIN { return }
            if problem == EPIPE || problem == ECONNRESET { throw .closed }
            guard problem == 0 else { throw .system(problem) }
            hasBegun = true
            files = []
            offset += count
        }
    }
}
