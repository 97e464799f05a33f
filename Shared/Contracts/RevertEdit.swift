public import JSONValue
public import PhotoModel

/// `edits.revert`: reverts an asset to its original (S-92).
public struct RevertEdit: Request {
    public typealias Result = EditOutcome
    public static let method = "edits.revert"
    /// The asset.
    public var asset: ObjectID
    /// Content revision that the asset must have, else the request is refused with conflict; nil to accept any.
    public var ifContentRevision: Revision?
    /// The original that the asset shows afterwards, if it has a RAW and a compressed one; nil for the one that it
    /// shows now.
    public var base: OriginalChoice?
    /// Name of the client program.
    public var client: String
    /// Transaction id, chosen by the client; nil if the write is not idempotent.
    public var transaction: String?

    public init(
        asset: ObjectID,
        ifContentRevision: Revision? = nil,
        base: OriginalChoice? = nil,
        client: String = "",
        transaction: String? = nil
    ) {
        self.asset = asset
        self.ifContentRevision = ifContentRevision
        self.base = base
        self.client = client
        self.transaction = transaction
    }

    public static let table = parameters(
        "Discards all edits of an asset.",
        blank: RevertEdit(asset: .none),
        [
            .asset(\.asset),
            .ifContentRevision(\.ifContentRevision),
            .shownOriginal(\.base),
            .client(\.client),
            .transaction(\.transaction),
        ]
    )
}
