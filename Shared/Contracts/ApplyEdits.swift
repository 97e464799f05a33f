public import JSONValue
public import PhotoModel

/// `edits.apply` for one asset, several assets or a fetch, with one transaction for each asset.
///
/// ``ApplyEdit`` is the same request for one asset.
public struct ApplyEdits: Request {
    public typealias Result = EditOutcomes
    public static let method = ApplyEdit.method
    /// One asset. Give exactly one of asset, assets and fetch.
    public var asset: ObjectID?
    /// Several assets.
    public var assets: [ObjectID]
    /// The assets of a fetch result.
    public var fetch: FetchDescription?
    /// The operations, in order.
    public var adjustments: AdjustmentList
    /// Options of ImageMagick's `convert`, which become operations behind `adjustments`; nil for none.
    public var magick: MagickOptions?
    /// The way the operations are combined with the present ones: replacing them, or appended to them.
    public var mode: AdjustmentMode
    /// The engine that renders the pixels; nil for the engine that the adjustments name, or else the editor's setting.
    public var engine: RenderEngine?
    /// For one asset: refused with conflict if it has another content revision.
    public var ifContentRevision: Revision?
    /// For one asset: refused with conflict if it has another revision, which is in the error's data.
    public var ifRevision: Revision?
    /// True to insert the result of `edits.suggest` before the operations, as explicit values.
    public var enhance: Bool
    /// Priority of the render.
    public var priority: EditPriority
    /// True if the request is only validated.
    public var dryRun: Bool
    /// True if originals that are in remote storage may be downloaded.
    public var isNetworkAccessAllowed = false
    /// Name of the client program.
    public var client: String
    /// Transaction id, chosen by the client; with several assets each transaction's id is derived from it.
    public var transaction: String?

    /// The maximum number of assets in one request.
    public static let maxAssets = 10_000

    public init(
        asset: ObjectID? = nil,
        assets: [ObjectID] = [],
        fetch: FetchDescription? = nil,
        adjustments: AdjustmentList = AdjustmentList(),
        magick: MagickOptions? = nil,
        mode: AdjustmentMode = .replace,
        engine: RenderEngine? = nil,
        ifContentRevision: Revision? = nil,
        ifRevision: Revision? = nil,
        enhance: Bool = false,
        priority: EditPriority = .normal,
        dryRun: Bool = false,
        client: String = "",
        transaction: String? = nil
    ) {
        self.asset = asset
        self.assets = assets
        self.fetch = fetch
        self.adjustments = adjustments
        self.magick = magick
        self.mode = mode
        self.engine = engine
        self.ifContentRevision = ifContentRevision
        self.ifRevision = ifRevision
        self.enhance = enhance
        self.priority = priority
        self.dryRun = dryRun
        self.client = client
        self.transaction = transaction
    }

    public static let table = parameters(
        "Renders adjustments and commits them in one transaction for each asset.",
        blank: ApplyEdits(),
        [
            .optional("asset", \.asset, .id(.asset), "One asset. Give exactly one of asset, assets and fetch."),
            .defaulted("assets", \.assets, .list(of: .id(.asset), limit: maxAssets), "Several assets.", default: []),
            .optional("fetch", \.fetch, .fetch(), "The assets of a fetch result."),
            .defaulted(
                "adjustments",
                \.adjustments,
                .adjustments,
                "The operations, in order.",
                default: AdjustmentList()
            ),
            .magick(\.magick),
            .mode(\.mode),
            .engine(\.engine),
            .optional(
                "ifContentRevision",
                \.ifContentRevision,
                .revision,
                "For one asset: refused with conflict if it has another content revision."
            ),
            .optional(
                "ifRevision",
                \.ifRevision,
                .revision,
                "For one asset: refused with conflict if it has another revision, which is in the error's data."
            ),
            .defaulted(
                "enhance",
                \.enhance,
                .flag,
                "Insert the result of edits.suggest before the operations, as explicit values.",
                default: false
            ),
            .priority(\.priority),
            .dryRun(\.dryRun),
            .networkAccess(\.isNetworkAccessAllowed),
            .client(\.client),
            .optional(
                "transaction",
                \.transaction,
                .text(maxBytes: 96),
                "Transaction id, chosen by the client; with several assets each transaction's id is derived from it."
            ),
        ]
    )
}
