public import JSONValue
public import Messaging
public import PhotoModel

/// Stored bytes that are opened no more, because workers came to harm over them (DESIGN 4.4).
public struct QuarantinedResource: JSONTabled, Equatable {
    /// SHA-256 of the bytes.
    public var digest: String
    /// The error of the last time: `worker_crashed` or `worker_timeout`.
    public var name: String
    /// What happened the last time, in words.
    public var reason: String
    /// The service that saw it.
    public var service: String
    /// How often it happened.
    public var failures: Int
    /// When it last happened, in microseconds since 1970.
    public var date: Int64
    /// Assets that have the bytes; only in lists, and the first few.
    public var assets: [ObjectID]

    public static let mostAssets = 8

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
        "Bytes that are opened no more, and why.",
        unknown: .ignored,
        blank: QuarantinedResource(digest: "", name: "", reason: "", service: "", failures: 0, date: 0),
        [
            .required("digest", \.digest, .text(maxBytes: 64), "SHA-256 of the bytes."),
            .required("name", \.name, .text(maxBytes: 64), "worker_crashed or worker_timeout."),
            .required("reason", \.reason, .text(maxBytes: ReportHarm.maxReasonBytes), "What happened the last time."),
            .required("service", \.service, .text(maxBytes: 64), "Where it happened."),
            .required("failures", \.failures, .count(0...Int.max), "How often it happened."),
            .required("date", \.date, .integer(), "When it last happened, microseconds since 1970."),
            .defaulted(
                "assets",
                \.assets,
                .list(of: .id(.asset), limit: mostAssets),
                "Assets that have the bytes; in lists only.",
                default: []
            ),
        ]
    )

    /// The error for whoever asks for something that would open the bytes.
    ///
    /// - Parameter file: the bytes as the client knows them
    public func refusal(of file: String) -> RPCError {
        Refusal.quarantined.error(
            "\(file) was set aside: \(reason) (\(service), \(failures == 1 ? "once" : "\(failures) times")). "
                + "`safelight quarantine lift \(digest)` lets it be tried again",
            [
                "digest": .string(digest), "name": .string(name), "reason": .string(reason),
                "service": .string(service), "failures": JSON(failures), "date": .int(date),
            ]
        )
    }
}

/// `quarantine.report`: a worker came to harm over stored bytes; for services.
public struct ReportHarm: Request {
    public static let method = "quarantine.report"
    public static let maxReasonBytes = 1024
    public var digest: String
    public var name: String
    public var reason: String
    public var service: String
    /// Attempts that ended so, one after the other.
    public var failures: Int

    public init(digest: String, name: String, reason: String, service: String, failures: Int = 1) {
        self.digest = digest
        self.name = name
        self.reason = reason
        self.service = service
        self.failures = failures
    }

    public static let table = parameters(
        "Tells that a worker crashed or hung over stored bytes; after two times they are set aside. For services.",
        blank: ReportHarm(digest: "", name: "", reason: "", service: ""),
        [
            .required("digest", \.digest, .text(maxBytes: 64), "SHA-256 of the bytes."),
            .required("name", \.name, .text(maxBytes: 64), "worker_crashed or worker_timeout."),
            .required("reason", \.reason, .text(maxBytes: maxReasonBytes), "What happened."),
            .required("service", \.service, .text(maxBytes: 64), "Where it happened."),
            .defaulted("failures", \.failures, .count(1...1000), "Attempts that ended so.", default: 1),
        ]
    )

    public struct Result: JSONTabled {
        public var failures: Int
        public var isSetAside: Bool

        public init(failures: Int, isSetAside: Bool) {
            self.failures = failures
            self.isSetAside = isSetAside
        }

        public static let table = JSONTable(
            "HarmReported",
            "What became of the bytes.",
            unknown: .ignored,
            blank: Result(failures: 0, isSetAside: false),
            [
                .required("failures", \.failures, .count(0...Int.max), "How often it has happened."),
                .required("isSetAside", \.isSetAside, .flag, "They are opened no more."),
            ]
        )
    }
}

/// `quarantine.list`: what was set aside, the latest first.
public struct ListQuarantine: Request {
    public static let method = "quarantine.list"
    public static let maxPage = 1000
    public var from: Int
    public var count: Int

    public init(from: Int = 0, count: Int = 100) {
        self.from = from
        self.count = count
    }

    public static let table = parameters(
        "What was set aside because workers came to harm over it, the latest first.",
        blank: ListQuarantine(),
        [
            .defaulted("from", \.from, .count(0...Int.max), "Position of the first entry of the page.", default: 0),
            .defaulted("count", \.count, .count(0...maxPage), "Entries of the page.", default: 100),
        ]
    )

    public struct Result: JSONTabled {
        public var count: Int
        public var resources: [QuarantinedResource]

        public init(count: Int, resources: [QuarantinedResource]) {
            self.count = count
            self.resources = resources
        }

        public static let table = JSONTable(
            "Quarantine",
            "What was set aside.",
            unknown: .ignored,
            blank: Result(count: 0, resources: []),
            [
                .required("count", \.count, .count(0...Int.max), "How many there are."),
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

/// `quarantine.lift`: lets bytes be tried again; for services and whoever runs the library on this machine.
public struct LiftQuarantine: Request {
    public static let method = "quarantine.lift"
    /// Which bytes; nil: all.
    public var digest: String?

    public init(digest: String?) { self.digest = digest }

    public static let table = parameters(
        "Lets bytes that were set aside be tried again, and forgets what they did.",
        blank: LiftQuarantine(digest: nil),
        [.optional("digest", \.digest, .text(maxBytes: 64), "SHA-256 of the bytes; absent: all of them.")]
    )

    public struct Result: JSONTabled {
        public var lifted: Int
        public init(lifted: Int) { self.lifted = lifted }
        public static let table = JSONTable(
            "QuarantineLifted",
            "How many entries were forgotten.",
            unknown: .ignored,
            blank: Result(lifted: 0),
            [.required("lifted", \.lifted, .count(0...Int.max), "How many were set aside before.")]
        )
    }
}
