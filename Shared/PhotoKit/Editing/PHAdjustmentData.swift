public import Foundation

/// The description of an edit, from which it can be resumed: `PHAdjustmentData` (S-88).
public final class PHAdjustmentData: Sendable, Hashable {
    /// The program's name for the format, in reverse DNS notation.
    public let formatIdentifier: String
    public let formatVersion: String
    /// The program's description of the edit, at most 2 MiB. The library does not interpret it.
    public let data: Data

    public init(formatIdentifier: String, formatVersion: String, data: Data) {
        self.formatIdentifier = formatIdentifier
        self.formatVersion = formatVersion
        self.data = data
    }

    public static func == (left: PHAdjustmentData, right: PHAdjustmentData) -> Bool {
        left.formatIdentifier == right.formatIdentifier && left.formatVersion == right.formatVersion
            && left.data == right.data
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(formatIdentifier)
        hasher.combine(formatVersion)
        hasher.combine(data)
    }
}
