public import Basics
import Synchronization

/// The name of stored bytes: their SHA-256 as 64 lower-case hexadecimal digits.
public struct ResourceDigest: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The 64 digits.
    public let text: String

    /// Parses a digest; `nil` unless the text is exactly 64 lower-case hexadecimal digits.
    public init?(_ text: String) {
        guard text.utf8.count == 64, text.utf8.allSatisfy({ (48...57).contains($0) || (97...102).contains($0) }) else {
            return nil
        }
        self.text = text
    }

    /// Makes a digest from a finished hash.
    public init(_ digest: SHA256.Digest) {
        text = digest.hexadecimal
    }

    /// Computes the digest of bytes.
    public init(of bytes: some Sequence<UInt8>) {
        self.init(SHA256.hash(data: Array(bytes)))
    }

    /// The 64 digits.
    public var description: String { text }

    /// Compares the digits.
    public static func < (left: ResourceDigest, right: ResourceDigest) -> Bool { left.text < right.text }
}

/// Computes the digest of a file's bytes in steps, so that other work can run between them.
public final class FileHash: Sendable {
    /// The number of bytes that one step reads: 8 MiB.
    public static let stepBytes: Int64 = 8 << 20

    private struct State {
        var hash = SHA256()
        var offset: Int64 = 0
    }

    private let file: ResourceFile
    private let state = Mutex(State())

    /// Makes a hash of the bytes that the file had when it was opened.
    public init(of file: ResourceFile) { self.file = file }

    /// Reads the next bytes; blocks.
    ///
    /// - Returns: the digest when everything has been read; nil before.
    /// - Throws: ``StorageError`` if reading fails.
    public func next() throws(StorageError) -> ResourceDigest? {
        try state.withLock { (state) throws(StorageError) in
            let end = min(state.offset + Self.stepBytes, file.size)
            while state.offset < end {
                let count = Int(min(end - state.offset, Int64(ResourceStore.stepBytes)))
                let bytes = try file.read(offset: state.offset, count: count)
                // The file was truncated meanwhile: the digest is that of the remaining bytes.
                if bytes.isEmpty { return ResourceDigest(state.hash.finalize()) }
                state.hash.update(data: bytes)
                state.offset += Int64(bytes.count)
            }
            return state.offset < file.size ? nil : ResourceDigest(state.hash.finalize())
        }
    }
}
