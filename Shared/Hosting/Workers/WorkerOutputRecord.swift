import Glibc

/// A record in the pipe of a job whose result is a file, because a worker may not write files: a head of 16 bytes, and
/// the bytes of the file after it.
public enum WorkerOutputRecord {
    /// The number of bytes that follow, after their position in the file.
    case bytes(Int64, Int)
    /// The microseconds of output so far.
    case progress(Int64)

    static let headBytes = 16
    /// The maximum number of bytes that follow a head.
    static let maxBytes = 1 << 20

    /// Parses a head; nil if it is invalid.
    init?(_ head: [UInt8]) {
        guard head.count == Self.headBytes else { return nil }
        let (number, count) = head.withUnsafeBytes {
            ($0.loadUnaligned(as: Int64.self), $0.loadUnaligned(fromByteOffset: 8, as: Int64.self))
        }
        guard number >= 0 else { return nil }
        switch count {
        case -1: self = .progress(number)
        case 1...Int64(Self.maxBytes): self = .bytes(number, Int(count))
        default: return nil
        }
    }

    /// Writes the record; blocks. Returns false if the other end of the pipe is closed.
    public func write(
        to pipe: Int32,
        _ bytes: UnsafeRawBufferPointer = UnsafeRawBufferPointer(start: nil, count: 0)
    ) -> Bool {
        var head: (Int64, Int64) =
            switch self {
            case .bytes(let position, let count): (position, Int64(count))
            case .progress(let time): (time, -1)
            }
        return withUnsafeBytes(of: &head) { Self.write($0, to: pipe) } && Self.write(bytes, to: pipe)
    }

    private static func write(_ bytes: UnsafeRawBufferPointer, to pipe: Int32) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = Glibc.write(pipe, bytes.baseAddress?.advanced(by: sent), bytes.count - sent)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }
}
