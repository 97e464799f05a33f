public import JSONValue
public import PhotoModel

/// A request for a page of a fetch result; the page type determines which entities are fetched.
///
/// It is ``FetchAssets``, ``FetchCollections`` and ``FetchLists``, each for its type of page.
public struct FetchPage<Page: ResultPage>: Request, ProjectedRequest {
    public typealias Result = Page
    public static var method: String { Page.method }
    public static var table: JSONTable<Self> { Page.request }
    /// The maximum number of objects in a page that has more than their identifiers.
    public static var maxPage: Int { 1000 }

    /// The objects to fetch and their order.
    public var fetch: FetchDescription
    /// The token of the result; nil for the newest state.
    public var token: ChangeToken?
    /// Index of the first object of the page.
    public var from: Int
    /// The maximum number of objects of the page: at most ``maxPage``, or ``Projection/maxIDs`` identifiers.
    public var count: Int
    /// The service responds once it has reached this token; nil to respond at once.
    public var atLeast: ChangeToken?
    /// The projection of the objects of the page.
    public var projection = Projection()

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
    ///   - noun: the name of the entities in descriptions
    ///   - members: the names of their members
    static func parameters(
        _ summary: String,
        of kind: FetchDescription.Kind,
        _ noun: String,
        members: [String]
    ) -> JSONTable<Self> {
        parameters(
            summary,
            blank: Self(fetch: FetchDescription(kind)),
            [
                .fetch(\.fetch, "The \(noun) to fetch and their order.", of: kind, defaultKind: kind),
                .optional("token", \.token, .token, "Token of the result, from its first page; absent: the newest."),
                .defaulted(
                    "from",
                    \.from,
                    .count(0...Int.max),
                    "Index of the first object of the page.",
                    default: 0
                ),
                .defaulted(
                    "count",
                    \.count,
                    .count(0...Projection.maxIDs),
                    "Maximum objects of the page: \(maxPage), or \(Projection.maxIDs) identifiers.",
                    default: 100
                ),
                .atLeast(\.atLeast),
            ] + JSONField.projection(members)
        )
    }

    public init(params: JSON) throws(RPCError) {
        self = try Self.read(params)
        guard count <= Self.maxPage || projection.isIDsOnly else {
            throw ErrorCode.invalidParams.error(
                "\(Self.method): count: a page has at most \(Self.maxPage) objects, or with members [\"id\"] "
                    + "\(Projection.maxIDs); read further pages with from and the token of the first",
                ["parameter": "count", "limit": JSON(projection.isIDsOnly ? Projection.maxIDs : Self.maxPage)]
            )
        }
    }
}

/// `fetch.assets`: a page of assets (S-14 to S-29).
public typealias FetchAssets = FetchPage<AssetPage>

/// `fetch.collections`: a page of albums, smart albums and moments, or of a folder's children (S-18, S-19).
public typealias FetchCollections = FetchPage<CollectionPage>

/// `fetch.lists`: a page of folders and moment lists (S-06, S-07, T-05).
public typealias FetchLists = FetchPage<ListPage>

/// A page of objects of a result.
public protocol ResultPage: JSONTabled {
    /// The method name of the request for it.
    static var method: String { get }
    /// The table of the request for it.
    static var request: JSONTable<FetchPage<Self>> { get }

    /// The token of the result.
    var token: ChangeToken { get set }
    /// The sequence of ``token``.
    var sequence: Int64 { get set }
    /// Number of objects in the whole result, after offset and limit.
    var count: Int { get set }
}

extension ResultPage {
    /// The fields that every page has about its result.
    static var resultFields: [JSONField<Self>] {
        [
            .required("token", \.token, .token, "Token of the result."),
            .sequence(\.sequence),
            .required("count", \.count, .count(0...Int.max), "Number of objects in the whole result."),
        ]
    }
}

// MARK: - The pages

/// The result of `fetch.assets` and `fetch.objects`.
public struct AssetPage: ResultPage {
    public var token: ChangeToken
    public var sequence: Int64
    public var count: Int
    /// The assets.
    public var assets: [Asset]
    /// Requested identifiers that no asset has (T-01).
    public var missing: [ObjectID]
    /// Requested identifiers of assets in the trash, which are not among the assets.
    public var trashed: [ObjectID] = []
    /// Quarantined bytes of the page's assets: workers crashed or hung while reading them.
    public var quarantined: [QuarantinedResource]

    public init(
        token: ChangeToken,
        count: Int,
        assets: [Asset],
        missing: [ObjectID] = [],
        quarantined: [QuarantinedResource] = []
    ) {
        self.token = token
        self.sequence = token.sequence
        self.count = count
        self.assets = assets
        self.missing = missing
        self.quarantined = quarantined
    }

    /// Returns the quarantine entry for bytes of one of the page's assets; nil if they are not quarantined.
    public func quarantine(of digest: String) -> QuarantinedResource? {
        quarantined.first { $0.digest == digest }
    }

