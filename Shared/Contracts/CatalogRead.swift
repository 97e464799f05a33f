/// A request to the catalog that changes nothing, so every catalog of a library can answer it. All others are for the
/// catalog that writes.
public protocol CatalogRead: Request {
    /// True if it may be sent to a second catalog while the first one has not answered. False for requests that wait,
    /// that cost much, or that are about something in the memory or on the disk of one catalog.
    static var mayBeAskedTwice: Bool { get }
}

extension CatalogRead {
    public static var mayBeAskedTwice: Bool { true }
}

/// `fetch.assets`, `fetch.collections` and `fetch.lists`.
extension FetchPage: CatalogRead {}
extension FetchCounts: CatalogRead {}
extension FindInFetch: CatalogRead {}
extension FetchObjects: CatalogRead {}
extension FetchKeyAssets: CatalogRead {}
extension FetchDuplicates: CatalogRead {}
extension FetchCan: CatalogRead {}
extension IDsToCloud: CatalogRead {}
extension IDsToLocal: CatalogRead {}
extension ChangesDetails: CatalogRead {}
extension DetailsDiff: CatalogRead {}
extension ChangesSince: CatalogRead {}
extension CurrentToken: CatalogRead {}
extension SupportsResources: CatalogRead {}
extension ListQuarantine: CatalogRead {}
extension ListGrants: CatalogRead {}
extension GrantHistory: CatalogRead {}
extension GrantStatus: CatalogRead {}
extension Discover: CatalogRead {}
extension Health: CatalogRead {}

extension FetchKeys: CatalogRead { public static var mayBeAskedTwice: Bool { false } }
extension ChangesFollow: CatalogRead { public static var mayBeAskedTwice: Bool { false } }
extension CreateTransient: CatalogRead { public static var mayBeAskedTwice: Bool { false } }
extension ReleaseTransient: CatalogRead { public static var mayBeAskedTwice: Bool { false } }
extension EditsStatus: CatalogRead { public static var mayBeAskedTwice: Bool { false } }
extension ListUploadJobs: CatalogRead { public static var mayBeAskedTwice: Bool { false } }
extension LibraryStatus: CatalogRead { public static var mayBeAskedTwice: Bool { false } }
extension ReadResource: CatalogRead { public static var mayBeAskedTwice: Bool { false } }
extension DownloadResource: CatalogRead { public static var mayBeAskedTwice: Bool { false } }
extension ExportResource: CatalogRead { public static var mayBeAskedTwice: Bool { false } }
extension StorageStatus: CatalogRead { public static var mayBeAskedTwice: Bool { false } }
extension MetricsRequest: CatalogRead { public static var mayBeAskedTwice: Bool { false } }
