/// Who waits for which work: the same work asked for again is joined, not begun again.
///
/// A pure table; ``SharedWork`` carries out what it says.
struct FlightTable<Key: Hashable & Sendable>: Sendable {
    /// One piece of work, from its beginning to its end. A key that is asked for after its work was given up has a new
    /// one, so that the end of the old work cannot be taken for the end of the new.
    struct FlightID: Sendable, Hashable {
        let number: UInt64
    }

    enum Joining: Equatable {
        /// Nobody does it yet: begin.
        case begun(FlightID)
        case joined(FlightID)
        /// As much is under way as may be.
        case full
    }

    /// Pieces of work that may be queued or under way.
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

    /// Whether work of this key can be joined.
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

    /// One who waited has gone; the work that nobody waits for any more, which is to be given up.
    ///
    /// Work that was given up still counts until it has ended, because it holds its place in the queue until then.
    mutating func leave(waiter: UInt64) -> FlightID? {
        guard let id = byWaiter.removeValue(forKey: waiter), let key = flights[id]?.key else { return nil }
        flights[id]?.waiters.remove(waiter)
        guard flights[id]?.waiters.isEmpty == true else { return nil }
        if byKey[key] == id { byKey[key] = nil }
        return id
    }

    /// The work has ended; who waits for it.
    mutating func finish(_ id: FlightID) -> Set<UInt64> {
        guard let flight = flights.removeValue(forKey: id) else { return [] }
        if byKey[flight.key] == id { byKey[flight.key] = nil }
        for waiter in flight.waiters { byWaiter[waiter] = nil }
        return flight.waiters
    }
}
