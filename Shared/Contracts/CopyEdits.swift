public import JSONValue
public import PhotoModel

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
    /// True to copy also crop, rotation and other geometry.
    public var includesGeometry: Bool
    /// Priority of the render.
    public var priority: EditPriority
    /// True if the request is only validated.
    public var isDryRun: Bool
    /// True if originals that are in remote storage may be downloaded.
    public var isNetworkAccessAllowed = false
    /// Name of the client program.
    public var client: String
    /// As in edits.apply.
    public var transaction: String?

    public init(
        from: ObjectID,
        to: [ObjectID] = [],
        fetch: FetchDescription? = nil,
        mode: AdjustmentMode = .replace,
        includesGeometry: Bool = true,
        priority: EditPriority = .normal,
        isDryRun: Bool = false,
        client: String = "",
        transaction: String? = nil
    ) {
        self.from = from
        self.to = to
        self.fetch = fetch
        self.mode = mode
        self.includesGeometry = includesGeometry
        self.priority = priority
        self.isDryRun = isDryRun
        self.client = client
        self.transaction = transaction
    }

    public static let table = parameters(
        "Applies the edit of one asset to others, in one transaction for each.",
        blank: CopyEdits(from: .none),
        [
            .required("from", \.from, .id(.asset), "The asset whose adjustments are copied."),
            .defaulted("to", \.to, .list(of: .id(.asset), limit: ApplyEdits.maxAssets), "The targets.", default: []),
            .optional("fetch", \.fetch, .fetch(), "Instead of to: the assets of a fetch."),
            .defaulted("mode", \.mode, .name(AdjustmentMode.self), "As in edits.apply.", default: .replace),
            .defaulted(
                "geometry",
                \.includesGeometry,
                .flag,
                "Also copy crop, rotation and other geometry.",
                default: true
            ),
            .priority(\.priority),
            .dryRun(\.isDryRun),
            .networkAccess(\.isNetworkAccessAllowed),
            .client(\.client),
            .optional("transaction", \.transaction, .text(maxBytes: 96), "As in edits.apply."),
        ]
    )
}
