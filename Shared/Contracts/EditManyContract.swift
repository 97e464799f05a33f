public import JSONValue
public import PhotoModel

/// The priority of an edit among those waiting to be rendered.
public enum EditPriority: String, Sendable, CaseIterable {
    case high, normal, low
}

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
    /// The way the operations are combined with the present ones: replacing them, or appended to them.
    public var mode: AdjustmentMode
    /// For one asset: refused with conflict if it has another content revision.
    public var ifContentRevision: Revision?
    /// For one asset: refused with conflict if it has another revision, which is in the error's data.
    public var ifRevision: Revision?
    /// True if to insert the result of `edits.suggest` before the operations, as explicit values.
    public var enhance: Bool
    /// Priority of the render.
    public var priority: EditPriority
    /// True if the request is only validated.
    public var dryRun: Bool
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
        mode: AdjustmentMode = .replace,
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
        self.mode = mode
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
            .optional("fetch", \.fetch, .object(FetchDescription.self), "The assets of a fetch result."),
            .defaulted(
                "adjustments",
                \.adjustments,
                .adjustments,
                "The operations, in order.",
                default: AdjustmentList()
            ),
            .mode(\.mode),
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

/// The outcomes of `edits.apply` and `edits.copy`, asset by asset.
public struct EditOutcomes: JSONTabled {
    /// The asset of a request with one asset; ``token``, ``sequence`` and ``isChanged`` are as in ``EditOutcome``. Nil
    /// for several assets, see ``results``.
    public var asset: ObjectID?
    /// Token of the last transaction.
    public var token: ChangeToken?
    /// Sequence of the last transaction.
    public var sequence: Int64?
    /// True if anything changed.
    public var isChanged: Bool
    /// Number of assets edited.
    public var done: Int
    /// Number of assets that failed; see ``results``.
    public var failed: Int
    /// True if this is a preview of the outcomes.
    public var dryRun: Bool
    /// For several assets, in order: {asset, sequence, isChanged} or {asset, error: {name, message}}.
    public var results: [JSON]

    public init(
        asset: ObjectID? = nil,
        token: ChangeToken? = nil,
        isChanged: Bool = false,
        done: Int = 0,
        failed: Int = 0,
        dryRun: Bool = false,
        results: [JSON] = []
    ) {
        self.asset = asset
        self.token = token
        self.sequence = token?.sequence
        self.isChanged = isChanged
        self.done = done
        self.failed = failed
        self.dryRun = dryRun
        self.results = results
    }

    public static let table = JSONTable(
        "EditOutcomes",
        "Outcomes of an edit of several assets.",
        unknown: .ignored,
        blank: EditOutcomes(),
        [
            .optional("asset", \.asset, .id(.asset), "The asset, if the request named one."),
            .optional("token", \.token, .token, "Token of the last transaction."),
            .optional("sequence", \.sequence, .integer(0...Int64.max), "Sequence of the last transaction."),
            .defaulted("isChanged", \.isChanged, .flag, "Whether anything changed.", default: false, isWritten: true),
            .defaulted("done", \.done, .count(0...Int.max), "Number of assets edited.", default: 0),
            .defaulted("failed", \.failed, .count(0...Int.max), "Number that failed; see results.", default: 0),
            .defaulted("dryRun", \.dryRun, .flag, "Whether this is a preview of the outcomes.", default: false),
            .defaulted(
                "results",
                \.results,
                .list(of: .any, limit: ApplyEdits.maxAssets),
                "For several assets, in order: {asset, sequence, isChanged} or {asset, error: {name, message}}.",
                default: []
            ),
        ]
    )
}

/// `edits.copy`: applies the edit of one asset to others, each rendered from its own original.
public struct CopyEdits: Request {
    public typealias Result = EditOutcomes
    public static let method = "edits.copy"
    /// The asset whose adjustments are copied.
    public var from: ObjectID
    /// The targets.
    public var to: [ObjectID]
    /// The fetch whose assets are edited instead of ``to``; nil if those are given.
    public var fetch: FetchDescription?
    /// As in edits.apply.
    public var mode: AdjustmentMode
    /// True if to also copy crop, rotation and other geometry.
    public var geometry: Bool
    /// Priority of the render.
    public var priority: EditPriority
    /// True if the request is only validated.
    public var dryRun: Bool
    /// Name of the client program.
    public var client: String
    /// As in edits.apply.
    public var transaction: String?

    public init(
        from: ObjectID,
        to: [ObjectID] = [],
        fetch: FetchDescription? = nil,
        mode: AdjustmentMode = .replace,
        geometry: Bool = true,
        priority: EditPriority = .normal,
        dryRun: Bool = false,
        client: String = "",
        transaction: String? = nil
    ) {
        self.from = from
        self.to = to
        self.fetch = fetch
        self.mode = mode
        self.geometry = geometry
        self.priority = priority
        self.dryRun = dryRun
        self.client = client
        self.transaction = transaction
    }

    public static let table = parameters(
        "Applies the edit of one asset to others, in one transaction for each.",
        blank: CopyEdits(from: .none),
        [
            .required("from", \.from, .id(.asset), "The asset whose adjustments are copied."),
            .defaulted("to", \.to, .list(of: .id(.asset), limit: ApplyEdits.maxAssets), "The targets.", default: []),
            .optional("fetch", \.fetch, .object(FetchDescription.self), "Instead of to: the assets of a fetch."),
            .defaulted("mode", \.mode, .name(AdjustmentMode.self), "As in edits.apply.", default: .replace),
            .defaulted("geometry", \.geometry, .flag, "Also copy crop, rotation and other geometry.", default: true),
            .priority(\.priority),
            .dryRun(\.dryRun),
            .client(\.client),
            .optional("transaction", \.transaction, .text(maxBytes: 96), "As in edits.apply."),
        ]
    )
}

/// `edits.suggest`: operations that would improve an image, with explicit values.
public struct SuggestEdit: Request {
    public static let method = "edits.suggest"
    /// The asset.
    public var asset: ObjectID

    public init(asset: ObjectID) { self.asset = asset }

    public static let table = parameters(
        "Suggests operations that would improve the original, with explicit values; nothing is committed.",
        blank: SuggestEdit(asset: .none),
        [.asset(\.asset)]
    )

    public struct Result: JSONTabled {
        /// The operations, in order.
        public var adjustments: AdjustmentList

        public init(adjustments: AdjustmentList) { self.adjustments = adjustments }

        public static let table = JSONTable(
            "Suggestion",
            "Adjustments for edits.apply.",
            unknown: .ignored,
            blank: Result(adjustments: AdjustmentList()),
            [.required("adjustments", \.adjustments, .adjustments, "The operations, in order.")]
        )
    }
}

/// `edits.compare`: an asset before and after its edits, side by side in one image.
public struct CompareEdit: Request {
    public typealias Result = PreviewEdit.Result
    public static let method = "edits.compare"
    /// The asset.
    public var asset: ObjectID
    /// The longer side of each of the two, in pixels.
    public var maximumSide: Int

    public init(asset: ObjectID, maximumSide: Int = 1024) {
        self.asset = asset
        self.maximumSide = maximumSide
    }

    public static let table = parameters(
        "Renders the original and the edited image side by side.",
        blank: CompareEdit(asset: .none),
        [
            .asset(\.asset),
            .defaulted(
                "maximumSide",
                \.maximumSide,
                .count(16...2048),
                "The longer side of each of the two, in pixels.",
                default: 1024
            ),
        ]
    )
}