    /// Returns the JSON text of the page in pieces.
    ///
    /// - Parameters:
    ///   - projection: the projection of the objects besides the assets
    ///   - assets: the text of the assets, separated by commas, in place of ``assets``
    public func encoded(_ projection: Projection, assets: [UInt8]) -> [[UInt8]] {
        var head = JSONWriter()
        var tail = JSONWriter()
        var isBefore = true
        for (name, value) in projection.applied(to: json).objectValue?.members ?? [] {
            if name == "assets" {
                isBefore = false
            } else if isBefore {
                head.append(head.count == 0 ? "{" : ",")
                head.writeMember(name, value)
            } else {
                tail.append(",")
                tail.writeMember(name, value)
            }
        }
        head.append(",\"assets\":[")
        return [head.output, assets, Array("]".utf8) + tail.output + Array("}".utf8)]
    }

    public static let method = "fetch.assets"
    public static let request = FetchAssets.parameters(
        "A page of the assets of a fetch result.",
        of: .assets,
        "assets",
        members: Asset.table.fields.map(\.name)
    )

    public static let table = JSONTable(
        "AssetPage",
        "A page of assets.",
        unknown: .ignored,
        blank: AssetPage(token: .none, count: 0, assets: []),
        resultFields + [
            .required("assets", \.assets, .list(of: .object(Asset.self), limit: Projection.maxIDs), "The assets."),
            .defaulted(
                "missing",
                \.missing,
                .list(of: .id(), limit: 10_000),
                "Requested identifiers that no asset has.",
                default: []
            ),
            .defaulted(
                "trashed",
                \.trashed,
                .list(of: .id(), limit: 10_000),
                "Requested identifiers of assets in the trash; a fetch with inTrash returns them.",
                default: []
            ),
            .defaulted(
                "quarantined",
                \.quarantined,
                .list(of: .object(QuarantinedResource.self), limit: 100_000),
                "Quarantined bytes of these assets, and why.",
                default: []
            ),
        ]
    )
}

/// The result of `fetch.collections`.
public struct CollectionPage: ResultPage {
    public var token: ChangeToken
    public var sequence: Int64
    public var count: Int
    /// The albums and other collections of the page.
    public var collections: [AssetCollection]
    /// For a folder's children: the folders of the page.
    public var lists: [CollectionList]
    /// For a folder's children: ids of the collections and folders of the page, in their common order.
    public var order: [ObjectID]

    public init(
        token: ChangeToken,
        count: Int,
        collections: [AssetCollection],
        lists: [CollectionList] = [],
        order: [ObjectID] = []
    ) {
        self.token = token
        self.sequence = token.sequence
        self.count = count
        self.collections = collections
        self.lists = lists
        self.order = order
    }

    public static let method = "fetch.collections"
    public static let request = FetchCollections.parameters(
        "A page of the collections of a fetch result.",
        of: .collections,
        "collections",
        members: AssetCollection.table.fields.map(\.name)
            + CollectionList.table.fields.map(\.name).filter { name in
                !AssetCollection.table.fields.contains { $0.name == name }
            }
    )

    public static let table = JSONTable(
        "CollectionPage",
        "A page of collections.",
        unknown: .ignored,
        blank: CollectionPage(token: .none, count: 0, collections: []),
        resultFields + [
            .required(
                "collections",
                \.collections,
                .list(of: .object(AssetCollection.self), limit: Projection.maxIDs),
                "The collections; for a folder's children, the albums."
            ),
            .defaulted(
                "lists",
                \.lists,
                .list(of: .object(CollectionList.self), limit: Projection.maxIDs),
                "For a folder's children: the folders.",
                default: []
            ),
            .defaulted(
                "order",
                \.order,
                .list(of: .id(), limit: Projection.maxIDs),
                "For a folder's children: ids of albums and folders in their common order.",
                default: []
            ),
        ]
    )
}

/// The result of `fetch.lists`.
public struct ListPage: ResultPage {
    public var token: ChangeToken
    public var sequence: Int64
    public var count: Int
    /// The folders or moment lists of the page.
    public var lists: [CollectionList]

    public init(token: ChangeToken, count: Int, lists: [CollectionList]) {
        self.token = token
        self.sequence = token.sequence
        self.count = count
        self.lists = lists
    }

    public static let method = "fetch.lists"
    public static let request = FetchLists.parameters(
        "A page of the folders or moment lists of a fetch result.",
        of: .lists,
        "lists",
        members: CollectionList.table.fields.map(\.name)
    )

    public static let table = JSONTable(
        "ListPage",
        "A page of lists.",
        unknown: .ignored,
        blank: ListPage(token: .none, count: 0, lists: []),
        resultFields + [
            .required("lists", \.lists, .list(of: .object(CollectionList.self), limit: Projection.maxIDs), "Lists.")
        ]
    )
}
