import Synchronization

/// Limits the memory of the keys that wait for the credit of their clients: a client that gives none keeps them.
///
/// Services have as much again: no other client can stop the loads of the broker, on which all observers depend.
final class KeyMemory: Sendable {
    private struct Held {
        var ofServices = 0
        var ofClients = BytesByIdentity()
    }

    /// The maximum bytes of the keys of all clients, of which one identity may have half; and those of all services, of
    /// which one has a larger result while there are no others.
    let limit: Int
    private let held = Mutex(Held())

    init(limit: Int = 256 << 20) { self.limit = limit }

    /// The bytes that are held.
    var bytes: Int { held.withLock { $0.ofServices + $0.ofClients.total } }

    /// Returns the reservation of one request, without any bytes.
    func reservation(of identity: String, isService: Bool) -> Reservation {
        Reservation(identity, isService: isService, of: self)
    }

    /// Holds the memory of the keys of one request, as long as it exists. Only one task at a time uses it.
    final class Reservation: Sendable {
        private let identity: String
        private let isService: Bool
        private let memory: KeyMemory
        private let own = Mutex(0)

        fileprivate init(_ identity: String, isService: Bool, of memory: KeyMemory) {
            self.identity = identity
            self.isService = isService
            self.memory = memory
        }

        /// Reserves memory for further keys.
        ///
        /// - Throws: `busy`, or `limit_exceeded` if the keys of one request are more than a client may ever have
        func add(_ bytes: Int) throws(FetchError) {
            let own = own.withLock { $0 }
            let limitOfIdentity = memory.limit / 2
            guard isService || own + bytes <= limitOfIdentity else {
                throw .tooManyKeyBytes(limit: limitOfIdentity)
            }
            let isAdded = memory.held.withLock { held in
                guard isService else { return held.ofClients.add(bytes, of: identity, limit: memory.limit) }
                guard held.ofServices == own || held.ofServices + bytes <= memory.limit else { return false }
                held.ofServices += bytes
                return true
            }
            guard isAdded else { throw .tooManyWaitingKeys(limit: memory.limit) }
            self.own.withLock { $0 += bytes }
        }

        /// Gives the memory of keys back that have been sent.
        func remove(_ bytes: Int) {
            own.withLock { $0 -= bytes }
            memory.held.withLock { held in
                if isService { held.ofServices -= bytes } else { held.ofClients.remove(bytes, of: identity) }
            }
        }

        deinit { remove(own.withLock { $0 }) }
    }
}
