import GRDB
import PhotoModel

/// How the library is searched for a page.
enum SearchApproach {
    /// Through the index of what is asked for; where its order is another one, all that is found is sorted.
    case narrow
    /// Through the index of the order, leaving out what is not asked for: where much of the library is asked for, a page is
    /// full long before everything would have been sorted.
    case inOrder

    /// By the counters: what is found sooner.
    init(_ fetch: Fetch, _ window: FetchStore.Window, _ database: Database) throws {
        self = .narrow
        guard fetch.countsAsVisible, let count = window.count, let name = fetch.counter, !fetch.isOfVideosByDuration,
            !fetch.hasUsualOrder || (fetch.isOfOneMedium && fetch.sort.first?.key != .creationDate)
        else { return }
        let (end, isFar) = (fetch.offset + min(window.from, .max / 2)).addingReportingOverflow(count)
        guard !isFar else { return }
        let found = Double(try CounterChanges.value(of: name, database))
        let all = Double(try CounterChanges.value(of: "visible", database))
        // A page ends after `end * all / found` rows of the order.
        if found * found > Double(end) * all { self = .inOrder }
    }
}

extension Fetch {
    /// Whether the indexes of smart albums and keywords have the order.
    var hasUsualOrder: Bool { sort.first?.key.isUsualOrder ?? true }

    /// Whether it is of videos, shortest or longest first: they are all that has a duration, so that the order of the whole
    /// library tells nothing about them.
    var isOfVideosByDuration: Bool {
        guard sort.first?.key == .duration, case .assets(let source) = kind else { return false }
        if source == .library, predicate == nil { return mediaType == .video }
        return source == .smartAlbum(.videos) || source == .library && predicate?.root.smartAlbum == .videos
    }

    /// The value that all of it have for a key, where what is asked for says so.
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

    /// Whether only the kind of medium is asked for, whose index has the order of capture alone.
    var isOfOneMedium: Bool {
        if mediaType != nil { return predicate == nil }
        if case .comparison(.mediaType, .equal, _) = predicate?.root { return true }
        return false
    }
}

extension PredicateKey {
    var isUsualOrder: Bool { self == .creationDate || self == .addedDate }
}
