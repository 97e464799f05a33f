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
        guard fetch.countsAsVisible, let count = window.count, let name = fetch.counter,
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
