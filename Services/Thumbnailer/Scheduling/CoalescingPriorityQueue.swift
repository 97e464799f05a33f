import Hosting

/// The urgency of an image.
enum RequestUrgency: Int, Sendable, Comparable, CaseIterable {
    /// A person is waiting for this image.
    case interactive
    /// The image is prepared ahead of a request.
    case prefetch

    static func < (first: RequestUrgency, second: RequestUrgency) -> Bool { first.rawValue < second.rawValue }
}

/// A priority queue of work that callers share. A request for queued or running work joins it, and queued work of one
/// group is started together as a batch. Interactive work is started first, clients take turns, and the work of a
/// client is started in order of arrival.
///
/// It has no side effects; ``CoalescingWorkQueue`` carries out its decisions. A group has the urgency of its most
/// urgent item, and a position in the queue of each client that waits for an item of this urgency. Every operation
/// takes amortized constant time.
///
/// The worker pool has a queue of its own, because it also runs other jobs, such as contact sheets and the editor's
/// renders, which cannot be shared, and which return to the front if their worker was killed. This queue starts no more
/// batches than there are workers, so that work waits where it can be joined.
struct CoalescingPriorityQueue<Key: Hashable & Sendable, Group: Hashable & Sendable, Waiter: Sendable>: Sendable {
    /// Identifies one waiter.
    struct Ticket: Sendable, Hashable {
        fileprivate let work: UInt64
        fileprivate let waiter: UInt64
    }

    enum EnterResult: Equatable {
        /// New work was queued.
        case queued(Ticket)
        /// Work of the same key was already queued or running.
        case joined(Ticket)
        /// The limit of queued and running work is reached and the client has used its reserved part, or the owner has
        /// reached its own limit.
        case full
    }

    /// Work of one group that is started together, the most urgent first.
    struct Batch: Sendable {
        let number: UInt64
        let urgency: RequestUrgency
        /// The client whose turn it is.
        let source: WorkSource
        let keys: [Key]
        fileprivate let executions: [UInt64]
    }

    /// One execution for one key. A key requested again after its work was abandoned gets a new execution, so that the
    /// end of the old one is not mistaken for the end of the new one.
    private struct Execution: Sendable {
        let key: Key
        let group: Group
        let owner: String?
        /// The client that requested it first.
        let source: WorkSource
        /// The clients that have requested it.
        var sources: Set<WorkSource>
        var urgency: RequestUrgency
        var waiters: [UInt64: Waiter]
        /// The batch that it runs in; nil while it is queued.
        var batch: UInt64?
        /// True if it runs alone, because it took too long together with others.
        var isAlone = false
    }

    /// The queued work of one group.
    private struct PendingGroup: Sendable {
        /// The queued work in order of arrival; may contain work that was dropped meanwhile.
        var order: [UInt64] = []
        /// The number of items of each urgency.
        var counts = RequestUrgency.allCases.map { _ in 0 }
        var urgency: RequestUrgency
        /// The number of the group's current position in the queue of each client; all other positions are outdated.
        var positionNumbers: [WorkSource: UInt64] = [:]

        var mostUrgent: RequestUrgency? { RequestUrgency.allCases.first { counts[$0.rawValue] > 0 } }
    }

    /// The position of a group in the queue of one client.
    private struct Position: Sendable {
        let group: Group
        let source: WorkSource
        let number: UInt64
    }

    /// The groups of one urgency in order; may contain outdated positions.
    private struct UrgencyQueue: Sendable {
        var positions = FairQueue<WorkSource, Position>()
        /// The number of positions above which outdated ones are removed.
        var limit = 64
    }

    /// The time after the last interactive request during which a slot is kept free for the next, in microseconds.
    static var interactiveGrace: Int64 { 1_000_000 }

