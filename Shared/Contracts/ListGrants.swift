public import JSONValue
public import PhotoModel

/// `grants.list`: the access of each identity.
public struct ListGrants: Request {
    public static let method = "grants.list"
    /// The maximum number of grants of a page.
    public static let maxPage = 1000
    /// Index of the first grant of the page.
    public var from: Int
    /// The maximum number of grants in the page.
    public var count: Int

    public init(from: Int = 0, count: Int = 100) {
        self.from = from
        self.count = count
    }

    public static let table = parameters(
        "The access of each identity, by identity: the decisions, and the statements of listed keys about which "
            + "nothing was decided.",
        blank: ListGrants(),
        [
            .defaulted("from", \.from, .count(0...Int.max), "Index of the first grant of the page.", default: 0),
            .defaulted("count", \.count, .count(0...maxPage), "Maximum grants of the page.", default: 100),
        ]
    )

    /// A page of grants.
    public struct Result: JSONTabled {
        /// Number of grants in all.
        public var count: Int
        /// The page.
        public var grants: [Grant]

        public init(count: Int, grants: [Grant]) {
            self.count = count
            self.grants = grants
        }

        public static let table = JSONTable(
            "Grants",
            "A page of grants.",
            unknown: .ignored,
            blank: Result(count: 0, grants: []),
            [
                .required("count", \.count, .count(0...Int.max), "Number of grants in all."),
                .required("grants", \.grants, .list(of: .object(Grant.self), limit: maxPage), "The page."),
            ]
        )
    }
}
