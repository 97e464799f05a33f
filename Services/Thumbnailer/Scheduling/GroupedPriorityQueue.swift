/// The priority of work.
enum WorkPriority: Int, Sendable, Comparable, CaseIterable {
    /// Interactive: a person is waiting for this image.
    case interactive
    /// Prepared ahead of a request.
    case prefetch

    static func < (first: WorkPriority, second: WorkPriority) -> Bool { first.rawValue < second.rawValue }
}

/// A priority queue of work in groups that are done together: interactive work first, then in order of arrival.
///
/// Pure. A group has the priority of its most urgent item. Every operation takes amortized constant time, so that many
/// items that come and go stay cheap.
struct GroupedPriorityQueue<Piece: Hashable & Sendable, Group: Hashable & Sendable>: Sendable {
    private struct PendingGroup: Sendable {
        var pieces: [Piece: WorkPriority] = [:]
        /// The items in order of arrival; may contain items that were removed meanwhile.
        var order: [Piece] = []
        var priority: WorkPriority
        /// Distinguishes the group's present position in its queue from outdated ones.
        var stamp: UInt64
    }

    private struct Queue: Sendable {
        var entries: [(group: Group, stamp: UInt64)] = []
        var start = 0
    }

    /// The most items of one group that are returned together.
    let batch: Int
    private var groups: [Group: PendingGroup] = [:]
    private var queues: [Queue] = WorkPriority.allCases.map { _ in Queue() }
    private var owners: [Piece: Group] = [:]
    private var lastStamp: UInt64 = 0

    init(batch: Int) {
        self.batch = max(1, batch)
    }

    var count: Int { owners.count }

    /// Adds an item to its group.
    mutating func add(_ piece: Piece, to group: Group, priority: WorkPriority) {
        guard owners[piece] == nil else { return raisePriority(piece, to: priority) }
        owners[piece] = group
        if groups[group] == nil {
            groups[group] = PendingGroup(priority: priority, stamp: 0)
            enqueue(group, priority)
        } else if let present = groups[group]?.priority, priority < present {
            enqueue(group, priority)
        }
        groups[group]?.pieces[piece] = priority
        groups[group]?.order.append(piece)
    }

    /// Raises an item's priority if it is lower.
    mutating func raisePriority(_ piece: Piece, to priority: WorkPriority) {
        guard let group = owners[piece], let present = groups[group]?.pieces[piece], priority < present else { return }
        groups[group]?.pieces[piece] = priority
        if let line = groups[group]?.priority, priority < line { enqueue(group, priority) }
    }

    /// Removes an item. Returns true if it was still queued.
    @discardableResult
    mutating func remove(_ piece: Piece) -> Bool {
        guard let group = owners.removeValue(forKey: piece) else { return false }
        guard let priority = groups[group]?.pieces.removeValue(forKey: piece), let left = groups[group]?.pieces else {
            return true
        }
        if left.isEmpty {
            groups[group] = nil
        } else if priority == groups[group]?.priority, !left.values.contains(priority), let rest = left.values.min() {
            // Without its most urgent item the group moves to the queue of the next priority.
            enqueue(group, rest)
        }
        return true
    }

    /// Returns the items to do next, all of one group, the most urgent first.
    ///
    /// - Parameter least: the lowest priority that may be started now
    mutating func next(_ least: WorkPriority = .prefetch) -> (pieces: [Piece], priority: WorkPriority)? {
        for priority in WorkPriority.allCases where priority <= least {
            while let group = popFirst(of: priority) {
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
                    enqueue(group, rest)
                }
                return (taken, priority)
            }
        }
        return nil
    }

    private mutating func enqueue(_ group: Group, _ priority: WorkPriority) {
        lastStamp += 1
        groups[group]?.priority = priority
        groups[group]?.stamp = lastStamp
        queues[priority.rawValue].entries.append((group, lastStamp))
        compact(priority)
    }

    private mutating func popFirst(of priority: WorkPriority) -> Group? {
        var line = queues[priority.rawValue]
        queues[priority.rawValue] = Queue()
        defer { queues[priority.rawValue] = line }
        while line.start < line.entries.count {
            let (group, stamp) = line.entries[line.start]
            line.start += 1
            if groups[group]?.stamp == stamp { return group }
        }
        line = Queue()
        return nil
    }

    /// Compacts a queue before outdated positions outnumber the present ones.
    private mutating func compact(_ priority: WorkPriority) {
        let line = queues[priority.rawValue]
        guard line.entries.count > 64 + 4 * groups.count else { return }
        let kept = line.entries[line.start...].filter { groups[$0.group]?.stamp == $0.stamp }
        queues[priority.rawValue] = Queue(entries: Array(kept), start: 0)
    }
}
