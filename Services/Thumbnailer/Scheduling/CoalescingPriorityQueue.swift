/// How urgently an image is needed.
enum RequestUrgency: Int, Sendable, Comparable, CaseIterable {
    /// Interactive: a person is waiting for this image.
    case interactive
    /// Prepared ahead of a request.
    case prefetch

    static func < (first: RequestUrgency, second: RequestUrgency) -> Bool { first.rawValue < second.rawValue }
}

/// A priority queue of work that callers share: a request for queued or running work joins it, and queued work of one
/// group is started together as a batch. Interactive work goes first, then work goes in order of arrival.
///
/// Pure; ``CoalescingWorkQueue`` carries out its decisions. A group has the urgency of its most urgent item. Every
/// operation takes amortized constant time, so that many requests that come and go stay cheap.
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
        /// The limit of queued and running work is reached, or that of its owner.
        case full
    }

    /// Work of one group that is started together, the most urgent first.
    struct Batch: Sendable {
        let number: UInt64
        let urgency: RequestUrgency
        let keys: [Key]
        fileprivate let works: [UInt64]
    }

    /// One execution for one key. A key requested again after its work was abandoned gets a new execution, so that the
    /// end of the old one is not mistaken for the end of the new one.
    private struct Work: Sendable {
        let key: Key
        let group: Group
        let owner: String?
        var urgency: RequestUrgency
        var waiters: [UInt64: Waiter]
        /// The batch that it runs in; nil while it is queued.
        var batch: UInt64?
    }

    /// The queued work of one group.
    private struct PendingGroup: Sendable {
        /// In order of arrival; may contain work that was dropped meanwhile.
        var order: [UInt64] = []
        /// The number of items of each urgency.
        var counts = RequestUrgency.allCases.map { _ in 0 }
        var urgency: RequestUrgency
        /// Distinguishes the group's present position from outdated ones.
        var stamp: UInt64 = 0

        var mostUrgent: RequestUrgency? { RequestUrgency.allCases.first { counts[$0.rawValue] > 0 } }
    }

    /// The groups of one urgency in order; may contain outdated positions.
    private struct Line: Sendable {
        var entries: [(group: Group, stamp: UInt64)] = []
        var start = 0
    }

    /// The time after the last interactive request during which a slot is kept free, in microseconds.
    static var presence: Int64 { 1_000_000 }

    /// The most work queued or running.
    let limit: Int
    private let width: Int
    private let batchSize: Int
    private(set) var queuedCount = 0
    private(set) var joinCount = 0
    private var works: [UInt64: Work] = [:]
    /// The numbers of works of the owners that have some.
    private var owned: [String: Int] = [:]
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
    /// - Parameter owner: whose work it is, if it is queued; nil for work without a limit of its own
    mutating func enter(
        _ key: Key,
        of group: Group,
        _ urgency: RequestUrgency,
        owner: String? = nil,
        waiter: Waiter,
        now: Int64
    ) -> EnterResult {
        if urgency == .interactive { lastInteractive = now }
        if let id = joinable[key] {
            let ticket = Ticket(work: id, waiter: nextNumber())
            works[id]?.waiters[ticket.waiter] = waiter
            joinCount += 1
            raiseUrgency(id, to: urgency)
            return .joined(ticket)
        }
        guard works.count < limit else { return .full }
        if let owner {
            guard owned[owner, default: 0] < limitPerOwner else { return .full }
            owned[owner, default: 0] += 1
        }
        let ticket = Ticket(work: nextNumber(), waiter: nextNumber())
        let waiters = [ticket.waiter: waiter]
        works[ticket.work] = Work(key: key, group: group, owner: owner, urgency: urgency, waiters: waiters)
        joinable[key] = ticket.work
        queuedCount += 1
        if groups[group] == nil {
            groups[group] = PendingGroup(urgency: urgency)
            enqueue(group, urgency)
        } else if let present = groups[group]?.urgency, urgency < present {
            enqueue(group, urgency)
        }
        groups[group]?.order.append(ticket.work)
        groups[group]?.counts[urgency.rawValue] += 1
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

    /// Takes removed work from what its owner has.
    private mutating func release(_ work: Work) {
        guard let owner = work.owner, let count = owned[owner] else { return }
        owned[owner] = count > 1 ? count - 1 : nil
    }

    // MARK: Batches

    /// Removes the next batch from the queue; nil if nothing may be started now.
    ///
    /// Prefetch leaves one slot free while interactive requests keep coming.
    mutating func next(now: Int64) -> Batch? {
        guard wanted.count < width else { return nil }
        let arePeopleThere = lastInteractive.map { now - $0 < Self.presence } ?? false
        let mayPrefetch = prefetching < (arePeopleThere ? max(1, width - 1) : width)
        for urgency in RequestUrgency.allCases where urgency == .interactive || mayPrefetch {
            if let group = popFirst(of: urgency) { return start(group, urgency) }
        }
        return nil
    }

    private mutating func start(_ group: Group, _ urgency: RequestUrgency) -> Batch? {
        guard var pending = groups.removeValue(forKey: group) else { return nil }
        let queued = pending.order.filter { works[$0] != nil }
        let sorted = RequestUrgency.allCases.flatMap { rank in queued.filter { works[$0]?.urgency == rank } }
        let started = Array(sorted.prefix(batchSize))
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
            pending.order = Array(sorted.dropFirst(started.count))
            groups[group] = pending
            enqueue(group, rest)
        }
        return Batch(number: number, urgency: urgency, keys: keys, works: started)
    }

    /// Removes a batch that has ended. Returns the waiters of each of its items.
    mutating func finish(_ batch: Batch) -> [[Waiter]] {
        guard wanted.removeValue(forKey: batch.number) != nil else { return [] }
        if batch.urgency == .prefetch { prefetching -= 1 }
        return batch.works.map { id in
            guard let work = works.removeValue(forKey: id) else { return [] }
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

    private mutating func raiseUrgency(_ id: UInt64, to urgency: RequestUrgency) {
        guard let work = works[id], work.batch == nil, urgency < work.urgency else { return }
        works[id]?.urgency = urgency
        groups[work.group]?.counts[work.urgency.rawValue] -= 1
        groups[work.group]?.counts[urgency.rawValue] += 1
        if let present = groups[work.group]?.urgency, urgency < present { enqueue(work.group, urgency) }
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
        if rest > pending.urgency { enqueue(work.group, rest) }
    }

    private mutating func enqueue(_ group: Group, _ urgency: RequestUrgency) {
        let stamp = nextNumber()
        groups[group]?.urgency = urgency
        groups[group]?.stamp = stamp
        lines[urgency.rawValue].entries.append((group, stamp))
        compact(urgency)
    }

    private mutating func popFirst(of urgency: RequestUrgency) -> Group? {
        var line = lines[urgency.rawValue]
        lines[urgency.rawValue] = Line()
        defer { lines[urgency.rawValue] = line }
        while line.start < line.entries.count {
            let (group, stamp) = line.entries[line.start]
            line.start += 1
            if groups[group]?.stamp == stamp { return group }
        }
        line = Line()
        return nil
    }

    /// Compacts a line before outdated positions outnumber the present ones.
    private mutating func compact(_ urgency: RequestUrgency) {
        let line = lines[urgency.rawValue]
        guard line.entries.count > 64 + 4 * groups.count else { return }
        let kept = line.entries[line.start...].filter { groups[$0.group]?.stamp == $0.stamp }
        lines[urgency.rawValue] = Line(entries: Array(kept), start: 0)
    }
}
