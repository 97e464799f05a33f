import PhotoModel

/// Builds change details from net changes and the current result. The cost follows the changes, not the size of the
/// list.
///
/// Entities that were inserted or removed, or whose key changed, are *repositioned*. All others are *unmoved*: they
/// have the same relative order before and after. The position of an entity before the changes is the number of
/// unmoved entities before it, which the current tree gives, plus the number of repositioned ones before it. Offset
/// and limit select a window of both lists: an entity that an insertion moves out of it is removed, and one that a
/// removal moves into it is inserted (P-04).
///
/// The positions are computed once. They serve all fetches that differ only in offset and limit, as long as the tree is
/// the same: for each of them only the entities in its windows are visited.
struct ChangeDetailsBuilder {
    private let tree: KeyTree
    /// The repositioned entities, in the order before the changes (`idsBefore`) and after them (`idsAfter`).
    private var idsBefore: [ObjectID] = []
    private var idsAfter: [ObjectID] = []
    /// The positions of `idsBefore` before the changes, and of `idsAfter` after them, both ascending.
    private var before: [Int] = []
    private var after: [Int] = []
    /// For each of `idsBefore` its position after the changes, and for each of `idsAfter` its position before them; -1
    /// if there is none.
    private var destinations: [Int]
    private var origins: [Int]
    /// The changed entities whose key is the same, and their numbers among the unmoved entities, ascending.
    private var changedIDs: [ObjectID] = []
    private var changedNumbers: [Int] = []
    private let countBefore: Int
    private let countAfter: Int

    /// - Parameters:
    ///   - changes: at most one for each entity
    ///   - tree: the whole result after the changes
    init(_ changes: [NetChange], _ tree: KeyTree) {
        self.tree = tree
        var (old, new, same): ([Int], [Int], [Int]) = ([], [], [])
        for index in changes.indices {
            guard changes[index].before != changes[index].after else {
                if changes[index].after != nil { same.append(index) }
                continue
            }
            if changes[index].before != nil { old.append(index) }
            if changes[index].after != nil { new.append(index) }
        }
        func before(_ index: Int) -> [UInt8] { changes[index].before?.bytes ?? [] }
        func after(_ index: Int) -> [UInt8] { changes[index].after?.bytes ?? [] }
        old.sort { KeyTree.precedes(before($0), before($1)) }
        new.sort { KeyTree.precedes(after($0), after($1)) }
        let keys = new.map(after)
        /// Returns the number of unmoved entities before a key.
        func unmovedCount(below key: [UInt8]) -> Int {
            tree.rank(of: key) - Self.firstIndex(keys.count) { !KeyTree.precedes(keys[$0], key) }
        }
        countAfter = tree.count
        countBefore = tree.count - new.count + old.count
        idsBefore = old.map { changes[$0].id }
        idsAfter = new.map { changes[$0].id }
        self.after = keys.map(tree.rank)
        self.before = old.enumerated().map { unmovedCount(below: before($1)) + $0 }
        destinations = [Int](repeating: -1, count: old.count)
        origins = [Int](repeating: -1, count: new.count)
        var newNumbers: [Int: Int] = [:]
        for (number, index) in new.enumerated() where changes[index].before != nil { newNumbers[index] = number }
        for (oldNumber, index) in old.enumerated() {
            guard let newNumber = newNumbers[index] else { continue }
            destinations[oldNumber] = self.after[newNumber]
            origins[newNumber] = self.before[oldNumber]
        }
        let numbers = same.map { (index: $0, number: unmovedCount(below: after($0))) }.sorted { $0.number < $1.number }
        changedIDs = numbers.map { changes[$0.index].id }
        changedNumbers = numbers.map(\.number)
    }

    // MARK: Positions

