public import JSONValue

/// The difference between two results of one fetch: `PHFetchResultChangeDetails` in wire form.
///
/// Its size depends on the change, not on the list. To get the list after the change, take out the removed and moved
/// entries together, then insert the inserted and moved entries in ascending order; entries that are not listed keep
/// their order. PhotoKit's RICE index sets are derived from it by ``rice``.
public struct ChangeDetails: Sendable, Hashable, JSONTabled {
    /// A removed or inserted entity and its index in the list before or after the change.
    public struct IndexedEntity: Sendable, Hashable, JSONTabled {
        /// The entity.
        public var id: ObjectID
        /// The index, from 0.
        public var index: Int

        public init(id: ObjectID, index: Int) {
            self.id = id
            self.index = index
        }

        public static let table = JSONTable(
            "Place",
            "An entity and its index in a list.",
            unknown: .ignored,
            blank: IndexedEntity(id: .none, index: 0),
            [
                .required("id", \.id, .id(), "The entity."),
                .required("index", \.index, .count(ChangeDetails.indexes), "Its index, from 0."),
            ]
        )
    }

    /// An entity that is in both lists, with its index in each.
    public struct Pair: Sendable, Hashable, JSONTabled {
        /// The entity.
        public var id: ObjectID
        /// The index in the list before the change, from 0.
        public var before: Int
        /// The index in the list after the change, from 0.
        public var after: Int

        public init(id: ObjectID, before: Int, after: Int) {
            self.id = id
            self.before = before
            self.after = after
        }

        public static let table = JSONTable(
            "Pair",
            "An entity that is in both lists.",
            unknown: .ignored,
            blank: Pair(id: .none, before: 0, after: 0),
            [
                .required("id", \.id, .id(), "The entity."),
                .required(
                    "before",
                    \.before,
                    .count(ChangeDetails.indexes),
                    "Its index in the list before the change."
                ),
                .required("after", \.after, .count(ChangeDetails.indexes), "Its index in the list after the change."),
            ]
        )
    }

    /// False if the caller requested no details or there would be too many. Then the list after the change replaces the
    /// whole list before it, and the lists below are empty (S-69).
    public var hasIncrementalChanges = true
    /// The length of the list before the change.
    public var countBefore: Int
    /// The length of the list after the change.
    public var countAfter: Int
    /// In ascending order of the index in the list before the change.
    public var removed: [IndexedEntity] = []
    /// In ascending order of the index in the list after the change.
    public var inserted: [IndexedEntity] = []
    /// A minimal set of moves, in ascending order of the index in the list after the change.
    public var moved: [Pair] = []
    /// Entities in both lists whose properties or pixels changed, moved or not; in ascending order of the index in the
    /// list after the change.
    public var changed: [Pair] = []

    public init(countBefore: Int, countAfter: Int) {
        self.countBefore = countBefore
        self.countAfter = countAfter
    }

    fileprivate static let indexes = 0...Int(Int32.max)

    public static let table = JSONTable(
        "ChangeDetails",
        "The difference between two results of one fetch. Take out removed and moved (before) together, then put in "
            + "inserted and moved (after) in ascending order.",
        unknown: .ignored,
        blank: ChangeDetails(countBefore: 0, countAfter: 0),
        [
            .required(
                "hasIncrementalChanges",
                \.hasIncrementalChanges,
                .flag,
                "False: fetch again, the lists below are empty."
            ),
            .required("countBefore", \.countBefore, .count(indexes), "Length of the list before the change."),
            .required("countAfter", \.countAfter, .count(indexes), "Length of the list after the change."),
            .defaulted("removed", \.removed, entities, "Positions before, ascending.", default: []),
            .defaulted("inserted", \.inserted, entities, "Positions after, ascending.", default: []),
            .defaulted("moved", \.moved, pairs, "From before, to after; ascending by after.", default: []),
            .defaulted("changed", \.changed, pairs, "Both positions; ascending by after.", default: []),
        ]
    )

    private static let entities = JSONType<[IndexedEntity]>.list(of: .object(IndexedEntity.self), limit: 1_000_000)
    private static let pairs = JSONType<[Pair]>.list(of: .object(Pair.self), limit: 1_000_000)
}

