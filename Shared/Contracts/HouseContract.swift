public import JSONValue

// What every service answers.

/// `rpc.discover`: the OpenRPC document.
public struct Discover: Request {
    public typealias Result = FreeForm
    public static let method = "rpc.discover"
    public init() {}
    public static let table = parameters("The OpenRPC document of this service.", blank: Discover())
}

/// `health`: whether the service can do its work.
public struct Health: Request {
    public static let method = "health"
    public init() {}
    public static let table = parameters("Whether the service can do its work.", blank: Health())

    public struct Result: JSONTabled {
        public var service: String
        public var version: String
        public var isHealthy: Bool
        /// Why not.
        public var problems: [String]
        /// The last sequence the service has seen.
        public var sequence: Int64

        public init(service: String, version: String, isHealthy: Bool, problems: [String], sequence: Int64) {
            self.service = service
            self.version = version
            self.isHealthy = isHealthy
            self.problems = problems
            self.sequence = sequence
        }

        public static let table = JSONTable(
            "Health",
            "The state of a service.",
            unknown: .ignored,
            blank: Result(service: "", version: "", isHealthy: false, problems: [], sequence: 0),
            [
                .required("service", \.service, .text(maxBytes: 64), "Its name."),
                .required("version", \.version, .text(maxBytes: 64), "Its version."),
                .required("isHealthy", \.isHealthy, .flag, "It can do its work."),
                .defaulted(
                    "problems",
                    \.problems,
                    .list(of: .text(maxBytes: 4096), limit: 100),
                    "Why it cannot.",
                    default: []
                ),
                .required("sequence", \.sequence, .integer(0...Int64.max), "The last transaction it has seen."),
            ]
        )
    }
}

/// `figures`: counters of the service.
public struct Figures: Request {
    public typealias Result = FreeForm
    public static let method = "figures"
    public init() {}
    public static let table = parameters("Counters and gauges of the service.", blank: Figures())
}
