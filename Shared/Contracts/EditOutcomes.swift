public import JSONValue
public import PhotoModel

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
    /// True if a gain map was lost, as in ``EditOutcome``.
    public var dropsGainMap = false
    /// Number of assets edited.
    public var done: Int
    /// Number of assets that failed; see ``results``.
    public var failed: Int
    /// True if this is a preview of the outcomes.
    public var isDryRun: Bool
    /// For several assets, in order: {asset, sequence, isChanged} or {asset, error: {name, message}}; of a dry run
    /// {asset, dryRun, contentRevision, source, adjustments, engine} in place of the first.
    public var results: [JSON]

    public init(
        asset: ObjectID? = nil,
        token: ChangeToken? = nil,
        isChanged: Bool = false,
        done: Int = 0,
        failed: Int = 0,
        isDryRun: Bool = false,
        results: [JSON] = []
    ) {
        self.asset = asset
        self.token = token
        self.sequence = token?.sequence
        self.isChanged = isChanged
        self.done = done
        self.failed = failed
        self.isDryRun = isDryRun
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
            .defaulted("isChanged", \.isChanged, .flag, "True if anything changed.", default: false, isWritten: true),
            .defaulted("dropsGainMap", \.dropsGainMap, .flag, "True if a gain map was lost.", default: false),
            .defaulted("done", \.done, .count(0...Int.max), "Number of assets edited.", default: 0),
            .defaulted("failed", \.failed, .count(0...Int.max), "Number that failed; see results.", default: 0),
            .defaulted("dryRun", \.isDryRun, .flag, "True if this is a preview of the outcomes.", default: false),
            .defaulted(
                "results",
                \.results,
                .list(of: .any, limit: ApplyEdits.maxAssets),
                "For several assets, in order: {asset, sequence, isChanged} or {asset, error: {name, message}}; of a "
                    + "dry run {asset, dryRun, contentRevision, source, adjustments, engine} in place of the first.",
                default: []
            ),
        ]
    )
}
