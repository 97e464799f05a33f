public import JSONValue

/// `health`: the state of the service.
public struct Health: Request {
    public static let method = "health"
    public init() {}
    public static let table = parameters("The state of the service.", blank: Health())

    /// The health of a service.
    public struct Result: JSONTabled {
        /// Name of the service.
        public var service: String
        /// Version of the service.
        public var version: String
        /// True if the service is working.
        public var isHealthy: Bool
        /// The reasons if it is not healthy.
        public var problems: [String]
        /// The newest sequence that the service has seen.
        public var sequence: Int64
        /// The role of a catalog; nil for another service.
        public var role: CatalogRole?
        /// The number of the current writer, for several catalogs; each takeover raises it.
        public var epoch: Int64?

        public init(service: String, version: String, isHealthy: Bool, problems: [String], sequence: Int64) {
            self.service = service
            self.version = version
            self.isHealthy = isHealthy
            self.problems = problems
            self.sequence = sequence
        }

        public static let table = JSONTable(
            "Health",
            "Health of a service.",
            unknown: .ignored,
            blank: Result(service: "", version: "", isHealthy: false, problems: [], sequence: 0),
            [
                .required("service", \.service, .text(maxBytes: 64), "Name of the service."),
                .required("version", \.version, .text(maxBytes: 64), "Version of the service."),
                .required("isHealthy", \.isHealthy, .flag, "True if the service is working."),
                .defaulted(
                    "problems",
                    \.problems,
                    .list(of: .text(maxBytes: 4096), limit: 100),
                    "The reasons if it is not healthy.",
                    default: []
                ),
                .required("sequence", \.sequence, .integer(0...Int64.max), "The newest sequence it has seen."),
                .optional("role", \.role, .name(CatalogRole.self), "Of a catalog: whether it writes the library."),
                .optional("epoch", \.epoch, .integer(0...Int64.max), CatalogRole.epoch),
            ]
        )
    }
}
