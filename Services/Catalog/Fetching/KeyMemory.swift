import Synchronization

/// Limits the memory of the keys that wait for the credit of their clients: a client that gives none keeps them.
final class KeyMemory: Sendable {
    private struct Held {
        var bytes = 0
        var byIdentity: [String: Int] = [:]
    }

    /// The maximum bytes of all keys, of which one identity may have half. A larger result is read while there are no
    /// others.
    let limit: Int
    private let held = Mutex(Held())

    init(limit: Int = 256 << 20) { self.limit = limit }

    /// The bytes that are held.
    var bytes: Int { held.withLock { $0.bytes } }

    /// Returns the reservation of one request, without any bytes.
    func reservation(of identity: String) -> Reservation { Reservation(identity, of: self) }

    /// Holds the memory of the keys of one request, as long as it exists. Only one task at a time uses it.
    final class Reservation: Sendable {
        private let identity: String
        private let memory: KeyMemory
        private let own = Mutex(0)

        fileprivate init(_ identity: String, of memory: KeyMemory) {
            self.identity = identity
            self.memory = memory
        }

        /// Reserves memory for further keys.
        ///
        /// - Throws: `busy`
        func add(_ bytes: Int) throws(FetchError) {
            let own = own.withLock { $0 }
            let isAdded = memory.held.withLock { held in
                let ofIdentity = held.byIdentity[identity] ?? 0
                guard held.bytes == own || held.bytes + bytes <= memory.limit,
                    ofIdentity == own || ofIdentity + bytes <= memory.limit / 2
                else { return false }
                held.bytes += bytes
                held.byIdentity[identity] = ofIdentity + bytes
                return true
            }
            guard isAdded else { throw .tooManyWaitingKeys(limit: memory.limit) }
            self.own.withLock { $0 += bytes }
        }

        /// Gives the memory of keys back that have been sent.
        func remove(_ bytes: Int) {
            own.withLock { $0 -= bytes }
            memory.held.withLock { held in
                held.bytes -= bytes
                let left = (held.byIdentity[identity] ?? 0) - bytes
                held.byIdentity[identity] = left > 0 ? left : nil
            }
        }

        deinit { remove(own.withLock { $0 }) }
    }
}
