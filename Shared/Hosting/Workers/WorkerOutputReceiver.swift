import Basics
import Glibc

/// Writes the records that a worker sends through the pipe of a job into a file, on its own thread.
final class WorkerOutputReceiver: Sendable {
    /// The reason why the file is incomplete.
    enum Problem: Sendable {
        /// The worker sent invalid records, or more than it may.
        case malformed
        case notWritten(Int32)
    }

    private let pipe: Int32
    private let file: Int32
    private let maxBytes: Int64
    private let progress: @Sendable (Int64) -> Void
    private let ended = Promise<Problem?>()
    /// Signalled when the job has ended: the worker has written everything, so only the rest in the pipe is read, even
    /// if the worker keeps its end open.
    let jobEnded = EventDescriptor()

    /// The maximum number of bytes that are read after the job: more than a pipe holds.
    private static let maxLeft = 2 << 20

    /// - Parameters:
    ///   - pipe: the end that is read; it is closed when the thread ends
    ///   - progress: called with the microseconds of output so far
    init(pipe: Int32, file: Int32, maxBytes: Int64, progress: @escaping @Sendable (Int64) -> Void) {
        self.pipe = pipe
        self.file = file
        self.maxBytes = maxBytes
        self.progress = progress
    }

    /// Starts the thread, which ends when the other end of the pipe is closed, or after the job when the pipe is empty.
    ///
    /// - Returns: false if the system cannot start one; the pipe stays open then
    func start() -> Bool {
        DetachedThread.start { [self] in
            let problem = receive()
            // The worker's next record fails, if it still has some.
            close(pipe)
            ended.fulfill(problem)
        }
    }

    /// Waits until everything is written; returns the reason if it is not. May be called once.
    func end() async -> Problem? { await ended.value() }

    private func receive() -> Problem? {
        var left = Self.maxLeft
        while true {
            let head = read(WorkerOutputRecord.headBytes, &left)
            if head.isEmpty { return nil }
            switch WorkerOutputRecord(head) {
            case .progress(let time): progress(time)
            case .bytes(let position, let count):
                guard position <= maxBytes - Int64(count) else { return .malformed }
                let bytes = read(count, &left)
                guard bytes.count == count else { return .malformed }
                if let problem = write(bytes, at: position) { return problem }
            case nil: return .malformed
            }
        }
    }

    /// Reads a number of bytes; fewer at the end.
    ///
    /// - Parameter left: the bytes that may be read after the job
    private func read(_ count: Int, _ left: inout Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, used in
            while used < count {
                var polled = [
                    pollfd(fd: pipe, events: Int16(POLLIN), revents: 0),
                    pollfd(fd: jobEnded.descriptor, events: Int16(POLLIN), revents: 0),
                ]
                while poll(&polled, 2, -1) < 0, errno == EINTR {}
                let hasJobEnded = polled[1].revents != 0
                if hasJobEnded, polled[0].revents == 0 || left <= 0 { return }
                let received = Glibc.read(pipe, buffer.baseAddress?.advanced(by: used), count - used)
                if received < 0, errno == EINTR { continue }
                guard received > 0 else { return }
                used += received
                if hasJobEnded { left -= received }
            }
        }
    }

    private func write(_ bytes: [UInt8], at position: Int64) -> Problem? {
        bytes.withUnsafeBytes { buffer in
            var sent = 0
            while sent < buffer.count {
                let count = pwrite(
                    file,
                    buffer.baseAddress?.advanced(by: sent),
                    buffer.count - sent,
                    off_t(position) + off_t(sent)
                )
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { return .notWritten(errno) }
                sent += count
            }
            return nil
        }
    }
}
