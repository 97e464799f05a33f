public import JSONValue
public import PhotoModel

/// One step of the history of an asset's edits.
public struct EditStep: JSONTabled, Hashable {
    public enum Kind: String, Sendable, CaseIterable {
        case edit, revert
    }

    /// From 1; 0 is the original.
    public var step: Int
    public var kind: Kind
    public var sequence: Int64
    /// Microseconds since 1970.
    public var date: Int64
    /// Who made it.
    public var identity: String
    public var client: String?
    public var formatIdentifier: String?
    public var formatVersion: String?
    /// SHA-256 of the adjustment data.
    public var adjustmentData: String?
    /// The list, where it is the editor's own and still kept.
    public var adjustments: JSON?
    /// SHA-256 of what it began with.
    public var base: String?
    /// SHA-256 of its render.
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
        "One step of an asset's edits.",
        unknown: .ignored,
        blank: EditStep(step: 0, kind: .edit, sequence: 0, date: 0, identity: ""),
        [
            .required("step", \.step, .count(0...Int.max), "From 1; 0 is the original."),
            .required("kind", \.kind, .name(Kind.self), "An edit, or back to the original."),
            .required("sequence", \.sequence, .integer(0...Int64.max), "The transaction."),
            .required("date", \.date, .integer(), "When it was committed, microseconds since 1970."),
            .required("identity", \.identity, .text(maxBytes: 256), "Who made it."),
            .optional("client", \.client, .text(maxBytes: 128), "The name the client gave itself."),
            .optional("formatIdentifier", \.formatIdentifier, .text(maxBytes: 256), "Of the adjustment data."),
            .optional("formatVersion", \.formatVersion, .text(maxBytes: 64), "Of the adjustment data."),
            .optional("adjustmentData", \.adjustmentData, .text(maxBytes: 64), "SHA-256 of the adjustment data."),
            .optional("adjustments", \.adjustments, .any, "The list, where it is the editor's own and still kept."),
            .optional("base", \.base, .text(maxBytes: 64), "SHA-256 of what it began with."),
            .optional("render", \.render, .text(maxBytes: 64), "SHA-256 of what it made."),
        ]
    )
}

/// `edits.history`: the edits of an asset, as far back as changes are kept.
public struct EditHistory: Request {
    public static let method = "edits.history"
    public var asset: ObjectID

    public init(asset: ObjectID) { self.asset = asset }

    public static let table = parameters(
        "The edits of an asset, the oldest first, as far back as the library keeps its changes.",
        blank: EditHistory(asset: .none),
        [.asset(\.asset)]
    )

    public struct Result: JSONTabled {
        public var asset: ObjectID
        public var contentRevision: Revision
        public var steps: [EditStep]
        /// Whether the first change of the asset is still kept.
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
                .required("contentRevision", \.contentRevision, .revision, "Its pixels after the last step."),
                .required("steps", \.steps, .list(of: .object(EditStep.self), limit: maxSteps), "The oldest first."),
                .required("isComplete", \.isComplete, .flag, "False where older changes are no longer kept."),
            ]
        )
    }
}

/// `edits.undo`: back to how an asset was after a step of its history; a new change like any other.
public struct UndoEdits: Request {
    public typealias Result = EditOutcome
    public static let method = "edits.undo"
    public var asset: ObjectID
    /// 0 is the original; nil: the step before the last.
    public var step: Int?
    public var ifContentRevision: Revision?
    public var client: String
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
        "Takes an asset back to how it was after a step of its history; a new change like any other.",
        blank: UndoEdits(asset: .none),
        [
            .asset(\.asset),
            .optional("step", \.step, .count(0...Int.max), "0 is the original; absent: the step before the last."),
            .ifContentRevision(\.ifContentRevision),
            .client(\.client),
            .transaction(\.transaction),
        ]
    )
}
