public import JSONValue
public import PhotoModel

/// `edits.apply` for one asset, several assets or a fetch, with one transaction for each asset.
///
/// ``ApplyEdit`` is the same request for one asset.
public struct ApplyEdits: Request {
    public typealias Result = EditOutcomes
    public static let method = ApplyEdit.method
    /// One asset; nil for several. Give exactly one of asset, assets and fetch.
    public var asset: ObjectID?
    /// Several assets, at most ``maxAssets``.
    public var assets: [ObjectID]
    /// A fetch whose assets are edited; nil if they are named.
    public var fetch: FetchDescription?
    /// The operations, in order.
    public var adjustments: AdjustmentList
    /// Options of ImageMagick's `convert`, which become operations after `adjustments`; nil for none.
    public var magick: MagickOptions?
    /// The way the operations are combined with the current ones: replacing them, or appended to them.
    public var mode: AdjustmentMode
    /// The engine that renders the pixels; nil for the engine that the adjustments name, or else the editor's setting.
    public var engine: RenderEngine?
    /// For one asset: content revision that it must have, else the request is refused with conflict; nil to accept any.
    public var ifContentRevision: Revision?
    /// For one asset: revision that it must have, else the request is refused with conflict, and the error's data has
    /// the current one; nil to accept any.
    public var ifRevision: Revision?
    /// True to insert the result of `edits.suggest` before the operations, as explicit values.
    public var enhances: Bool
    /// Priority of the render.
    public var priority: EditPriority
    /// True if the request is only validated.
    public var isDryRun: Bool
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
        enhances: Bool = false,
        priority: EditPriority = .normal,
        isDryRun: Bool = false,
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
        self.enhances = enhances
        self.priority = priority
        self.isDryRun = isDryRun
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
                \.enhances,
                .flag,
                "Insert the result of edits.suggest before the operations, as explicit values.",
                default: false
            ),
            .priority(\.priority),
            .dryRun(\.isDryRun),
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
