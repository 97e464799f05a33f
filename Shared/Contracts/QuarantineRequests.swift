public import JSONValue

/// `quarantine.list`: the quarantined bytes, the latest first.
public struct ListQuarantine: Request {
    public static let method = "quarantine.list"
    /// The maximum number of entries of a page.
    public static let maxPage = 1000
    /// Index of the first entry of the page.
    public var from: Int
    /// The maximum number of entries in the page.
    public var count: Int

    public init(from: Int = 0, count: Int = 100) {
        self.from = from
        self.count = count
    }

    public static let table = parameters(
        "The bytes quarantined because workers crashed or hung while reading them, the latest first.",
        blank: ListQuarantine(),
        [
            .defaulted("from", \.from, .count(0...Int.max), "Index of the first entry of the page.", default: 0),
            .defaulted("count", \.count, .count(0...maxPage), "Maximum entries of the page.", default: 100),
        ]
    )

    /// A page of quarantined bytes.
    public struct Result: JSONTabled {
        /// Number of entries in all.
        public var count: Int
        /// The page.
        public var resources: [QuarantinedResource]

        public init(count: Int, resources: [QuarantinedResource]) {
            self.count = count
            self.resources = resources
        }

        public static let table = JSONTable(
            "Quarantine",
            "A page of quarantined bytes.",
            unknown: .ignored,
            blank: Result(count: 0, resources: []),
            [
                .required("count", \.count, .count(0...Int.max), "Number of entries in all."),
                .required(
                    "resources",
                    \.resources,
                    .list(of: .object(QuarantinedResource.self), limit: maxPage),
                    "The page."
                ),
            ]
        )
    }
}

/// `quarantine.lift`: removes bytes from the quarantine; for the owner.
public struct LiftQuarantine: Request {
    public static let method = "quarantine.lift"
    /// SHA-256 of the bytes; nil for all entries.
    public var digest: String?

    public init(digest: String?) { self.digest = digest }

    public static let table = parameters(
        "Removes bytes from the quarantine and resets their failure counts.",
        blank: LiftQuarantine(digest: nil),
        [.optional("digest", \.digest, .text(maxBytes: 64), "SHA-256 of the bytes; absent: all entries.")]
    )

    /// The number of entries that were removed.
    public struct Result: JSONTabled {
        /// Number of bytes that were quarantined.
        public var lifted: Int
        public init(lifted: Int) { self.lifted = lifted }
        public static let table = JSONTable(
            "QuarantineLifted",
            "Number of entries that were removed.",
            unknown: .ignored,
            blank: Result(lifted: 0),
            [.required("lifted", \.lifted, .count(0...Int.max), "Number of bytes that were quarantined.")]
        )
    }
}

/// `quarantine.report`: reports that a worker crashed or hung while reading stored bytes; for services.
public struct ReportWorkerFault: Request {
    public static let method = "quarantine.report"
    /// The maximum length of ``reason``, in UTF-8 bytes.
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

    /// The state of the reported bytes.
    public struct Result: JSONTabled {
        /// Number of failures so far.
        public var failures: Int
        /// True if they are quarantined.
        public var isQuarantined: Bool

        public init(failures: Int, isQuarantined: Bool) {
            self.failures = failures
            self.isQuarantined = isQuarantined
        }

        public static let table = JSONTable(
            "WorkerFaultReported",
            "The state of the reported bytes.",
            unknown: .ignored,
            blank: Result(failures: 0, isQuarantined: false),
            [
                .required("failures", \.failures, .count(0...Int.max), "Number of failures so far."),
                .required("isSetAside", \.isQuarantined, .flag, "True if they are quarantined."),
            ]
        )
    }
}
