public import JSONValue
public import PhotoModel

/// A request for a page of a fetch result; the page type determines which entities are fetched.
public struct FetchPage<Page: ResultPage>: Request {
    public typealias Result = Page
    public static var method: String { Page.method }
    public static var table: JSONTable<Self> { Page.request }
    public static var maxPage: Int { 1000 }

    public var fetch: FetchDescription
    /// The token of the result; nil for the newest state.
    public var token: ChangeToken?
    /// Index of the first object of the page.
    public var from: Int
    public var count: Int
    public var atLeast: ChangeToken?

    public init(
        fetch: FetchDescription,
        token: ChangeToken? = nil,
        from: Int = 0,
        count: Int = 100,
        atLeast: ChangeToken? = nil
    ) {
        self.fetch = fetch
        self.token = token
        self.from = from
        self.count = count
        self.atLeast = atLeast
    }

    /// Returns the table of the request.
    ///
    /// - Parameters:
    ///   - kind: the entities that are fetched if the request has no fetch
    ///   - what: their name in descriptions
    static func parameters(_ summary: String, of kind: FetchSubject, _ what: String) -> JSONTable<Self> {
        parameters(
            summary,
            blank: Self(fetch: FetchDescription(kind)),
            [
                .fetch(\.fetch, "The \(what) to fetch and their order.", of: kind),
                .optional("token", \.token, .token, "Token of the result, from its first page; absent: the newest."),
                .defaulted(
                    "from",
                    \.from,
                    .count(0...Int.max),
                    "Index of the first object of the page.",
                    default: 0
                ),
                .defaulted("count", \.count, .count(0...maxPage), "Maximum objects of the page.", default: 100),
                .atLeast(\.atLeast),
            ]
        )
    }
}
