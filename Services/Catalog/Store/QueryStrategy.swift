import PhotoModel

/// A way to search the library for a page.
enum QueryStrategy {
    /// Uses the index of the condition; if the sort order differs, everything found is sorted.
    case narrow
    /// Scans the index of the sort order and skips what does not match. If much of the library matches, a page is full
    /// long before everything found would have been sorted.
    case inOrder

    /// Chooses the cheaper approach by the library's counters.
    init(_ fetch: Fetch, _ window: FetchStore.Window, _ database: SQLConnection) throws {
        self = .narrow
        guard database.dialect == .sqlite, fetch.countsAsVisible, let count = window.count, let name = fetch.counter,
            !fetch.isOfVideosByDuration,
            !fetch.hasUsualOrder || (fetch.isOfOneMedium && fetch.sort.first?.key != .creationDate)
        else { return }
        let (end, isFar) = (fetch.offset + min(window.from, .max / 2)).addingReportingOverflow(count)
        guard !isFar else { return }
        let found = Double(try CounterChanges.value(of: name, database))
        let all = Double(try CounterChanges.value(of: "visible", database))
        // A page is full after about `end * all / found` rows of the order.
        if found * found > Double(end) * all { self = .inOrder }
    }
}

extension Fetch {
    /// True if the indexes of smart albums and keywords have the sort order.
    var hasUsualOrder: Bool { sort.first?.key.isUsualOrder ?? true }

    /// True for a fetch of videos by duration. Only videos have a duration, so the distribution over the whole library
    /// says nothing about their positions in its order.
    var isOfVideosByDuration: Bool {
        guard sort.first?.key == .duration, case .assets(let source) = kind else { return false }
        if source == .library, predicate == nil { return mediaType == .video }
        return source == .smartAlbum(.videos) || source == .library && predicate?.root.smartAlbum == .videos
    }

    /// The value that every asset of the result has for a key, if the fetch determines one.
    func pinnedValue(of key: PredicateKey) -> Int64? {
        if key == .mediaType, let mediaType { return Int64(mediaType.number) }
        switch (key, kind) {
        case (.isFavorite, .assets(.smartAlbum(.favorites))): return 1
        case (.mediaType, .assets(.smartAlbum(.videos))): return Int64(MediaType.video.number)
        default: break
        }
        guard case .comparison(key, .equal, .integer(let number)) = predicate?.root else { return nil }
        return number
    }

    /// True if the media type is the only condition; its index has the order by capture date only.
    var isOfOneMedium: Bool {
        if mediaType != nil { return predicate == nil }
        if case .comparison(.mediaType, .equal, _) = predicate?.root { return true }
        return false
    }
}

extension PredicateKey {
    var isUsualOrder: Bool { self == .creationDate || self == .addedDate }
}
