/// Who waits for work.
enum WorkPriority: Int, Sendable, Comparable, CaseIterable {
    /// Somebody looks at an empty place on a screen.
    case people
    /// Prepared ahead.
    case prefetch

    static func < (first: WorkPriority, second: WorkPriority) -> Bool { first.rawValue < second.rawValue }
}

/// Work that is due, in groups that are done together: what people wait for first, then in order of arrival.
///
/// Pure. A group is as urgent as the most urgent of its pieces. Every operation takes constant time on average, so that
/// a storm of pieces that come and go costs what it is worth.
struct DueTable<Piece: Hashable & Sendable, Group: Hashable & Sendable>: Sendable {
    private struct Gathered: Sendable {
        var pieces: [Piece: WorkPriority] = [:]
        /// The pieces in the order in which they came, some of which may have been taken out.
        var order: [Piece] = []
        var priority: WorkPriority
        /// Tells the group's present place in its line from places that it has left.
        var stamp: UInt64
    }

    private struct Line: Sendable {
        var entries: [(group: Group, stamp: UInt64)] = []
        var start = 0
    }

    /// Pieces of one group that are handed out together.
    let batch: Int
    private var groups: [Group: Gathered] = [:]
    private var lines: [Line] = WorkPriority.allCases.map { _ in Line() }
    private var owners: [Piece: Group] = [:]
    private var lastStamp: UInt64 = 0

    init(batch: Int) {
        self.batch = max(1, batch)
    }

    var count: Int { owners.count }

    /// Puts a piece to the others of its group.
    mutating func add(_ piece: Piece, to group: Group, priority: WorkPriority) {
        guard owners[piece] == nil else { return raise(piece, to: priority) }
        owners[piece] = group
        if groups[group] == nil {
            groups[group] = Gathered(priority: priority, stamp: 0)
            lineUp(group, priority)
        } else if let present = groups[group]?.priority, priority < present {
            lineUp(group, priority)
        }
        groups[group]?.pieces[piece] = priority
        groups[group]?.order.append(piece)
    }

    /// Somebody more urgent waits for a piece as well.
    mutating func raise(_ piece: Piece, to priority: WorkPriority) {
        guard let group = owners[piece], let present = groups[group]?.pieces[piece], priority < present else { return }
        groups[group]?.pieces[piece] = priority
        if let line = groups[group]?.priority, priority < line { lineUp(group, priority) }
    }

    /// Takes a piece out; whether it was still due.
    @discardableResult
    mutating func remove(_ piece: Piece) -> Bool {
        guard let group = owners.removeValue(forKey: piece) else { return false }
        guard let priority = groups[group]?.pieces.removeValue(forKey: piece), let left = groups[group]?.pieces else {
            return true
        }
        if left.isEmpty {
            groups[group] = nil
        } else if priority == groups[group]?.priority, !left.values.contains(priority), let rest = left.values.min() {
            // Without its most urgent piece the group waits among those of the next one.
            lineUp(group, rest)
        }
        return true
    }

    /// The pieces that are to be done next, all of one group, the most urgent first.
    ///
    /// - Parameter least: the least urgent that may be done now
    mutating func next(_ least: WorkPriority = .prefetch) -> (pieces: [Piece], priority: WorkPriority)? {
        for priority in WorkPriority.allCases where priority <= least {
            while let group = takeFirst(of: priority) {
                guard var gathered = groups.removeValue(forKey: group) else { continue }
                let waiting = gathered.order.filter { gathered.pieces[$0] != nil }
                let sorted = WorkPriority.allCases.flatMap { rank in waiting.filter { gathered.pieces[$0] == rank } }
                let taken = Array(sorted.prefix(batch))
                for piece in taken {
                    owners[piece] = nil
                    gathered.pieces[piece] = nil
                }
                gathered.order = Array(sorted.dropFirst(taken.count))
                if let rest = gathered.pieces.values.min() {
                    groups[group] = gathered
                    lineUp(group, rest)
                }
                return (taken, priority)
            }
        }
        return nil
    }

    private mutating func lineUp(_ group: Group, _ priority: WorkPriority) {
        lastStamp += 1
        groups[group]?.priority = priority
        groups[group]?.stamp = lastStamp
        lines[priority.rawValue].entries.append((group, lastStamp))
        tidy(priority)
    }

    private mutating func takeFirst(of priority: WorkPriority) -> Group? {
        var line = lines[priority.rawValue]
        lines[priority.rawValue] = Line()
        defer { lines[priority.rawValue] = line }
        while line.start < line.entries.count {
            let (group, stamp) = line.entries[line.start]
            line.start += 1
            if groups[group]?.stamp == stamp { return group }
        }
        line = Line()
        return nil
    }

    /// Drops places that groups have left, before they outnumber those that are still held.
    private mutating func tidy(_ priority: WorkPriority) {
        let line = lines[priority.rawValue]
        guard line.entries.count > 64 + 4 * groups.count else { return }
        let kept = line.entries[line.start...].filter { groups[$0.group]?.stamp == $0.stamp }
        lines[priority.rawValue] = Line(entries: Array(kept), start: 0)
    }
}