extension ChangeDetails {
    /// Returns the difference between two results of one fetch, each without repetitions; `nil` if nothing changed
    /// (V9).
    ///
    /// - Parameters:
    ///   - before: the ids of the list before the change
    ///   - after: the ids of the list after the change
    ///   - changed: ids whose properties or pixels changed; ids that are not in both lists are ignored
    ///   - isIncremental: false if the caller needs to know only that something changed (S-24)
    /// - Complexity: O(n log n) in the length of the lists.
    public static func between(
        _ before: [ObjectID],
        _ after: [ObjectID],
        changed: Set<ObjectID> = [],
        isIncremental: Bool = true
    ) -> ChangeDetails? {
        guard var details = ListDifference.between(before, after, changed: changed)?.named({ $0 }) else { return nil }
        if !isIncremental { details.dropLists() }
        return details
    }

    /// True if no changes are listed.
    public var isEmpty: Bool { removed.isEmpty && inserted.isEmpty && moved.isEmpty && changed.isEmpty }

    /// Returns the positions of a longest strictly increasing subsequence, ascending.
    public static func longestIncreasingRun(_ values: [Int]) -> [Int] {
        // tails[k] is the position of the smallest value that ends a run of length k + 1.
        var tails: [Int] = []
        var previous = [Int?](repeating: nil, count: values.count)
        for (position, value) in values.enumerated() {
            var (low, high) = (0, tails.count)
            while low < high {
                let middle = (low + high) / 2
                if values[tails[middle]] < value { low = middle + 1 } else { high = middle }
            }
            previous[position] = low > 0 ? tails[low - 1] : nil
            if low < tails.count { tails[low] = position } else { tails.append(position) }
        }
        var run: [Int] = []
        var position = tails.last
        while let current = position {
            run.append(current)
            position = previous[current]
        }
        return run.reversed()
    }
}

// MARK: - Applying

/// An error for details that do not fit the list to which they are applied.
public struct ChangeDetailsMismatch: Error, Sendable, Equatable, CustomStringConvertible {
    /// The contradiction, for logs.
    public let description: String

    init(_ description: String) { self.description = description }
}

extension ChangeDetails {
    /// Returns the list after the change.
    ///
    /// - Throws: ``ChangeDetailsMismatch`` if the details are not incremental or belong to another list
    public func apply(to before: [ObjectID]) throws(ChangeDetailsMismatch) -> [ObjectID] {
        try check(before)
        return try rearranged(before, inserted: inserted.map(\.id))
    }

    private func check(_ before: [ObjectID]) throws(ChangeDetailsMismatch) {
        guard hasIncrementalChanges else { throw ChangeDetailsMismatch("not incremental: fetch again") }
        guard before.count == countBefore else {
            throw ChangeDetailsMismatch("the list has \(before.count) entries, the details are for \(countBefore)")
        }
        let expected = removed.map { ($0.index, $0.id) } + (moved + changed).map { ($0.before, $0.id) }
        for (index, id) in expected where !before.indices.contains(index) || before[index] != id {
            throw ChangeDetailsMismatch("\(id) is not at index \(index)")
        }
    }

    /// Applies the wire rule to any list of `countBefore` entries.
    func rearranged<Element>(
        _ before: [Element],
        inserted new: [Element]
    ) throws(ChangeDetailsMismatch) -> [Element] {
        guard before.count == countBefore, new.count == inserted.count else {
            throw ChangeDetailsMismatch("the list has another length than the details say")
        }
        let takenOut = Set(removed.map(\.index) + moved.map(\.before))
        guard takenOut.count == removed.count + moved.count, takenOut.allSatisfy(before.indices.contains) else {
            throw ChangeDetailsMismatch("positions before are repeated or out of range")
        }
        var incoming = [Element?](repeating: nil, count: computedCountAfter(before.count))
        func put(_ element: Element, at index: Int) throws(ChangeDetailsMismatch) {
            guard incoming.indices.contains(index), incoming[index] == nil else {
                throw ChangeDetailsMismatch("positions after are repeated or out of range")
            }
            incoming[index] = element
        }
        for (target, element) in zip(inserted, new) { try put(element, at: target.index) }
        for pair in moved { try put(before[pair.before], at: pair.after) }
        guard incoming.count == countAfter else {
            throw ChangeDetailsMismatch("the new list would have \(incoming.count) entries, not \(countAfter)")
        }
        var unmoved = before.indices.lazy.filter { !takenOut.contains($0) }.makeIterator()
        var after: [Element] = []
        after.reserveCapacity(incoming.count)
        for element in incoming {
            if let element {
                after.append(element)
            } else if let index = unmoved.next() {
                after.append(before[index])
            }
        }
        return after
    }

    /// Returns the length of the list after the change as computed from the lists themselves, so that a wrong
    /// `countAfter` cannot cause a large allocation.
    private func computedCountAfter(_ count: Int) -> Int { count - removed.count + inserted.count }
}
