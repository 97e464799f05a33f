public import JSONValue
public import PhotoModel

/// Stored bytes that are no longer opened because workers crashed or hung while reading them.
public struct QuarantinedResource: JSONTabled, Equatable {
    /// SHA-256 of the bytes.
    public var digest: String
    /// Name of the latest error: `worker_crashed` or `worker_timeout`.
    public var name: String
    /// Message of the latest error.
    public var reason: String
    /// Name of the service whose worker failed.
    public var service: String
    /// Number of failures.
    public var failures: Int
    /// Date of the latest failure, in microseconds since 1970.
    public var date: Int64
    /// The first ``maxAssets`` assets that have the bytes; only in `quarantine.list`.
    public var assets: [ObjectID]

    /// The maximum number of ``assets``.
    public static let maxAssets = 8

    public init(
        digest: String,
        name: String,
        reason: String,
        service: String,
        failures: Int,
        date: Int64,
        assets: [ObjectID] = []
    ) {
        self.digest = digest
        self.name = name
        self.reason = reason
        self.service = service
        self.failures = failures
        self.date = date
        self.assets = assets
    }

    public static let table = JSONTable(
        "QuarantinedResource",
        "Quarantined bytes, and why.",
        unknown: .ignored,
        blank: QuarantinedResource(digest: "", name: "", reason: "", service: "", failures: 0, date: 0),
        [
            .required("digest", \.digest, .text(maxBytes: 64), "SHA-256 of the bytes."),
            .required("name", \.name, .text(maxBytes: 64), "worker_crashed or worker_timeout."),
            .required(
                "reason",
                \.reason,
                .text(maxBytes: ReportWorkerFault.maxReasonBytes),
                "The latest error message."
            ),
            .required("service", \.service, .text(maxBytes: 64), "The service whose worker failed."),
            .required("failures", \.failures, .count(0...Int.max), "Number of failures."),
            .required("date", \.date, .date(), "The latest failure, microseconds since 1970."),
            .defaulted(
                "assets",
                \.assets,
                .list(of: .id(.asset), limit: maxAssets),
                "Assets that have the bytes; only in quarantine.list.",
                default: []
            ),
        ]
    )

    /// Returns the error for requests that would open the bytes.
    ///
    /// - Parameter file: a name of the bytes that the client knows
    public func rpcError(of file: String) -> RPCError {
        ErrorCode.quarantined.error(
            "\(file) is quarantined: \(reason) (\(service), \(failures == 1 ? "once" : "\(failures) times")). "
                + "To try it again, run `safelight quarantine lift \(digest)`",
            [
                "digest": .string(digest), "name": .string(name), "reason": .string(reason),
                "service": .string(service), "failures": JSON(failures), "date": .int(date),
            ]
        )
    }
}
