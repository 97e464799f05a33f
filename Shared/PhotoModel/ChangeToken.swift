import JSONValue

/// A point in the history of a library: the history's id and the sequence of the last transaction seen (T-35).
///
/// Opaque to clients, which store it as text between runs. A library that was restored from a copy has a new history,
/// so that a token of the old one is recognized as expired and not mistaken for a position in the new one.
public struct ChangeToken: Sendable, Hashable, CustomStringConvertible {
    /// The id of the library's history: 32 hexadecimal digits.
    public let library: String
    /// The sequence of the last transaction seen.
    public let sequence: Int64

    public init(library: String, sequence: Int64) {
        self.library = library
        self.sequence = sequence
    }

    /// Parses a token; `nil` for text that cannot be one.
    public init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0].utf8.count == 32, parts[0].allSatisfy({ $0.isHexDigit && $0.isASCII }),
            parts[1].utf8.count <= 19, parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let sequence = Int64(parts[1])
        else { return nil }
        self.init(library: String(parts[0]), sequence: sequence)
    }

    public var description: String { "\(library).\(sequence)" }

    /// A token of no history.
    public static let none = ChangeToken(library: String(repeating: "0", count: 32), sequence: 0)
}
