import PhotoModel

/// Makes change details from net changes and the result as it is now: what it costs follows the changes, not the list.
///
/// Entities whose key changed, that came or that left are *lifted* out of the order; all others *stay*, and stand in
/// the same order before and after. A position before is the number of stays before it, which the tree of now knows,
/// and of lifted ones before it. Offset and limit cut a window out of both lists; what an insertion pushes over its
/// edge is removed, what a removal draws in is inserted (spec P-04).
struct DetailsMaker {
    private let tree: KeyTree
    /// By their key before, and by their key after: those whose key is another now.
    private let taken: [NetChange]
    private let placed: [NetChange]
    /// Those that changed where they stand.
    private let still: [NetChange]
    /// Positions before, of `taken`, and after, of `placed`.
    private var before: [Int] = []
    private var after: [Int] = []
    private let countBefore: Int
    /// What of the whole lists the fetch shows.
    private let windowBefore: Range<Int>
    private let windowAfter: Range<Int>

    /// - Parameters:
    ///   - changes: of each entity at most one
    ///   - tree: the whole result after them
    init(_ changes: [NetChange], _ tree: KeyTree, of fetch: Fetch) {
        self.tree = tree
        func sorted(_ key: KeyPath<NetChange, ResultKey?>) -> [NetChange] {
            changes.filter { $0[keyPath: key] != nil && $0.before != $0.after }
                .sorted { ($0[keyPath: key]?.bytes ?? []).lexicographicallyPrecedes($1[keyPath: key]?.bytes ?? []) }
        }
        taken = sorted(\.before)
        placed = sorted(\.after)
        still = changes.filter { $0.before != nil && $0.before == $0.after }
        countBefore = tree.count - placed.count + taken.count
        windowBefore = fetch.shown(of: countBefore)
        windowAfter = fetch.shown(of: tree.count)
        after = placed.map { tree.rank(of: $0.after?.bytes ?? []) }
        before = taken.enumerated().map { index, change in staysBefore(change.before) + index }
    }

    /// How many stays stand before a key.
    private func staysBefore(_ key: ResultKey?) -> Int {
        guard let key else { return 0 }
        return tree.rank(of: key.bytes) - Self.count(placed, \.after, below: key)
    }

