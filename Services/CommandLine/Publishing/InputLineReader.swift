import Dispatch
import SystemPackage

/// Reads the lines of a file or of standard input on a thread of its own, at most 64 lines ahead of the consumer.
struct InputLineReader: Sendable {
    /// The number of lines that may still be read ahead.
    private let capacity: DispatchSemaphore
    private let queue = DispatchQueue(label: "lines")
    private let path: String
    private let maxLineBytes: Int

    private static let maxLines = 64

    /// Creates a reader.
    ///
    /// - Parameter maxLineBytes: the maximum length of a line; a longer line is cut to `maxLineBytes + 1` bytes
    init(_ path: String, maxLineBytes: Int) {
        self.path = path
        self.maxLineBytes = maxLineBytes
        // Dispatch traps if a semaphore is deallocated with a value below its initial one, which is the case if the
        // consumer stops early.
        capacity = DispatchSemaphore(value: 0)
        for _ in 0..<Self.maxLines { capacity.signal() }
    }

    /// Returns the lines without their line ends, for one consumer, which calls ``finishLine()`` after each line.
    func lines() throws -> AsyncThrowingStream<[UInt8], any Error> {
        let file: FileDescriptor
        do {
            file = path == "-" ? .standardInput : try FileDescriptor.open(FilePath(path), .readOnly)
        } catch {
            throw CommandFailure(message: "\(path) cannot be read: \(error)", name: "not_read")
        }
        return AsyncThrowingStream { continuation in
            // If the consumer stops early, the reading thread must not wait for it.
            continuation.onTermination = { _ in capacity.signal() }
            queue.async {
                do {
                    try read(file) { line in
                        capacity.wait()
                        guard case .enqueued = continuation.yield(line) else { return false }
                        return true
                    }
                    continuation.finish()
                } catch {
                    continuation.finish(
                        throwing: CommandFailure(message: "\(path) cannot be read: \(error)", name: "not_read")
                    )
                }
                if path != "-" { try? file.close() }
            }
        }
    }

    /// Signals that a line was processed, so that another one can be read.
    func finishLine() { capacity.signal() }

    private func read(_ file: FileDescriptor, _ handle: ([UInt8]) -> Bool) throws {
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        var line: [UInt8] = []
        while true {
            let count = try chunk.withUnsafeMutableBytes { try file.read(into: $0) }
            if count == 0 { break }
            for byte in chunk[..<count] {
                if byte == UInt8(ascii: "\n") {
                    guard handle(line) else { return }
                    line = []
                } else if line.count <= maxLineBytes {
                    line.append(byte)
                }
            }
        }
        if !line.isEmpty { _ = handle(line) }
    }
}
