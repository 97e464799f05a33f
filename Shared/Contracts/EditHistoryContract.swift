public import JSONValue
public import PhotoModel

/// A step of an asset's edit history.
public struct EditStep: JSONTabled, Hashable {
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
    /// Identity of the client.
    public var identity: String
    /// Name of the client program.
    public var client: String?
    /// Adjustment data format.
    public var formatIdentifier: String?
    /// Adjustment data version.
    public var formatVersion: String?
    /// SHA-256 of the adjustment data.
    public var adjustmentData: String?
    /// The adjustment list; nil unless it is the editor's own format and still stored.
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
            .required("date", \.date, .integer(), "Commit date, microseconds since 1970."),
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

/// `edits.history`: the edits of an asset, as far back as change records are retained.
public struct EditHistory: Request {
    public static let method = "edits.history"
    /// The asset.
    public var asset: ObjectID

    public init(asset: ObjectID) { self.asset = asset }

    public static let table = parameters(
        "The edits of an asset, the oldest first, as far back as change records are retained.",
        blank: EditHistory(asset: .none),
        [.asset(\.asset)]
    )

    public struct Result: JSONTabled {
        /// The asset.
        public var asset: ObjectID
        /// Content revision after the last step.
        public var contentRevision: Revision
        /// The oldest first.
        public var steps: [EditStep]
        /// True if the change record of the asset's creation is still retained.
        public var isComplete: Bool

        public static let maxSteps = 10_000

        public init(asset: ObjectID, contentRevision: Revision, steps: [EditStep], isComplete: Bool) {
            self.asset = asset
            self.contentRevision = contentRevision
            self.steps = steps
            self.isComplete = isComplete
        }

        public static let table = JSONTable(
            "EditSteps",
            "The edits of an asset.",
            unknown: .ignored,
            blank: Result(asset: .none, contentRevision: Revision(0), steps: [], isComplete: false),
            [
                .asset(\.asset),
                .required("contentRevision", \.contentRevision, .revision, "Content revision after the last step."),
                .required("steps", \.steps, .list(of: .object(EditStep.self), limit: maxSteps), "The oldest first."),
                .required("isComplete", \.isComplete, .flag, "False if older changes are no longer retained."),
            ]
        )
    }
}

/// `edits.undo`: restores an asset to a step of its edit history, as a new transaction.
public struct UndoEdits: Request {
    public typealias Result = EditOutcome
    public static let method = "edits.undo"
    /// The asset.
    public var asset: ObjectID
    /// The step to restore; 0 is the original, nil the step before the last.
    public var step: Int?
    /// Content revision that the asset must have, else the request is refused with conflict; nil to accept any.
    public var ifContentRevision: Revision?
    /// Name of the client program.
    public var client: String
    /// Transaction id, chosen by the client; nil if the write is not idempotent.
    public var transaction: String?

    public init(
        asset: ObjectID,
        step: Int? = nil,
        ifContentRevision: Revision? = nil,
        client: String = "",
        transaction: String? = nil
    ) {
        self.asset = asset
        self.step = step
        self.ifContentRevision = ifContentRevision
        self.client = client
        self.transaction = transaction
    }

    public static let table = parameters(
        "Restores an asset to a step of its edit history, as a new transaction.",
        blank: UndoEdits(asset: .none),
        [
            .asset(\.asset),
            .optional("step", \.step, .count(0...Int.max), "0: the original; absent: the step before the last."),
            .ifContentRevision(\.ifContentRevision),
            .client(\.client),
            .transaction(\.transaction),
        ]
    )
}