    /// The maximum number of items queued or running.
    let limit: Int
    private let maxBatches: Int
    private let batchSize: Int
    private(set) var queuedCount = 0
    private(set) var joinCount = 0
    private var executions: [UInt64: Execution] = [:]
    /// The number of items of each owner that has any.
    private var countByOwner: [String: Int] = [:]
    /// The number of items of each client that has any.
    private var countBySource: [WorkSource: Int] = [:]
    /// The work that a request for a key joins.
    private var joinable: [Key: UInt64] = [:]
    private var groups: [Group: PendingGroup] = [:]
    private var queues = RequestUrgency.allCases.map { _ in UrgencyQueue() }
    /// For each running batch the number of its items that have waiters.
    private var awaitedItems: [UInt64: Int] = [:]
    private var prefetching = 0
    private var lastInteractive: Int64?
    private var lastNumber: UInt64 = 0

    /// - Parameters:
    ///   - limit: the maximum number of items queued or running
    ///   - maxBatches: the maximum number of batches running at a time
    ///   - batchSize: the maximum number of items of one batch
    init(limit: Int, maxBatches: Int, batchSize: Int = 1) {
        self.limit = max(1, limit)
        self.maxBatches = max(1, maxBatches)
        self.batchSize = max(1, batchSize)
    }

    /// The number of items queued or running.
    var count: Int { executions.count }

    /// Returns true if work of this key is queued or running and can be joined.
    func canJoin(_ key: Key) -> Bool { joinable[key] != nil }

    // MARK: Waiters

    /// The maximum number of items of one owner that are queued or running: a quarter of all.
    var limitPerOwner: Int { max(1, limit / 4) }

    /// Adds a waiter to the work of a key, which is queued unless it is already queued or running.
    ///
    /// - Parameters:
    ///   - owner: the owner of the work if it is queued; nil for work without a limit of its own
    ///   - source: the client that waits
    mutating func enter(
        _ key: Key,
        of group: Group,
        _ urgency: RequestUrgency,
        owner: String? = nil,
        from source: WorkSource = .service,
        waiter: Waiter,
        now: Int64
    ) -> EnterResult {
        if urgency == .interactive { lastInteractive = now }
        if let id = joinable[key] {
            let ticket = Ticket(work: id, waiter: nextNumber())
            executions[id]?.waiters[ticket.waiter] = waiter
            joinCount += 1
            join(id, urgency, source)
            return .joined(ticket)
        }
        let others = countBySource[source, default: 0]
        guard executions.count < limit || others < WorkSource.reservedCount(of: limit) else { return .full }
        if let owner {
            guard countByOwner[owner, default: 0] < limitPerOwner else { return .full }
            countByOwner[owner, default: 0] += 1
        }
        countBySource[source] = others + 1
        let ticket = Ticket(work: nextNumber(), waiter: nextNumber())
        let work = Execution(
            key: key,
            group: group,
            owner: owner,
            source: source,
            sources: [source],
            urgency: urgency,
            waiters: [ticket.waiter: waiter]
        )
        executions[ticket.work] = work
        joinable[key] = ticket.work
        enqueue(ticket.work, work)
        return .queued(ticket)
    }

    /// Removes a waiter. Queued work without waiters is dropped. Running work counts until it has ended, because it
    /// occupies its slot until then.
    ///
    /// - Returns: the number of the batch to cancel, if none of its items has waiters
    mutating func leave(_ ticket: Ticket) -> UInt64? {
        guard executions[ticket.work]?.waiters.removeValue(forKey: ticket.waiter) != nil,
            let work = executions[ticket.work], work.waiters.isEmpty
        else { return nil }
        if joinable[work.key] == ticket.work { joinable[work.key] = nil }
        guard let batch = work.batch else {
            executions[ticket.work] = nil
            release(work)
            didDequeue(work)
            return nil
        }
        awaitedItems[batch]? -= 1
        return awaitedItems[batch] == 0 ? batch : nil
    }

    /// Removes all work that is queued or running. Returns the waiters.
    mutating func removeAll() -> [Waiter] {
        defer { self = Self(limit: limit, maxBatches: maxBatches, batchSize: batchSize) }
        return executions.values.flatMap(\.waiters.values)
    }

