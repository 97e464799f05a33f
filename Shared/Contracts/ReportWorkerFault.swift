public import JSONValue
import PhotoModel

/// `quarantine.report`: reports that a worker crashed or hung while reading stored bytes; for services.
public struct ReportWorkerFault: Request {
    public static let method = "quarantine.report"
    public static let maxReasonBytes = 1024
    /// SHA-256 of the bytes.
    public var digest: String
    /// Name of the error: `worker_crashed` or `worker_timeout`.
    public var name: String
    /// The error message.
    public var reason: String
    /// The service whose worker failed.
    public var service: String
    /// Number of consecutive attempts that failed in this way.
    public var failures: Int

    public init(digest: String, name: String, reason: String, service: String, failures: Int = 1) {
        self.digest = digest
        self.name = name
        self.reason = reason
        self.service = service
        self.failures = failures
    }

    public static let table = parameters(
        "Reports that a worker crashed or hung on stored bytes; two failures quarantine them. For services.",
        blank: ReportWorkerFault(digest: "", name: "", reason: "", service: ""),
        [
            .required("digest", \.digest, .text(maxBytes: 64), "SHA-256 of the bytes."),
            .required("name", \.name, .text(maxBytes: 64), "worker_crashed or worker_timeout."),
            .required("reason", \.reason, .text(maxBytes: maxReasonBytes), "The error message."),
            .required("service", \.service, .text(maxBytes: 64), "The service whose worker failed."),
            .defaulted("failures", \.failures, .count(1...1000), "Number of attempts that failed.", default: 1),
        ]
    )

    public struct Result: JSONTabled {
        /// Number of failures so far.
        public var failures: Int
        /// True if they are quarantined.
        public var isSetAside: Bool

        public init(failures: Int, isSetAside: Bool) {
            self.failures = failures
            self.isSetAside = isSetAside
        }

        public static let table = JSONTable(
            "WorkerFaultReported",
            "The state of the reported bytes.",
            unknown: .ignored,
            blank: Result(failures: 0, isSetAside: false),
            [
                .required("failures", \.failures, .count(0...Int.max), "Number of failures so far."),
                .required("isSetAside", \.isSetAside, .flag, "True if they are quarantined."),
            ]
        )
    }
}
