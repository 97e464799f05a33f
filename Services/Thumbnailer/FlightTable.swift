/// The waiters of each piece of work: equal requests at the same time share one execution.
///
/// Pure; ``SharedWork`` carries out its decisions.
struct FlightTable<Key: Hashable & Sendable>: Sendable {
    /// One execution of the work of a key. A key requested again after its work was abandoned gets a new id, so that
    /// the end of the old execution is not mistaken for the end of the new one.
    struct FlightID: Sendable, Hashable {
        let number: UInt64
    }

    enum Joining: Equatable {
        /// No execution exists: the caller must start one.
        case begun(FlightID)
        case joined(FlightID)
        /// The limit of executions is reached.
        case full
    }

    /// The most executions that are queued or running.
    let limit: Int
    private(set) var joins = 0
    private var flights: [FlightID: (key: Key, waiters: Set<UInt64>)] = [:]
    private var byKey: [Key: FlightID] = [:]
    private var byWaiter: [UInt64: FlightID] = [:]
    private var nextNumber: UInt64 = 0

    init(limit: Int) {
        self.limit = max(1, limit)
    }

    var count: Int { flights.count }

    /// Returns true if work of this key is queued or running and can be joined.
    func holds(_ key: Key) -> Bool { byKey[key] != nil }

    mutating func join(_ key: Key, waiter: UInt64) -> Joining {
        if let id = byKey[key] {
            flights[id]?.waiters.insert(waiter)
            byWaiter[waiter] = id
            joins += 1
            return .joined(id)
        }
        guard flights.count < limit else { return .full }
        nextNumber += 1
        let id = FlightID(number: nextNumber)
        flights[id] = (key, [waiter])
        byKey[key] = id
        byWaiter[waiter] = id
        return .begun(id)
    }

    /// Removes a waiter. Returns the work to cancel if it was the last one.
    ///
    /// Abandoned work counts until it has ended, because it occupies its slot until then.
    mutating func leave(waiter: UInt64) -> FlightID? {
        guard let id = byWaiter.removeValue(forKey: waiter), let key = flights[id]?.key else { return nil }
        flights[id]?.waiters.remove(waiter)
        guard flights[id]?.waiters.isEmpty == true else { return nil }
        if byKey[key] == id { byKey[key] = nil }
        return id
    }

    /// Removes work that has ended and returns its waiters.
    mutating func finish(_ id: FlightID) -> Set<UInt64> {
        guard let flight = flights.removeValue(forKey: id) else { return [] }
        if byKey[flight.key] == id { byKey[flight.key] = nil }
        for waiter in flight.waiters { byWaiter[waiter] = nil }
        return flight.waiters
    }
}