    /// Subtracts removed work from the counts of its owner and its client.
    private mutating func release(_ work: Execution) {
        if let count = countBySource[work.source] { countBySource[work.source] = count > 1 ? count - 1 : nil }
        guard let owner = work.owner, let count = countByOwner[owner] else { return }
        countByOwner[owner] = count > 1 ? count - 1 : nil
    }

    // MARK: Batches

    /// Removes the next batch from the queue; nil if nothing may be started now.
    ///
    /// Prefetch leaves one slot free while there are recent interactive requests.
    mutating func next(now: Int64) -> Batch? {
        guard awaitedItems.count < maxBatches else { return nil }
        let hasRecentInteractive = lastInteractive.map { now - $0 < Self.interactiveGrace } ?? false
        let mayPrefetch = prefetching < (hasRecentInteractive ? max(1, maxBatches - 1) : maxBatches)
        for urgency in RequestUrgency.allCases where urgency == .interactive || mayPrefetch {
            if let position = popFirst(of: urgency) { return start(position.group, position.source, urgency) }
        }
        return nil
    }

    /// Starts a batch of a group: the most urgent items, and among equally urgent items those of the client whose turn
    /// it is first.
    private mutating func start(_ group: Group, _ source: WorkSource, _ urgency: RequestUrgency) -> Batch? {
        guard var pending = groups.removeValue(forKey: group) else { return nil }
        let queued = pending.order.filter { executions[$0] != nil }
        let sorted = RequestUrgency.allCases.flatMap { rank -> [UInt64] in
            let ranked = queued.filter { executions[$0]?.urgency == rank }
            let own = ranked.filter { executions[$0]?.sources.contains(source) == true }
            return own.count == ranked.count
                ? own : own + ranked.filter { executions[$0]?.sources.contains(source) == false }
        }
        let isAlone = sorted.first.flatMap { executions[$0]?.isAlone } == true
        let together = isAlone ? Array(sorted.prefix(1)) : sorted.filter { executions[$0]?.isAlone == false }
        let started = Array(together.prefix(batchSize))
        let number = nextNumber()
        var keys: [Key] = []
        for id in started {
            guard let work = executions[id] else { continue }
            executions[id]?.batch = number
            keys.append(work.key)
            pending.counts[work.urgency.rawValue] -= 1
        }
        queuedCount -= started.count
        awaitedItems[number] = started.count
        if urgency == .prefetch { prefetching += 1 }
        if let next = pending.mostUrgent {
            let removed = Set(started)
            pending.order = sorted.filter { !removed.contains($0) }
            pending.positionNumbers = [:]
            pending.urgency = next
            groups[group] = pending
            addPositions(group)
        }
        return Batch(number: number, urgency: urgency, source: source, keys: keys, executions: started)
    }

    /// Removes a batch that has ended.
    ///
    /// - Parameter deferred: the indices of items that were not completed because the batch took too long. They are
    ///   queued again, each to run alone if none was completed. An item that ran alone is not queued again.
    /// - Returns: the waiters of each item; none for those that are queued again
    mutating func finish(_ batch: Batch, deferred: Set<Int> = []) -> [[Waiter]] {
        guard awaitedItems.removeValue(forKey: batch.number) != nil else { return [] }
        if batch.urgency == .prefetch { prefetching -= 1 }
        return batch.executions.enumerated().map { index, id in
            guard var work = executions.removeValue(forKey: id) else { return [] }
            if deferred.contains(index), batch.executions.count > 1, !work.waiters.isEmpty {
                work.batch = nil
                work.isAlone = deferred.count == batch.executions.count
                executions[id] = work
                enqueue(id, work, isFirst: true)
                return []
            }
            release(work)
            if joinable[work.key] == id { joinable[work.key] = nil }
            return Array(work.waiters.values)
        }
    }

    // MARK: Order

    private mutating func nextNumber() -> UInt64 {
        lastNumber += 1
        return lastNumber
    }

