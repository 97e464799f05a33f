import Glibc
import Logging

/// The standard output and error of a worker, logged line by line, at most ``bytesPerJob`` per job.
struct WorkerLogPipe {
    static let bytesPerJob = 8 << 10
    private static let longestLine = 1000

    let pipe: Int32
    private(set) var isOpen = true
    private var line: [UInt8] = []
    private var left = bytesPerJob
    private var dropped = 0

    init(pipe: Int32) {
        self.pipe = pipe
    }

    mutating func begin() {
        left = Self.bytesPerJob
    }

    mutating func drain(_ logger: Logger, pid: Int32) {
        var buffer = [UInt8](repeating: 0, count: 4096)
        // Bounded, because a worker that writes without end must not keep its thread from checking the deadline.
        for _ in 0..<16 where isOpen {
            let count = read(pipe, &buffer, buffer.count)
            if count < 0 {
                if errno == EINTR { continue }
                isOpen = errno == EAGAIN
                return
            }
            if count == 0 { isOpen = false }
            for byte in buffer[..<count] { append(byte, logger, pid) }
        }
    }

    private mutating func append(_ byte: UInt8, _ logger: Logger, _ pid: Int32) {
        guard left > 0 else {
            dropped += 1
            return
        }
        left -= 1
        if byte != UInt8(ascii: "\n") { line.append(byte) }
        if byte == UInt8(ascii: "\n") || line.count >= Self.longestLine || left == 0 { log(logger, pid) }
    }

    private mutating func log(_ logger: Logger, _ pid: Int32) {
        guard !line.isEmpty else { return }
        let text = String(decoding: line, as: UTF8.self)
        logger.notice("worker output", metadata: ["worker.pid": "\(pid)", "worker.text": "\(text)"])
        line = []
    }

    mutating func finish(_ logger: Logger, pid: Int32) {
        drain(logger, pid: pid)
        log(logger, pid)
        if dropped > 0 { logger.notice("worker output truncated", metadata: ["worker.dropped": "\(dropped)"]) }
        close(pipe)
        isOpen = false
    }
}
