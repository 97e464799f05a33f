public import JSONValue
import PhotoModel

/// `quarantine.list`: the quarantined bytes, the latest first.
public struct ListQuarantine: Request {
    public static let method = "quarantine.list"
    public static let maxPage = 1000
    /// Index of the first entry of the page.
    public var from: Int
    /// Maximum entries of the page.
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
