public import JSONValue
import PhotoModel

/// A step of an asset's edit history.
public struct EditStep: JSONTabled, Hashable {
    /// The kinds of steps.
    public enum Kind: String, Sendable, CaseIterable {
        case edit, revert
    }

    /// Number of the step, from 1; 0 is the original.
    public var step: Int
    /// Edit or revert.
    public var kind: Kind
    /// Sequence of the transaction.
    public var sequence: Int64
    /// Commit date, in microseconds since 1970.
    public var date: Int64
    /// Identity of the client; empty for the first step if the record of its change is no longer retained.
    public var identity: String
    /// Name of the client program.
    public var client: String?
    /// Adjustment data format.
    public var formatIdentifier: String?
    /// Adjustment data version.
    public var formatVersion: String?
    /// SHA-256 of the adjustment data.
    public var adjustmentData: String?
    /// The adjustment list; nil unless it is the editor's own format and still stored. The lists of a history have at
    /// most 4 MiB; beyond that, older steps have none.
    public var adjustments: JSON?
    /// SHA-256 of the bytes that the edit started from.
    public var base: String?
    /// SHA-256 of the rendered bytes.
    public var render: String?

    public init(step: Int, kind: Kind, sequence: Int64, date: Int64, identity: String) {
        self.step = step
        self.kind = kind
        self.sequence = sequence
        self.date = date
        self.identity = identity
    }

    public static let table = JSONTable(
        "EditStep",
        "A step of an asset's edit history.",
        unknown: .ignored,
        blank: EditStep(step: 0, kind: .edit, sequence: 0, date: 0, identity: ""),
        [
            .required("step", \.step, .count(0...Int.max), "Number of the step, from 1; 0 is the original."),
            .required("kind", \.kind, .name(Kind.self), "Edit or revert."),
            .required("sequence", \.sequence, .integer(0...Int64.max), "Sequence of the transaction."),
            .required("date", \.date, .date(), "Commit date, microseconds since 1970."),
            .required("identity", \.identity, .text(maxBytes: 256), "Identity of the client."),
            .optional("client", \.client, .text(maxBytes: 128), "Name of the client program."),
            .optional("formatIdentifier", \.formatIdentifier, .text(maxBytes: 256), "Adjustment data format."),
            .optional("formatVersion", \.formatVersion, .text(maxBytes: 64), "Adjustment data version."),
            .optional("adjustmentData", \.adjustmentData, .text(maxBytes: 64), "SHA-256 of the adjustment data."),
            .optional("adjustments", \.adjustments, .any, "The list, if it is the editor's own and still stored."),
            .optional("base", \.base, .text(maxBytes: 64), "SHA-256 of the bytes that the edit started from."),
            .optional("render", \.render, .text(maxBytes: 64), "SHA-256 of the rendered bytes."),
        ]
    )
}
