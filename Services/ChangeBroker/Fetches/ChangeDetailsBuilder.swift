import PhotoModel

/// Builds change details from net changes and the current result. The cost follows the changes, not the size of the
/// list.
///
/// Entities whose key changed, that were inserted or that were removed are *lifted* out of the order. All others
/// *stay*, and have the same relative order before and after. A position before is the number of stays before it, which
/// the current tree knows, plus the number of lifted entities before it. Offset and limit cut a window out of both
/// lists: an entity that an insertion pushes over its edge is removed, and one that a removal pulls in is inserted
/// (P-04).
struct ChangeDetailsBuilder {
    private let tree: KeyTree
    /// The changes with a different key, sorted by the key before (`taken`) and by the key after (`placed`).
    private let taken: [NetChange]
    private let placed: [NetChange]
    /// The changes that kept their key.
    private let still: [NetChange]
    /// The positions before of `taken`, and the positions after of `placed`.
    private var before: [Int] = []
    private var after: [Int] = []
    private let countBefore: Int
    /// The window of the whole list that the fetch shows, before and after.
    private let windowBefore: Range<Int>
    private let windowAfter: Range<Int>

    /// - Parameters:
    ///   - changes: at most one for each entity
    ///   - tree: the whole result after the changes
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
        before = taken.enumerated().map { index, change in keptBefore(change.before) + index }
    }

    /// Returns the number of stays before a key.
    private func keptBefore(_ key: ResultKey?) -> Int {
        guard let key else { return 0 }
        return tree.rank(of: key.bytes) - Self.count(placed, \.after, below: key)
    }

    /// Returns the number of changes, sorted by a key, whose key is below another.
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

    /// Returns the position of a stay, given its number and the sorted positions of the lifted entities.
    private static func position(ofStay number: Int, among lifted: [Int]) -> Int {
        // Counts the lifted entities before it: the k-th has lifted[k] - k stays before it.
        var (low, high) = (0, lifted.count)
        while low < high {
            let middle = (low + high) / 2
            if lifted[middle] - middle <= number { low = middle + 1 } else { high = middle }
        }
        return number + low
    }

    /// Returns the numbers of the stays within a window.
    private static func keptIndexes(in window: Range<Int>, among lifted: [Int]) -> Range<Int> {
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

    /// Returns the details; nil if the result is the same and nothing in it changed.
    func details() -> ChangeDetails? {
        var details = ChangeDetails(countBefore: windowBefore.count, countAfter: windowAfter.count)
        addStays(to: &details)
        let survivors = addLifted(to: &details)
        addMoves(survivors, to: &details)
        for change in still {
            guard let key = change.after else { continue }
            let number = keptBefore(key)
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

    /// Adds the stays that are pushed or pulled over an edge of the window.
    private func addStays(to details: inout ChangeDetails) {
        let then = Self.keptIndexes(in: windowBefore, among: before)
        let now = Self.keptIndexes(in: windowAfter, among: after)
        for number in Self.difference(then, now) {
            let position = Self.position(ofStay: number, among: before) - windowBefore.lowerBound
            details.removed += place(ofStay: number, at: position)
        }
        for number in Self.difference(now, then) {
            let position = Self.position(ofStay: number, among: after) - windowAfter.lowerBound
            details.inserted += place(ofStay: number, at: position)
        }
    }

    private func place(ofStay number: Int, at index: Int) -> [ChangeDetails.IndexedEntity] {
        let position = Self.position(ofStay: number, among: after)
        return tree.ids(at: position..<position + 1).map { ChangeDetails.IndexedEntity(id: $0, index: index) }
    }

    private static func difference(_ range: Range<Int>, _ other: Range<Int>) -> [Int] {
        guard range.overlaps(other) else { return Array(range) }
        return Array(range.lowerBound..<max(range.lowerBound, other.lowerBound))
            + Array(min(range.upperBound, other.upperBound)..<range.upperBound)
    }

    /// Adds the lifted entities that the window shows before or after.
    ///
    /// - Returns: those shown both before and after, by their positions in the whole lists
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

    /// Adds the survivors, which have another key, as changed, and as moved if they passed a stay or one another.
    private func addMoves(_ survivors: [ChangeDetails.Pair], to details: inout ChangeDetails) {
        // Survivors between the same two stays as before: only their relative order counts.
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
    /// Returns the range of a whole result that offset and limit select.
    func shown(of count: Int) -> Range<Int> {
        let start = min(offset, count)
        let length = limit > 0 ? min(limit, count - start) : count - start
        return start..<start + length
    }
}
