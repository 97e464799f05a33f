import Hosting

/// The urgency of an image.
enum RequestUrgency: Int, Sendable, Comparable, CaseIterable {
    /// Interactive: a person is waiting for this image.
    case interactive
    /// Prepared ahead of a request.
    case prefetch

    static func < (first: RequestUrgency, second: RequestUrgency) -> Bool { first.rawValue < second.rawValue }
}

/// A priority queue of work that callers share: a request for queued or running work joins it, and queued work of one
/// group is started together as a batch. Interactive work goes first, then clients take turns, and the work of each
/// goes in order of arrival.
///
/// Pure; ``CoalescingWorkQueue`` carries out its decisions. A group has the urgency of its most urgent item, and a
/// place among the work of each client that waits for an item of this urgency. Every operation takes amortized
/// constant time, so that many requests that come and go stay cheap.
///
/// The worker pool has a queue of its own, because it serves more than this queue: contact sheets, previews and the
/// editor's renders arrive there too, cannot be shared, and return to the front when their worker was killed. This
/// queue starts no more batches than there are workers, so work that can still be joined waits here and not there.
struct CoalescingPriorityQueue<Key: Hashable & Sendable, Group: Hashable & Sendable, Waiter: Sendable>: Sendable {
    /// The place of one waiter.
    struct Ticket: Sendable, Hashable {
        fileprivate let work: UInt64
        fileprivate let waiter: UInt64
    }

    enum EnterResult: Equatable {
        /// New work was queued.
        case queued(Ticket)
        /// Work of the same key was already queued or running.
        case joined(Ticket)
        /// The limit of queued and running work is reached and the client has some of it, or its owner has reached its
        /// own limit.
        case full
    }

    /// Work of one group that is started together, the most urgent first.
    struct Batch: Sendable {
        let number: UInt64
        let urgency: RequestUrgency
        /// The client whose turn it is.
        let source: WorkSource
        let keys: [Key]
        fileprivate let works: [UInt64]
    }

    /// One execution for one key. A key requested again after its work was abandoned gets a new execution, so that the
    /// end of the old one is not mistaken for the end of the new one.
    private struct Work: Sendable {
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
        /// In order of arrival; may contain work that was dropped meanwhile.
        var order: [UInt64] = []
        /// The number of items of each urgency.
        var counts = RequestUrgency.allCases.map { _ in 0 }
        var urgency: RequestUrgency
        /// Distinguishes the group's present positions, one of each client, from outdated ones.
        var stamps: [WorkSource: UInt64] = [:]

        var mostUrgent: RequestUrgency? { RequestUrgency.allCases.first { counts[$0.rawValue] > 0 } }
    }

    /// The place of a group among the work of one client.
    private struct Position: Sendable {
        let group: Group
        let source: WorkSource
        let stamp: UInt64
    }

    /// The groups of one urgency in order; may contain outdated positions.
    private struct Line: Sendable {
        var positions = FairQueue<WorkSource, Position>()
        /// The number of positions above which outdated ones are removed.
        var limit = 64
    }

    /// The time after the last interactive request during which a slot is kept free, in microseconds.
    static var interactiveGrace: Int64 { 1_000_000 }

    /// The most work queued or running.
    let limit: Int
    private let width: Int
    private let batchSize: Int
    private(set) var queuedCount = 0
    private(set) var joinCount = 0
    private var works: [UInt64: Work] = [:]
    /// The items of each owner that has some.
    private var countByOwner: [String: Int] = [:]
    /// The items of each client that has some.
    private var countBySource: [WorkSource: Int] = [:]
    /// The work that a request for a key joins.
    private var joinable: [Key: UInt64] = [:]
    private var groups: [Group: PendingGroup] = [:]
    private var lines = RequestUrgency.allCases.map { _ in Line() }
    /// For each running batch the number of its items that have waiters.
    private var wanted: [UInt64: Int] = [:]
    private var prefetching = 0
    private var lastInteractive: Int64?
    private var lastNumber: UInt64 = 0

    /// - Parameters:
    ///   - limit: the most items queued or running
    ///   - width: the most batches running at a time
    ///   - batchSize: the most items of one batch
    init(limit: Int, width: Int, batchSize: Int = 1) {
        self.limit = max(1, limit)
        self.width = max(1, width)
        self.batchSize = max(1, batchSize)
    }

    /// The number of items queued or running.
    var count: Int { works.count }

    /// Returns true if work of this key is queued or running and can be joined.
    func holds(_ key: Key) -> Bool { joinable[key] != nil }

    // MARK: Waiters

    /// The most work queued or running of one owner: a quarter of all.
    var limitPerOwner: Int { max(1, limit / 4) }

