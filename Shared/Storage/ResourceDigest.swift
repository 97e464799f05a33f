public import Basics

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
