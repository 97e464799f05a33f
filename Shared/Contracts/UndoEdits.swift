public import JSONValue
public import PhotoModel

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
    /// True if an original that is in remote storage may be downloaded.
    public var isNetworkAccessAllowed = false
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
            .networkAccess(\.isNetworkAccessAllowed),
            .client(\.client),
            .transaction(\.transaction),
        ]
    )
}
