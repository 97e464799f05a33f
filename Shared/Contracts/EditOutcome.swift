public import JSONValue
public import PhotoModel

/// The outcome of an edit of one asset.
public struct EditOutcome: JSONTabled {
    /// The asset.
    public var asset: ObjectID
    /// Token of the transaction.
    public var token: ChangeToken
    /// Sequence of the transaction.
    public var sequence: Int64
    /// True if anything changed.
    public var isChanged: Bool
    /// True if the original has a gain map and the edited version has none, because an effect or a frame moved pixels
    /// that the map would have to follow, or another frame of the video became the still. Not reported
    /// for a repeat of a finished transaction.
    public var dropsGainMap = false

    public init(asset: ObjectID, token: ChangeToken, isChanged: Bool) {
        self.asset = asset
        self.token = token
        self.sequence = token.sequence
        self.isChanged = isChanged
    }

    public static let table = JSONTable(
        "EditOutcome",
        "The transaction that committed an edit.",
        unknown: .ignored,
        blank: EditOutcome(asset: .none, token: .none, isChanged: false),
        [
            .asset(\.asset),
            .required("token", \.token, .token, "Token of the transaction."),
            .required("sequence", \.sequence, .integer(0...Int64.max), "Sequence of the transaction."),
            .required("isChanged", \.isChanged, .flag, "True if anything changed."),
            .defaulted(
                "dropsGainMap",
                \.dropsGainMap,
                .flag,
                "True if the high dynamic range of the original was lost by an effect or a frame.",
                default: false
            ),
        ]
    )
}
