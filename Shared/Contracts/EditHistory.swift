public import JSONValue
public import PhotoModel

/// `edits.history`: the edits of an asset, as far back as change records are retained.
public struct EditHistory: Request {
    public static let method = "edits.history"
    /// The asset.
    public var asset: ObjectID
    /// The service responds once it has reached this token; nil to respond at once.
    public var atLeast: ChangeToken?

    public init(asset: ObjectID, atLeast: ChangeToken? = nil) {
        self.asset = asset
        self.atLeast = atLeast
    }

    public static let table = parameters(
        "The edits of an asset, the oldest first, as far back as change records are retained.",
        blank: EditHistory(asset: .none),
        [.asset(\.asset), .atLeast(\.atLeast)]
    )

    /// The edits of an asset.
    public struct Result: JSONTabled {
        /// The asset.
        public var asset: ObjectID
        /// Content revision after the last step.
        public var contentRevision: Revision
        /// The oldest first.
        public var steps: [EditStep]
        /// True if the change record of the asset's creation is still retained.
        public var isComplete: Bool

        /// The maximum number of steps.
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
