/// An index of closed ranges that finds those containing a value in O(log n + found), after a sort if ranges changed.
struct RangeIndex {
    private var ranges: [Int: ClosedRange<Double>] = [:]
    /// The ranges sorted by their lower bounds, which form a balanced tree by position, as in a binary search.
    private var sorted: [(range: ClosedRange<Double>, owner: Int)] = []
    /// The highest upper bound in each subtree.
    private var highest: [Double] = []
    private var isSorted = true

    var isEmpty: Bool { ranges.isEmpty }

    mutating func insert(_ range: ClosedRange<Double>, owner: Int) {
        // A fetch with several ranges of one key is indexed by the enclosing range.
        if let known = ranges[owner] {
            ranges[owner] = min(known.lowerBound, range.lowerBound)...max(known.upperBound, range.upperBound)
        } else {
            ranges[owner] = range
        }
        isSorted = false
    }

    mutating func remove(owner: Int) {
        if ranges.removeValue(forKey: owner) != nil { isSorted = false }
    }

    /// Adds the owners of the ranges that contain a value.
    mutating func find(_ value: Double, into owners: inout Set<Int>) {
        if !isSorted { sort() }
        find(value, 0, sorted.count, &owners)
    }

    private func find(_ value: Double, _ low: Int, _ high: Int, _ owners: inout Set<Int>) {
        guard low < high else { return }
        let middle = (low + high) / 2
        guard highest[middle] >= value else { return }
        find(value, low, middle, &owners)
        guard sorted[middle].range.lowerBound <= value else { return }
        if sorted[middle].range.upperBound >= value { owners.insert(sorted[middle].owner) }
        find(value, middle + 1, high, &owners)
    }

    private mutating func sort() {
        sorted = ranges.map { ($1, $0) }.sorted { $0.range.lowerBound < $1.range.lowerBound }
        highest = [Double](repeating: -.infinity, count: sorted.count)
        _ = measure(0, sorted.count)
        isSorted = true
    }

    private mutating func measure(_ low: Int, _ high: Int) -> Double {
        guard low < high else { return -.infinity }
        let middle = (low + high) / 2
        let below = max(measure(low, middle), measure(middle + 1, high))
        highest[middle] = max(sorted[middle].range.upperBound, below)
        return highest[middle]
    }
}
