/// The waiters of each piece of work: equal requests at the same time share one execution.
///
/// Pure; ``CoalescingWorkQueue`` carries out its decisions.
struct SingleFlightTable<Key: Hashable & Sendable>: Sendable {
    /// One execution of the work of a key. A key requested again after its work was abandoned gets a new id, so that
    /// the end of the old execution is not mistaken for the end of the new one.
    struct WorkID: Sendable, Hashable {
        let number: UInt64
    }

    enum JoinResult: Equatable {
        /// No execution exists: the caller must start one.
        case begun(WorkID)
        case joined(WorkID)
        /// The limit of executions is reached.
        case full
    }

    /// The most executions that are queued or running.
    let limit: Int
    private(set) var joinCount = 0
    private var entries: [WorkID: (key: Key, waiters: Set<UInt64>)] = [:]
    private var byKey: [Key: WorkID] = [:]
    private var byWaiter: [UInt64: WorkID] = [:]
    private var nextNumber: UInt64 = 0

    init(limit: Int) {
        self.limit = max(1, limit)
    }

    var count: Int { entries.count }

    /// Returns true if work of this key is queued or running and can be joined.
    func holds(_ key: Key) -> Bool { byKey[key] != nil }

    mutating func join(_ key: Key, waiter: UInt64) -> JoinResult {
        if let id = byKey[key] {
            entries[id]?.waiters.insert(waiter)
            byWaiter[waiter] = id
            joinCount += 1
            return .joined(id)
        }
        guard entries.count < limit else { return .full }
        nextNumber += 1
        let id = WorkID(number: nextNumber)
        entries[id] = (key, [waiter])
        byKey[key] = id
        byWaiter[waiter] = id
        return .begun(id)
    }

    /// Removes a waiter. Returns the work to cancel if it was the last one.
    ///
    /// Abandoned work counts until it has ended, because it occupies its slot until then.
    mutating func removeWaiter(waiter: UInt64) -> WorkID? {
        guard let id = byWaiter.removeValue(forKey: waiter), let key = entries[id]?.key else { return nil }
        entries[id]?.waiters.remove(waiter)
        guard entries[id]?.waiters.isEmpty == true else { return nil }
        if byKey[key] == id { byKey[key] = nil }
        return id
    }

    /// Removes work that has ended and returns its waiters.
    mutating func finish(_ id: WorkID) -> Set<UInt64> {
        guard let entry = entries.removeValue(forKey: id) else { return [] }
        if byKey[entry.key] == id { byKey[entry.key] = nil }
        for waiter in entry.waiters { byWaiter[waiter] = nil }
        return entry.waiters
    }
}
