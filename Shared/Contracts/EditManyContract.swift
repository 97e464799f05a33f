public import JSONValue
public import PhotoModel

/// How soon an edit is rendered, beside the others that wait.
public enum EditPriority: String, Sendable, CaseIterable {
    case high, normal, low
}

/// `edits.apply` in full: one asset, several, or what a fetch gives; one transaction for each.
///
/// ``ApplyEdit`` is the same request for one asset.
public struct ApplyEdits: Request {
    public typealias Result = EditOutcomes
    public static let method = ApplyEdit.method
    public var asset: ObjectID?
    public var assets: [ObjectID]
    public var fetch: FetchDescription?
    public var adjustments: AdjustmentList
    public var mode: AdjustmentMode
    public var ifContentRevision: Revision?
    public var ifRevision: Revision?
    public var enhance: Bool
    public var priority: EditPriority
    public var dryRun: Bool
    public var client: String
    public var transaction: String?

    /// The most assets of one request.
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
        "Renders adjustments and commits them, one change for each asset.",
        blank: ApplyEdits(),
        [
            .optional("asset", \.asset, .id(.asset), "One asset; exactly one of asset, assets and fetch is given."),
            .defaulted("assets", \.assets, .list(of: .id(.asset), limit: maxAssets), "Several assets.", default: []),
            .optional("fetch", \.fetch, .object(FetchDescription.self), "The assets that a fetch gives."),
            .defaulted(
                "adjustments",
                \.adjustments,
                .adjustments,
                "The operations, in their order.",
                default: AdjustmentList()
            ),
            .mode(\.mode),
            .optional(
                "ifContentRevision",
                \.ifContentRevision,
                .revision,
                "For one asset: refused as conflict when its pixels have another revision."
            ),
            .optional(
                "ifRevision",
                \.ifRevision,
                .revision,
                "For one asset: refused as conflict when it has another revision; the error's data names that."
            ),
            .defaulted(
                "enhance",
                \.enhance,
                .flag,
                "Puts what edits.suggest answers before the operations, as explicit values.",
                default: false
            ),
            .priority(\.priority),
            .dryRun(\.dryRun),
            .client(\.client),
            .optional(
                "transaction",
                \.transaction,
                .text(maxBytes: 96),
                "The client's name for the transaction; for several assets the transaction of each is named by it."
            ),
        ]
    )
}

/// How `edits.apply`, `edits.copy` and `edits.revert` went, asset by asset.
public struct EditOutcomes: JSONTabled {
    /// One asset: the members of EditOutcome. Several: see `results`.
    public var asset: ObjectID?
    public var token: ChangeToken?
    public var sequence: Int64?
    public var isChanged: Bool
    public var done: Int
    public var failed: Int
    public var dryRun: Bool
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
        "How it went, asset by asset.",
        unknown: .ignored,
        blank: EditOutcomes(),
        [
            .optional("asset", \.asset, .id(.asset), "One asset: that asset."),
            .optional("token", \.token, .token, "The moment after the last transaction."),
            .optional("sequence", \.sequence, .integer(0...Int64.max), "Its sequence."),
            .defaulted("isChanged", \.isChanged, .flag, "Whether anything changed.", default: false, isWritten: true),
            .defaulted("done", \.done, .count(0...Int.max), "Assets done.", default: 0),
            .defaulted("failed", \.failed, .count(0...Int.max), "Assets that failed; the results say why.", default: 0),
            .defaulted("dryRun", \.dryRun, .flag, "Nothing was done: this is what would be.", default: false),
            .defaulted(
                "results",
                \.results,
                .list(of: .any, limit: ApplyEdits.maxAssets),
                "Several assets, in their order: {asset, sequence, isChanged} or {asset, error: {name, message}}.",
                default: []
            ),
        ]
    )
}

/// `edits.copy`: the edit of one asset for others, each rendered from its own original.
public struct CopyEdits: Request {
    public typealias Result = EditOutcomes
    public static let method = "edits.copy"
    public var from: ObjectID
    public var to: [ObjectID]
    public var fetch: FetchDescription?
    public var mode: AdjustmentMode
    public var geometry: Bool
    public var priority: EditPriority
    public var dryRun: Bool
    public var client: String
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
        "Applies the edit of one asset to others, one change for each.",
        blank: CopyEdits(from: .none),
        [
            .required("from", \.from, .id(.asset), "The asset whose adjustments are taken."),
            .defaulted("to", \.to, .list(of: .id(.asset), limit: ApplyEdits.maxAssets), "The others.", default: []),
            .optional("fetch", \.fetch, .object(FetchDescription.self), "In place of `to`: what a fetch gives."),
            .defaulted("mode", \.mode, .name(AdjustmentMode.self), "As in edits.apply.", default: .replace),
            .defaulted("geometry", \.geometry, .flag, "Also crop, turn and the like.", default: true),
            .priority(\.priority),
            .dryRun(\.dryRun),
            .client(\.client),
            .optional("transaction", \.transaction, .text(maxBytes: 96), "As in edits.apply."),
        ]
    )
}

/// `edits.suggest`: operations that would make a picture look better, as explicit values.
public struct SuggestEdit: Request {
    public static let method = "edits.suggest"
    public var asset: ObjectID

    public init(asset: ObjectID) { self.asset = asset }

    public static let table = parameters(
        "Operations that would make the original look better, as explicit values; nothing is committed.",
        blank: SuggestEdit(asset: .none),
        [.asset(\.asset)]
    )

    public struct Result: JSONTabled {
        public var adjustments: AdjustmentList

        public init(adjustments: AdjustmentList) { self.adjustments = adjustments }

        public static let table = JSONTable(
            "Suggestion",
            "A list for edits.apply.",
            unknown: .ignored,
            blank: Result(adjustments: AdjustmentList()),
            [.required("adjustments", \.adjustments, .adjustments, "The operations, in their order.")]
        )
    }
}

/// `edits.compare`: an asset before and after its edits, side by side in one picture.
public struct CompareEdit: Request {
    public typealias Result = PreviewEdit.Result
    public static let method = "edits.compare"
    public var asset: ObjectID
    public var maximumSide: Int

    public init(asset: ObjectID, maximumSide: Int = 1024) {
        self.asset = asset
        self.maximumSide = maximumSide
    }

    public static let table = parameters(
        "The original and what is shown, side by side.",
        blank: CompareEdit(asset: .none),
        [
            .asset(\.asset),
            .defaulted(
                "maximumSide",
                \.maximumSide,
                .count(16...2048),
                "Pixels of the longer side of each of the two.",
                default: 1024
            ),
        ]
    )
}