    /// Adds a waiter to the work of a key, which is queued unless it is already queued or running.
    ///
    /// - Parameters:
    ///   - owner: whose work it is, if it is queued; nil for work without a limit of its own
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
            works[id]?.waiters[ticket.waiter] = waiter
            joinCount += 1
            join(id, urgency, source)
            return .joined(ticket)
        }
        let others = countBySource[source, default: 0]
        guard works.count < limit || others < WorkSource.reservedPlaces(of: limit) else { return .full }
        if let owner {
            guard countByOwner[owner, default: 0] < limitPerOwner else { return .full }
            countByOwner[owner, default: 0] += 1
        }
        countBySource[source] = others + 1
        let ticket = Ticket(work: nextNumber(), waiter: nextNumber())
        let work = Work(
            key: key,
            group: group,
            owner: owner,
            source: source,
            sources: [source],
            urgency: urgency,
            waiters: [ticket.waiter: waiter]
        )
        works[ticket.work] = work
        joinable[key] = ticket.work
        enqueue(ticket.work, work)
        return .queued(ticket)
    }

    /// Removes a waiter. Queued work that nobody waits for is dropped. Running work counts until it has ended, because
    /// it occupies its slot until then.
    ///
    /// - Returns: the number of the batch to cancel, if nobody waits for any of its items
    mutating func leave(_ ticket: Ticket) -> UInt64? {
        guard works[ticket.work]?.waiters.removeValue(forKey: ticket.waiter) != nil,
            let work = works[ticket.work], work.waiters.isEmpty
        else { return nil }
        if joinable[work.key] == ticket.work { joinable[work.key] = nil }
        guard let batch = work.batch else {
            works[ticket.work] = nil
            release(work)
            didDequeue(work)
            return nil
        }
        wanted[batch]? -= 1
        return wanted[batch] == 0 ? batch : nil
    }

    /// Removes everything that is queued or running. Returns the waiters.
    mutating func removeAll() -> [Waiter] {
        defer { self = Self(limit: limit, width: width, batchSize: batchSize) }
        return works.values.flatMap(\.waiters.values)
    }

    /// Subtracts removed work from the counts of its owner and its client.
    private mutating func release(_ work: Work) {
        if let count = countBySource[work.source] { countBySource[work.source] = count > 1 ? count - 1 : nil }
        guard let owner = work.owner, let count = countByOwner[owner] else { return }
        countByOwner[owner] = count > 1 ? count - 1 : nil
    }

    // MARK: Batches

    /// Removes the next batch from the queue; nil if nothing may be started now.
    ///
    /// Prefetch leaves one slot free while interactive requests keep coming.
    mutating func next(now: Int64) -> Batch? {
        guard wanted.count < width else { return nil }
        let hasRecentInteractive = lastInteractive.map { now - $0 < Self.interactiveGrace } ?? false
        let mayPrefetch = prefetching < (hasRecentInteractive ? max(1, width - 1) : width)
        for urgency in RequestUrgency.allCases where urgency == .interactive || mayPrefetch {
            if let position = popFirst(of: urgency) { return start(position.group, position.source, urgency) }
        }
        return nil
    }

    /// Starts a batch of a group: the most urgent items, and among equally urgent ones first those of the client whose
    /// turn it is.
    private mutating func start(_ group: Group, _ source: WorkSource, _ urgency: RequestUrgency) -> Batch? {
        guard var pending = groups.removeValue(forKey: group) else { return nil }
        let queued = pending.order.filter { works[$0] != nil }
        let sorted = RequestUrgency.allCases.flatMap { rank -> [UInt64] in
            let ranked = queued.filter { works[$0]?.urgency == rank }
            let own = ranked.filter { works[$0]?.sources.contains(source) == true }
            return own.count == ranked.count
                ? own : own + ranked.filter { works[$0]?.sources.contains(source) == false }
        }
        let isAlone = sorted.first.flatMap { works[$0]?.isAlone } == true
        let together = isAlone ? Array(sorted.prefix(1)) : sorted.filter { works[$0]?.isAlone == false }
        let started = Array(together.prefix(batchSize))
        let number = nextNumber()
        var keys: [Key] = []
        for id in started {
            guard let work = works[id] else { continue }
            works[id]?.batch = number
            keys.append(work.key)
            pending.counts[work.urgency.rawValue] -= 1
        }
        queuedCount -= started.count
        wanted[number] = started.count
        if urgency == .prefetch { prefetching += 1 }
        if let rest = pending.mostUrgent {
            let left = Set(started)
            pending.order = sorted.filter { !left.contains($0) }
            pending.stamps = [:]
            pending.urgency = rest
            groups[group] = pending
            place(group)
        }
        return Batch(number: number, urgency: urgency, source: source, keys: keys, works: started)
    }

    /// Removes a batch that has ended.
    ///
    /// - Parameter left: the indices of items that were not made because the batch took too long. They are queued
    ///   again, each on its own if none was made; an item that was alone is not queued again.
    /// - Returns: the waiters of each item, none of those that are queued again
    mutating func finish(_ batch: Batch, left: Set<Int> = []) -> [[Waiter]] {
        guard wanted.removeValue(forKey: batch.number) != nil else { return [] }
        if batch.urgency == .prefetch { prefetching -= 1 }
        return batch.works.enumerated().map { place, id in
            guard var work = works.removeValue(forKey: id) else { return [] }
            if left.contains(place), batch.works.count > 1, !work.waiters.isEmpty {
                work.batch = nil
                work.isAlone = left.count == batch.works.count
                works[id] = work
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

    /// Adds a client to those that wait for work, with a place of its own for the work's group.
    private mutating func join(_ id: UInt64, _ urgency: RequestUrgency, _ source: WorkSource) {
        guard let group = works[id]?.group, let old = works[id]?.urgency else { return }
        works[id]?.sources.insert(source)
        works[id]?.urgency = min(urgency, old)
        // Running work has no place. It gets one if its batch leaves it.
        guard works[id]?.batch == nil else { return }
        if urgency < old {
            groups[group]?.counts[old.rawValue] -= 1
            groups[group]?.counts[urgency.rawValue] += 1
        }
        place(group, min(urgency, old), source)
    }

    /// Adds work to its group.
    ///
    /// - Parameter isFirst: true if the group comes before the other groups of the work's clients
    private mutating func enqueue(_ id: UInt64, _ work: Work, isFirst: Bool = false) {
        queuedCount += 1
        if groups[work.group] == nil { groups[work.group] = PendingGroup(urgency: work.urgency) }
        groups[work.group]?.order.append(id)
        groups[work.group]?.counts[work.urgency.rawValue] += 1
        for source in work.sources { place(work.group, work.urgency, source, isFirst: isFirst) }
    }

    private mutating func didDequeue(_ work: Work) {
        queuedCount -= 1
        groups[work.group]?.counts[work.urgency.rawValue] -= 1
        guard let pending = groups[work.group] else { return }
        guard let rest = pending.mostUrgent else {
            groups[work.group] = nil
            return
        }
        // Without its most urgent item the group moves to the line of the next urgency.
        guard rest > pending.urgency else { return }
        groups[work.group]?.urgency = rest
        groups[work.group]?.stamps = [:]
        place(work.group)
    }

    /// Gives a group without places those of the clients of its most urgent items.
    private mutating func place(_ group: Group) {
        guard let pending = groups[group] else { return }
        for id in pending.order {
            guard let work = works[id], work.urgency == pending.urgency else { continue }
            for source in work.sources { place(group, work.urgency, source) }
        }
    }

    /// Gives a group a place among the work of a client, unless it has one, or items that are more urgent.
    private mutating func place(
        _ group: Group,
        _ urgency: RequestUrgency,
        _ source: WorkSource,
        isFirst: Bool = false
    ) {
        guard let present = groups[group]?.urgency, urgency <= present else { return }
        if urgency < present {
            groups[group]?.urgency = urgency
            groups[group]?.stamps = [:]
        } else if groups[group]?.stamps[source] != nil {
            return
        }
        let position = Position(group: group, source: source, stamp: nextNumber())
        groups[group]?.stamps[source] = position.stamp
        if isFirst {
            lines[urgency.rawValue].positions.insert(position, from: source) { _ in true }
        } else {
            lines[urgency.rawValue].positions.append(position, from: source)
        }
        compact(urgency)
    }

    private func isOutdated(_ position: Position) -> Bool {
        groups[position.group]?.stamps[position.source] != position.stamp
    }

    private mutating func popFirst(of urgency: RequestUrgency) -> Position? {
        var line = lines[urgency.rawValue]
        lines[urgency.rawValue] = Line()
        defer { lines[urgency.rawValue] = line }
        line.positions.skip { isOutdated($0) }
        return line.positions.popFirst()
    }

    /// Compacts a line before outdated positions outnumber the present ones.
    private mutating func compact(_ urgency: RequestUrgency) {
        guard lines[urgency.rawValue].positions.count > lines[urgency.rawValue].limit else { return }
        var line = lines[urgency.rawValue]
        lines[urgency.rawValue] = Line()
        line.positions.removeAll { isOutdated($0) }
        line.limit = 64 + 4 * line.positions.count
        lines[urgency.rawValue] = line
    }
}
