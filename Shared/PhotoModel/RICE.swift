public import JSONValue

/// Change details in PhotoKit's form: removed, inserted, changed, moved, in that order (S-68).
///
/// B is the before list, A the after list, and M is B after removals and insertions: inserted entities have the same
/// index in M as in A. There can be as many moves as the list has entries, which is why ``ChangeDetails`` is the wire
/// form.
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
    /// Indexes in M of changed entities, ascending: what to reload if the steps are followed literally.
    public var changedIndexes: [Int] = []
    /// Indexes in A of changed entities, ascending.
    public var changedIndexesAfter: [Int] = []
    /// Indexes in B of changed entities, ascending: what list views reload.
    public var changedIndexesBefore: [Int] = []
    /// The simultaneous moves from M to A: every survivor whose index in A differs from that in M.
    public var moves: [Move] = []
    /// The same as a sequence of single moves, each relative to the list after the previous one. The sequence is
    /// minimal.
    public var moveScript: [Move] = []

    public init() {}

    public var hasMoves: Bool { !moves.isEmpty }

    private static let indexes = JSONType<[Int]>.list(of: .count(0...Int(Int32.max)), limit: .max)

    public static let table = JSONTable(
        "RICE",
        "Change details in PhotoKit's form. M is the before list after removals and insertions.",
        unknown: .ignored,
        blank: RICE(),
        [
            .required("removedIndexes", \.removedIndexes, indexes, "In the before list."),
            .required("insertedIndexes", \.insertedIndexes, indexes, "In the after list and in M."),
            .required("changedIndexes", \.changedIndexes, indexes, "In M."),
            .required("changedIndexesAfter", \.changedIndexesAfter, indexes, "In the after list."),
            .required("changedIndexesBefore", \.changedIndexesBefore, indexes, "In the before list."),
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
        // Entities are numbered: survivors and removed ones by their index in B, inserted ones from `countBefore` on.
        let after = try rearranged(Array(0..<countBefore), inserted: Array(countBefore..<countBefore + inserted.count))
        let gone = Set(removed.map(\.index))
        var staying = (0..<countBefore).lazy.filter { !gone.contains($0) }.makeIterator()
        let middle = after.map { $0 >= countBefore ? $0 : staying.next() ?? $0 }

        var indexInAfter = [Int](repeating: 0, count: countBefore + inserted.count)
        for (index, entity) in after.enumerated() { indexInAfter[entity] = index }
        var indexInMiddle = indexInAfter
        for (index, entity) in middle.enumerated() { indexInMiddle[entity] = index }

        var rice = RICE()
        rice.removedIndexes = removed.map(\.index).sorted()
        rice.insertedIndexes = inserted.map(\.index).sorted()
        let survivors = changed.map(\.before).filter { (0..<countBefore).contains($0) && !gone.contains($0) }.sorted()
        guard survivors.count == changed.count else {
            throw ChangeDetailsMismatch("a changed entity is not in both lists")
        }
        rice.changedIndexesBefore = survivors
        rice.changedIndexes = survivors.map { indexInMiddle[$0] }.sorted()
        rice.changedIndexesAfter = survivors.map { indexInAfter[$0] }.sorted()
        let targets = middle.map { indexInAfter[$0] }
        rice.moves = targets.enumerated().filter { $0.offset != $0.element }
            .map { RICE.Move(from: $0.offset, to: $0.element) }
        rice.moveScript = Self.moveScript(targets)
        return rice
    }

    /// The longest list for which index sets are derived.
    public static let maxRiceCount = 10_000_000

    /// Returns single moves that bring the element at each position to its target.
    ///
    /// A longest subsequence that is already in order stays. The others move one by one, in the order of their targets,
    /// each directly behind the element that will precede it. Elements that have not moved yet keep their place between
    /// the settled ones, so positions are counted and nothing is moved.
    static func moveScript(_ targets: [Int]) -> [RICE.Move] {
        let still = Set(longestIncreasingRun(targets))
        var sources = [Int](repeating: 0, count: targets.count)
        for (source, target) in targets.enumerated() { sources[target] = source }
        // Settled elements are counted behind their anchor: the unmoved element that they follow, or the front (0).
        var waiting = FenwickTree(targets.count + 1)
        var settled = FenwickTree(targets.count + 1)
        for source in targets.indices {
            if still.contains(source) { settled.add(1, at: source + 1) } else { waiting.add(1, at: source + 1) }
        }
        var script: [RICE.Move] = []
        var anchor = 0
        for (target, source) in sources.enumerated() {
            if still.contains(source) {
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