    /// Returns the first index below a count for which a condition is true, which must be true for all later ones; the
    /// count if there is none.
    private static func firstIndex(_ count: Int, where condition: (Int) -> Bool) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if condition(middle) { high = middle } else { low = middle + 1 }
        }
        return low
    }

    /// Returns the number of sorted values that are below another.
    private static func count(of values: [Int], below value: Int) -> Int {
        firstIndex(values.count) { values[$0] >= value }
    }

    /// Returns the indexes of the sorted values within a range.
    private static func indexes(of values: [Int], in range: Range<Int>) -> Range<Int> {
        let lower = count(of: values, below: range.lowerBound)
        return lower..<max(lower, count(of: values, below: range.upperBound))
    }

    /// Returns the position of an unmoved entity, given its number and the sorted positions of the repositioned ones.
    private static func position(ofUnmoved number: Int, among repositioned: [Int]) -> Int {
        // Counts the repositioned entities before it: the k-th has repositioned[k] - k unmoved entities before it.
        number + firstIndex(repositioned.count) { repositioned[$0] - $0 > number }
    }

    /// The windows of the whole lists that a fetch shows, as positions and as numbers of unmoved entities.
    private struct Windows {
        let before: Range<Int>
        let after: Range<Int>
        let unmovedBefore: Range<Int>
        let unmovedAfter: Range<Int>

        var unmoved: Range<Int> { unmovedBefore.clamped(to: unmovedAfter) }
    }

    private func windows(of fetch: Fetch) -> Windows {
        func unmoved(in window: Range<Int>, among repositioned: [Int]) -> Range<Int> {
            let lower = window.lowerBound - Self.count(of: repositioned, below: window.lowerBound)
            return lower..<max(lower, window.upperBound - Self.count(of: repositioned, below: window.upperBound))
        }
        let (windowBefore, windowAfter) = (fetch.shown(of: countBefore), fetch.shown(of: countAfter))
        return Windows(
            before: windowBefore,
            after: windowAfter,
            unmovedBefore: unmoved(in: windowBefore, among: before),
            unmovedAfter: unmoved(in: windowAfter, among: after)
        )
    }

    // MARK: Details

    /// Returns true if ``details(of:)`` returns any for a fetch.
    func isVisible(in fetch: Fetch) -> Bool {
        let windows = windows(of: fetch)
        if windows.unmovedBefore != windows.unmovedAfter,
            !(windows.unmovedBefore.isEmpty && windows.unmovedAfter.isEmpty)
        {
            return true
        }
        return !Self.indexes(of: before, in: windows.before).isEmpty
            || !Self.indexes(of: after, in: windows.after).isEmpty
            || !Self.indexes(of: changedNumbers, in: windows.unmoved).isEmpty
    }

    /// Returns the details for a fetch; nil if its result is the same and nothing in it changed.
    func details(of fetch: Fetch) -> ChangeDetails? {
        let windows = windows(of: fetch)
        var details = ChangeDetails(countBefore: windows.before.count, countAfter: windows.after.count)
        addUnmoved(windows, to: &details)
        for index in Self.indexes(of: changedNumbers, in: windows.unmoved) {
            let number = changedNumbers[index]
            details.changed.append(
                ChangeDetails.Pair(
                    id: changedIDs[index],
                    before: Self.position(ofUnmoved: number, among: before) - windows.before.lowerBound,
                    after: Self.position(ofUnmoved: number, among: after) - windows.after.lowerBound
                )
            )
        }
        let survivors = addRepositioned(windows, to: &details)
        if !survivors.isEmpty {
            addMoves(survivors, windows, to: &details)
            details.changed.sort { $0.after < $1.after }
        }
        details.removed.sort { $0.index < $1.index }
        details.inserted.sort { $0.index < $1.index }
        return details.isEmpty ? nil : details
    }

    /// Adds the unmoved entities that the changes of others have moved out of the window or into it.
    private func addUnmoved(_ windows: Windows, to details: inout ChangeDetails) {
        for number in Self.difference(windows.unmovedBefore, windows.unmovedAfter) {
            let position = Self.position(ofUnmoved: number, among: before) - windows.before.lowerBound
            details.removed += entity(ofUnmoved: number, at: position)
        }
        for number in Self.difference(windows.unmovedAfter, windows.unmovedBefore) {
            let position = Self.position(ofUnmoved: number, among: after) - windows.after.lowerBound
            details.inserted += entity(ofUnmoved: number, at: position)
        }
    }

    private func entity(ofUnmoved number: Int, at index: Int) -> [ChangeDetails.IndexedEntity] {
        let position = Self.position(ofUnmoved: number, among: after)
        return tree.ids(at: position..<position + 1).map { ChangeDetails.IndexedEntity(id: $0, index: index) }
    }

    private static func difference(_ range: Range<Int>, _ other: Range<Int>) -> [Int] {
        guard range.overlaps(other) else { return Array(range) }
        return Array(range.lowerBound..<max(range.lowerBound, other.lowerBound))
            + Array(min(range.upperBound, other.upperBound)..<range.upperBound)
    }

    /// Adds the repositioned entities that are in the window before or after the changes.
    ///
    /// - Returns: the survivors, which are in the window before and after, with their positions in the whole lists
    private func addRepositioned(_ windows: Windows, to details: inout ChangeDetails) -> [ChangeDetails.Pair] {
        var survivors: [ChangeDetails.Pair] = []
        for index in Self.indexes(of: before, in: windows.before) {
            if windows.after.contains(destinations[index]) {
                survivors.append(
                    ChangeDetails.Pair(id: idsBefore[index], before: before[index], after: destinations[index])
                )
            } else {
                details.removed.append(.init(id: idsBefore[index], index: before[index] - windows.before.lowerBound))
            }
        }
        for index in Self.indexes(of: after, in: windows.after) where !windows.before.contains(origins[index]) {
            details.inserted.append(.init(id: idsAfter[index], index: after[index] - windows.after.lowerBound))
        }
        return survivors
    }

    /// Adds the survivors, which have another key, as changed, and as moved if their order relative to an unmoved
    /// entity or to another survivor is different.
    private func addMoves(
        _ survivors: [ChangeDetails.Pair],
        _ windows: Windows,
        to details: inout ChangeDetails
    ) {
        // If survivors stay between the same two unmoved entities, only their relative order counts.
        var gaps: [Int: [ChangeDetails.Pair]] = [:]
        var moved: [ChangeDetails.Pair] = []
        for pair in survivors {
            let gap = pair.before - Self.count(of: before, below: pair.before)
            if gap == pair.after - Self.count(of: after, below: pair.after) {
                gaps[gap, default: []].append(pair)
            } else {
                moved.append(pair)
            }
        }
        for pairs in gaps.values where pairs.count > 1 {
            let run = Set(ChangeDetails.longestIncreasingRun(pairs.map(\.after)))
            moved += pairs.enumerated().filter { !run.contains($0.offset) }.map(\.element)
        }
        func shown(_ pair: ChangeDetails.Pair) -> ChangeDetails.Pair {
            var pair = pair
            pair.before -= windows.before.lowerBound
            pair.after -= windows.after.lowerBound
            return pair
        }
        details.moved = moved.map(shown).sorted { $0.after < $1.after }
        details.changed += survivors.map(shown)
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
