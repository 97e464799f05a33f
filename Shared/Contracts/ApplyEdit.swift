public import JSONValue
public import PhotoModel

/// `edits.apply` for one asset: renders adjustments and commits them.
public struct ApplyEdit: Request {
    public typealias Result = EditOutcome
    public static let method = "edits.apply"
    /// The asset.
    public var asset: ObjectID
    /// The operations, in order.
    public var adjustments: AdjustmentList
    /// Options of ImageMagick's `convert`, which become operations after `adjustments`; nil for none.
    public var magick: MagickOptions?
    /// The way the operations are combined with the current ones: replacing them, or appended to them.
    public var mode: AdjustmentMode
    /// The engine that renders the pixels; nil for the engine that the adjustments name, or else the editor's setting.
    public var engine: RenderEngine?
    /// Content revision that the asset must have, else the request is refused with conflict; nil to accept any.
    public var ifContentRevision: Revision?
    /// Revision that the asset must have, else the request is refused with conflict, and the error's data has the
    /// current one; nil to accept any.
    public var ifRevision: Revision?
    /// True if an original that is in remote storage may be downloaded.
    public var isNetworkAccessAllowed = false
    /// Name of the client program.
    public var client: String
    /// Transaction id, chosen by the client; nil if the write is not idempotent.
    public var transaction: String?

    public init(
        asset: ObjectID,
        adjustments: AdjustmentList,
        magick: MagickOptions? = nil,
        mode: AdjustmentMode = .replace,
        engine: RenderEngine? = nil,
        ifContentRevision: Revision? = nil,
        ifRevision: Revision? = nil,
        client: String = "",
        transaction: String? = nil
    ) {
        self.asset = asset
        self.adjustments = adjustments
        self.magick = magick
        self.mode = mode
        self.engine = engine
        self.ifContentRevision = ifContentRevision
        self.ifRevision = ifRevision
        self.client = client
        self.transaction = transaction
    }

    public static let table = parameters(
        "Renders adjustments of an asset and commits them in one transaction.",
        blank: ApplyEdit(asset: .none, adjustments: AdjustmentList(operations: [])),
        [
            .asset(\.asset),
            .required("adjustments", \.adjustments, .adjustments, "The operations, in order."),
            .magick(\.magick),
            .mode(\.mode),
            .engine(\.engine),
            .ifContentRevision(\.ifContentRevision),
            .optional(
                "ifRevision",
                \.ifRevision,
                .revision,
                "Refused with conflict if the asset has another revision, which is in the error's data."
            ),
            .networkAccess(\.isNetworkAccessAllowed),
            .client(\.client),
            .transaction(\.transaction),
        ]
    )
}
