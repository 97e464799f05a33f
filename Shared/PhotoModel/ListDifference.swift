/// The difference between two lists of names of any type, each without repetitions. ``ChangeDetails`` is the same with
/// entity identifiers.
public struct ListDifference<Name: Hashable & Sendable>: Sendable {
    /// The length of the list before.
    public var countBefore: Int
    /// The length of the list after.
    public var countAfter: Int
    /// The removed names, in ascending order of the index before.
    public var removed: [(name: Name, index: Int)] = []
    /// The inserted names, in ascending order of the index after.
    public var inserted: [(name: Name, index: Int)] = []
    /// The moved names, a minimal set, in ascending order of the index after.
    public var moved: [(name: Name, before: Int, after: Int)] = []
    /// The changed names, in ascending order of the index after.
    public var changed: [(name: Name, before: Int, after: Int)] = []

    /// Returns the difference; nil if the lists are equal and contain no changed element.
    ///
    /// Elements of a common prefix and suffix cost one comparison each; the rest costs O(n log n).
    public static func between(_ before: [Name], _ after: [Name], changed: Set<Name>) -> ListDifference? {
        var difference = ListDifference(countBefore: before.count, countAfter: after.count)
        let shorter = min(before.count, after.count)
        var front = 0
        while front < shorter, before[front] == after[front] { front += 1 }
        var back = 0
        while back < shorter - front, before[before.count - 1 - back] == after[after.count - 1 - back] { back += 1 }
        let (oldEnd, newEnd) = (before.count - back, after.count - back)
        difference.compare(before, front..<oldEnd, after, front..<newEnd)
        if !changed.isEmpty {
            // The common prefix and suffix: the same index, or the same distance from the end.
            let (shift, moved) = (oldEnd - newEnd, difference.pairs(before, front..<oldEnd, after, front..<newEnd))
            for index in 0..<front where changed.contains(after[index]) {
                difference.changed.append((after[index], index, index))
            }
            difference.changed += moved.filter { changed.contains($0.name) }.sorted { $0.after < $1.after }
            for index in newEnd..<after.count where changed.contains(after[index]) {
                difference.changed.append((after[index], index + shift, index))
            }
        }
        let isSame =
            difference.removed.isEmpty && difference.inserted.isEmpty && difference.moved.isEmpty
            && difference.changed.isEmpty
        return isSame ? nil : difference
    }

    private init(countBefore: Int, countAfter: Int) {
        self.countBefore = countBefore
        self.countAfter = countAfter
    }

    private func pairs(
        _ before: [Name],
        _ old: Range<Int>,
        _ after: [Name],
        _ new: Range<Int>
    ) -> [(name: Name, before: Int, after: Int)] {
        guard !old.isEmpty, !new.isEmpty else { return [] }
        let indexes = Dictionary(new.map { (after[$0], $0) }, uniquingKeysWith: { first, _ in first })
        return old.compactMap { index in indexes[before[index]].map { (before[index], index, $0) } }
    }

    private mutating func compare(_ before: [Name], _ old: Range<Int>, _ after: [Name], _ new: Range<Int>) {
        let common = pairs(before, old, after, new)
        let (commonBefore, commonAfter) = (Set(common.map(\.before)), Set(common.map(\.after)))
        removed = old.filter { !commonBefore.contains($0) }.map { (before[$0], $0) }
        inserted = new.filter { !commonAfter.contains($0) }.map { (after[$0], $0) }
        // A longest subsequence of common names in unchanged order does not move; the others do.
        let unmoved = Set(ChangeDetails.longestIncreasingRun(common.map(\.after)))
        moved = common.enumerated().filter { !unmoved.contains($0.offset) }.map(\.element)
            .sorted { $0.after < $1.after }
    }

    /// All names that are listed.
    public var elements: Set<Name> {
        Set(removed.map(\.name) + inserted.map(\.name) + moved.map(\.name) + changed.map(\.name))
    }

    /// Returns the details, with names replaced by identifiers.
    public func named(_ id: (Name) throws -> ObjectID) rethrows -> ChangeDetails {
        var details = ChangeDetails(countBefore: countBefore, countAfter: countAfter)
        details.removed = try removed.map { ChangeDetails.IndexedEntity(id: try id($0.name), index: $0.index) }
        details.inserted = try inserted.map { ChangeDetails.IndexedEntity(id: try id($0.name), index: $0.index) }
        details.moved = try moved.map { ChangeDetails.Pair(id: try id($0.name), before: $0.before, after: $0.after) }
        details.changed = try changed.map {
            ChangeDetails.Pair(id: try id($0.name), before: $0.before, after: $0.after)
        }
        return details
    }
}

extension ChangeDetails {
    /// The number of entries in all lists.
    public var listedCount: Int { removed.count + inserted.count + moved.count + changed.count }

    /// Drops the lists and keeps only the fact that something changed (S-24, S-69).
    public mutating func dropLists() {
        self = ChangeDetails(countBefore: countBefore, countAfter: countAfter)
        hasIncrementalChanges = false
    }
}