    /// How many of some changes, sorted by a key, have it below another.
    private static func count(
        _ changes: [NetChange],
        _ member: KeyPath<NetChange, ResultKey?>,
        below key: ResultKey
    ) -> Int {
        var (low, high) = (0, changes.count)
        while low < high {
            let middle = (low + high) / 2
            if let other = changes[middle][keyPath: member], other < key { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// The position of the stay with a number, among lifted ones that stand at some positions.
    private static func position(ofStay number: Int, among lifted: [Int]) -> Int {
        // Those that stand before it: the k-th has lifted[k] - k stays before itself.
        var (low, high) = (0, lifted.count)
        while low < high {
            let middle = (low + high) / 2
            if lifted[middle] - middle <= number { low = middle + 1 } else { high = middle }
        }
        return number + low
    }

    /// The numbers of the stays within a window.
    private static func stays(in window: Range<Int>, among lifted: [Int]) -> Range<Int> {
        func below(_ position: Int) -> Int {
            var (low, high) = (0, lifted.count)
            while low < high {
                let middle = (low + high) / 2
                if lifted[middle] < position { low = middle + 1 } else { high = middle }
            }
            return position - low
        }
        let lower = below(window.lowerBound)
        return lower..<max(lower, below(window.upperBound))
    }

    /// The details; nil where the result is the same and nothing in it changed.
    func details() -> ChangeDetails? {
        var details = ChangeDetails(countBefore: windowBefore.count, countAfter: windowAfter.count)
        addStays(to: &details)
        let survivors = addLifted(to: &details)
        addMoves(survivors, to: &details)
        for change in still {
            guard let key = change.after else { continue }
            let number = staysBefore(key)
            let pair = ChangeDetails.Pair(
                id: change.id,
                before: Self.position(ofStay: number, among: before),
                after: Self.position(ofStay: number, among: after)
            )
            if let pair = shown(pair) { details.changed.append(pair) }
        }
        details.removed.sort { $0.index < $1.index }
        details.inserted.sort { $0.index < $1.index }
        details.changed.sort { $0.after < $1.after }
        return details.isEmpty ? nil : details
    }

    private func shown(_ pair: ChangeDetails.Pair) -> ChangeDetails.Pair? {
        guard windowBefore.contains(pair.before), windowAfter.contains(pair.after) else { return nil }
        return ChangeDetails.Pair(
            id: pair.id,
            before: pair.before - windowBefore.lowerBound,
            after: pair.after - windowAfter.lowerBound
        )
    }

    /// Stays that are pushed or drawn over an edge of the window.
    private func addStays(to details: inout ChangeDetails) {
        let then = Self.stays(in: windowBefore, among: before)
        let now = Self.stays(in: windowAfter, among: after)
        for number in Self.difference(then, now) {
            let position = Self.position(ofStay: number, among: before) - windowBefore.lowerBound
            details.removed += place(ofStay: number, at: position)
        }
        for number in Self.difference(now, then) {
            let position = Self.position(ofStay: number, among: after) - windowAfter.lowerBound
            details.inserted += place(ofStay: number, at: position)
        }
    }

    private func place(ofStay number: Int, at index: Int) -> [ChangeDetails.Place] {
        let position = Self.position(ofStay: number, among: after)
        return tree.ids(at: position..<position + 1).map { ChangeDetails.Place(id: $0, index: index) }
    }

    private static func difference(_ range: Range<Int>, _ other: Range<Int>) -> [Int] {
        guard range.overlaps(other) else { return Array(range) }
        return Array(range.lowerBound..<max(range.lowerBound, other.lowerBound))
            + Array(min(range.upperBound, other.upperBound)..<range.upperBound)
    }

    /// Lifted ones that the window shows before, after or both.
    ///
    /// - Returns: the last, by their positions in the whole lists
    private func addLifted(to details: inout ChangeDetails) -> [ChangeDetails.Pair] {
        let landed = Dictionary(
            zip(placed, after).map { ($0.id, $1) },
            uniquingKeysWith: { first, _ in first }
        )
        var survivors: [ChangeDetails.Pair] = []
        var seen: Set<ObjectID> = []
        for (change, position) in zip(taken, before) where windowBefore.contains(position) {
            if let landing = landed[change.id], windowAfter.contains(landing) {
                seen.insert(change.id)
                survivors.append(ChangeDetails.Pair(id: change.id, before: position, after: landing))
            } else {
                details.removed.append(.init(id: change.id, index: position - windowBefore.lowerBound))
            }
        }
        for (change, position) in zip(placed, after)
        where windowAfter.contains(position) && !seen.contains(change.id) {
            details.inserted.append(.init(id: change.id, index: position - windowAfter.lowerBound))
        }
        return survivors
    }

    /// Survivors with another key have changed; they have moved where they have passed a stay, or one another.
    private func addMoves(_ survivors: [ChangeDetails.Pair], to details: inout ChangeDetails) {
        // Between the same two stays as before: only their order among themselves counts.
        var gaps: [Int: [ChangeDetails.Pair]] = [:]
        var moved: [ChangeDetails.Pair] = []
        for pair in survivors {
            let gap = pair.before - Self.index(of: pair.before, in: before)
            if gap == pair.after - Self.index(of: pair.after, in: after) {
                gaps[gap, default: []].append(pair)
            } else {
                moved.append(pair)
            }
        }
        for pairs in gaps.values where pairs.count > 1 {
            let run = Set(ChangeDetails.longestIncreasingRun(pairs.map(\.after)))
            moved += pairs.enumerated().filter { !run.contains($0.offset) }.map(\.element)
        }
        details.moved = moved.compactMap(shown).sorted { $0.after < $1.after }
        details.changed += survivors.compactMap(shown)
    }

    private static func index(of position: Int, in positions: [Int]) -> Int {
        var (low, high) = (0, positions.count)
        while low < high {
            let middle = (low + high) / 2
            if positions[middle] < position { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

extension Fetch {
    /// The positions that offset and limit leave of a whole result.
    func shown(of count: Int) -> Range<Int> {
        let start = min(offset, count)
        let length = limit > 0 ? min(limit, count - start) : count - start
        return start..<start + length
    }
}
