public import JSONValue

/// Change details in PhotoKit's form: removed, inserted, changed, moved, in that order (S-68).
///
/// B is the list before the change, A the list after it, and M is B after removals and insertions: inserted entities
/// have the same index in M as in A. There can be as many moves as the list has entries, which is why ``ChangeDetails``
/// is the wire form.
public struct RICE: Sendable, Hashable, JSONTabled {
    /// A move of one entity.
    public struct Move: Sendable, Hashable, JSONTabled {
        /// The index before the move.
        public var from: Int
        /// The index after the move.
        public var to: Int

        public init(from: Int, to: Int) {
            self.from = from
            self.to = to
        }

        public static let table = JSONTable(
            "Move",
            "A move of one entity.",
            unknown: .ignored,
            blank: Move(from: 0, to: 0),
            [
                .required("from", \.from, .count(0...Int(Int32.max)), "Index before the move."),
                .required("to", \.to, .count(0...Int(Int32.max)), "Index after the move."),
            ]
        )
    }

    /// Indexes in B, ascending.
    public var removedIndexes: [Int] = []
    /// Indexes in A and in M, ascending; insert in this order.
    public var insertedIndexes: [Int] = []
    /// Indexes in M of changed entities, ascending: the entries to reload if the steps are applied one after another.
    public var changedIndexes: [Int] = []
    /// Indexes in A of changed entities, ascending.
    public var changedIndexesAfter: [Int] = []
    /// Indexes in B of changed entities, ascending: the entries that list views reload.
    public var changedIndexesBefore: [Int] = []
    /// The simultaneous moves from M to A: every entity of both lists whose index in A differs from that in M.
    public var moves: [Move] = []
    /// The same as a sequence of single moves, each relative to the list after the previous one. The sequence is
    /// minimal.
    public var moveScript: [Move] = []

    public init() {}

    /// True if any entity moves.
    public var hasMoves: Bool { !moves.isEmpty }

    private static let indexes = JSONType<[Int]>.list(of: .count(0...Int(Int32.max)), limit: .max)

    public static let table = JSONTable(
        "RICE",
        "Change details in PhotoKit's form. M is the list before the change after removals and insertions.",
        unknown: .ignored,
        blank: RICE(),
        [
            .required("removedIndexes", \.removedIndexes, indexes, "In the list before the change."),
            .required("insertedIndexes", \.insertedIndexes, indexes, "In the list after the change and in M."),
            .required("changedIndexes", \.changedIndexes, indexes, "In M."),
            .required("changedIndexesAfter", \.changedIndexesAfter, indexes, "In the list after the change."),
            .required("changedIndexesBefore", \.changedIndexesBefore, indexes, "In the list before the change."),
            .required("moves", \.moves, .list(of: .object(Move.self), limit: .max), "From M to after, all at once."),
            .required(
                "moveScript",
                \.moveScript,
                .list(of: .object(Move.self), limit: .max),
                "A sequence of moves, each relative to the list after the previous one."
            ),
        ]
    )
}

extension ChangeDetails {
    /// Derives PhotoKit's index sets; `nil` if the details are not incremental.
    ///
    /// - Throws: ``ChangeDetailsMismatch`` if the details contradict themselves
    /// - Complexity: O(n log n) in the length of the list.
    public func rice() throws(ChangeDetailsMismatch) -> RICE? {
        guard hasIncrementalChanges else { return nil }
        guard countBefore <= Self.maxRiceCount else {
            throw ChangeDetailsMismatch("the list is longer than \(Self.maxRiceCount); omit form \"rice\"")
        }
        // Entities are numbered: those of B by their index in B, inserted ones from `countBefore` on.
        let after = try rearranged(Array(0..<countBefore), inserted: Array(countBefore..<countBefore + inserted.count))
        let removedIndexes = Set(removed.map(\.index))
        var remaining = (0..<countBefore).lazy.filter { !removedIndexes.contains($0) }.makeIterator()
        let middle = after.map { $0 >= countBefore ? $0 : remaining.next() ?? $0 }

        var indexInAfter = [Int](repeating: 0, count: countBefore + inserted.count)
        for (index, entity) in after.enumerated() { indexInAfter[entity] = index }
        var indexInMiddle = indexInAfter
        for (index, entity) in middle.enumerated() { indexInMiddle[entity] = index }

        var rice = RICE()
        rice.removedIndexes = removed.map(\.index).sorted()
        rice.insertedIndexes = inserted.map(\.index).sorted()
        let changedIndexes = changed.map(\.before).sorted()
        guard changedIndexes.allSatisfy({ (0..<countBefore).contains($0) && !removedIndexes.contains($0) }) else {
            throw ChangeDetailsMismatch("a changed entity is not in both lists")
        }
        rice.changedIndexesBefore = changedIndexes
        rice.changedIndexes = changedIndexes.map { indexInMiddle[$0] }.sorted()
        rice.changedIndexesAfter = changedIndexes.map { indexInAfter[$0] }.sorted()
        let targets = middle.map { indexInAfter[$0] }
        rice.moves = targets.enumerated().filter { $0.offset != $0.element }
            .map { RICE.Move(from: $0.offset, to: $0.element) }
        rice.moveScript = Self.moveScript(targets)
        return rice
    }

    /// The maximum length of a list for which index sets are derived.
    public static let maxRiceCount = 10_000_000

    /// Returns single moves that bring the element at each position to its target.
    ///
    /// A longest subsequence that is already in order does not move. The others move one by one, in the order of their
    /// targets, each to the position directly after the element that will precede it. Elements that have not moved yet
    /// keep their position between the others, so counting gives the positions without an array that is rearranged.
    static func moveScript(_ targets: [Int]) -> [RICE.Move] {
        let unmoved = Set(longestIncreasingRun(targets))
        var sources = [Int](repeating: 0, count: targets.count)
        for (source, target) in targets.enumerated() { sources[target] = source }
        // Settled elements, which have moved or never move, are counted at their anchor: the last unmoved element up to
        // them, or the front (0).
        var waiting = FenwickTree(targets.count + 1)
        var settled = FenwickTree(targets.count + 1)
        for source in targets.indices {
            if unmoved.contains(source) { settled.add(1, at: source + 1) } else { waiting.add(1, at: source + 1) }
        }
        var script: [RICE.Move] = []
        var anchor = 0
        for (target, source) in sources.enumerated() {
            if unmoved.contains(source) {
                anchor = source + 1
                continue
            }
            waiting.add(-1, at: source + 1)
            let from = waiting.sum(through: source + 1) + settled.sum(through: source + 1)
            let to = target + waiting.sum(through: anchor)
            settled.add(1, at: anchor)
            if from != to { script.append(RICE.Move(from: from, to: to)) }
        }
        return script
    }
}

/// Counts by position, with prefix sums in logarithmic time (a Fenwick tree).
private struct FenwickTree {
    private var tree: [Int]

    init(_ count: Int) { tree = [Int](repeating: 0, count: count + 1) }

    mutating func add(_ amount: Int, at position: Int) {
        var index = position + 1
        while index < tree.count {
            tree[index] += amount
            index += index & -index
        }
    }

    func sum(through position: Int) -> Int {
        var index = position + 1
        var sum = 0
        while index > 0 {
            sum += tree[index]
            index -= index & -index
        }
        return sum
    }
}