    /// Adds a client to those that wait for work, and a position of the work's group in the queue of the client.
    private mutating func join(_ id: UInt64, _ urgency: RequestUrgency, _ source: WorkSource) {
        guard let group = executions[id]?.group, let old = executions[id]?.urgency else { return }
        executions[id]?.sources.insert(source)
        executions[id]?.urgency = min(urgency, old)
        // Running work has no position. It gets one if it is queued again.
        guard executions[id]?.batch == nil else { return }
        if urgency < old {
            groups[group]?.counts[old.rawValue] -= 1
            groups[group]?.counts[urgency.rawValue] += 1
        }
        addPosition(group, min(urgency, old), source)
    }

    /// Adds work to its group.
    ///
    /// - Parameter isFirst: true if the group comes before the other groups of the work's clients
    private mutating func enqueue(_ id: UInt64, _ work: Execution, isFirst: Bool = false) {
        queuedCount += 1
        if groups[work.group] == nil { groups[work.group] = PendingGroup(urgency: work.urgency) }
        groups[work.group]?.order.append(id)
        groups[work.group]?.counts[work.urgency.rawValue] += 1
        for source in work.sources { addPosition(work.group, work.urgency, source, isFirst: isFirst) }
    }

    private mutating func didDequeue(_ work: Execution) {
        queuedCount -= 1
        groups[work.group]?.counts[work.urgency.rawValue] -= 1
        guard let pending = groups[work.group] else { return }
        guard let next = pending.mostUrgent else {
            groups[work.group] = nil
            return
        }
        // Without its most urgent item the group moves to the queue of the next urgency.
        guard next > pending.urgency else { return }
        groups[work.group]?.urgency = next
        groups[work.group]?.positionNumbers = [:]
        addPositions(work.group)
    }

    /// Adds the positions of a group that has none: one for each client of its most urgent items.
    private mutating func addPositions(_ group: Group) {
        guard let pending = groups[group] else { return }
        for id in pending.order {
            guard let work = executions[id], work.urgency == pending.urgency else { continue }
            for source in work.sources { addPosition(group, work.urgency, source) }
        }
    }

    /// Adds a position of a group in the queue of a client, unless it has one there, or has items that are more urgent.
    private mutating func addPosition(
        _ group: Group,
        _ urgency: RequestUrgency,
        _ source: WorkSource,
        isFirst: Bool = false
    ) {
        guard let current = groups[group]?.urgency, urgency <= current else { return }
        if urgency < current {
            groups[group]?.urgency = urgency
            groups[group]?.positionNumbers = [:]
        } else if groups[group]?.positionNumbers[source] != nil {
            return
        }
        let position = Position(group: group, source: source, number: nextNumber())
        groups[group]?.positionNumbers[source] = position.number
        if isFirst {
            queues[urgency.rawValue].positions.insert(position, from: source) { _ in true }
        } else {
            queues[urgency.rawValue].positions.append(position, from: source)
        }
        compact(urgency)
    }

    private func isOutdated(_ position: Position) -> Bool {
        groups[position.group]?.positionNumbers[position.source] != position.number
    }

    private mutating func popFirst(of urgency: RequestUrgency) -> Position? {
        var queue = queues[urgency.rawValue]
        queues[urgency.rawValue] = UrgencyQueue()
        defer { queues[urgency.rawValue] = queue }
        queue.positions.skip { isOutdated($0) }
        return queue.positions.popFirst()
    }

    /// Removes outdated positions from a queue before they outnumber the others.
    private mutating func compact(_ urgency: RequestUrgency) {
        guard queues[urgency.rawValue].positions.count > queues[urgency.rawValue].limit else { return }
        var queue = queues[urgency.rawValue]
        queues[urgency.rawValue] = UrgencyQueue()
        queue.positions.removeAll { isOutdated($0) }
        queue.limit = 64 + 4 * queue.positions.count
        queues[urgency.rawValue] = queue
    }
}
