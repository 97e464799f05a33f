public import JSONValue
public import PhotoModel

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
    static var request: JSONTable<FetchPage<Self>> { get }

    /// The token of the result.
    var token: ChangeToken { get set }
    var sequence: Int64 { get set }
    /// Number of objects in the whole result, after offset and limit.
    var count: Int { get set }
}

extension ResultPage {
    /// The fields that every page has about its result.
    static var ofResult: [JSONField<Self>] {
        [
            .required("token", \.token, .token, "Token of the result."),
            .sequence(\.sequence),
            .required("count", \.count, .count(0...Int.max), "Number of objects in the whole result."),
        ]
    }
}
