import Synchronization

/// A limit on the memory of the keys that wait for the credit of their clients: the keys of a client that gives no
/// credit stay in memory.
///
/// Services have an equal amount of memory of their own, so that other clients cannot prevent the change-broker from
/// loading keys, on which all observers depend.
final class KeyMemory: Sendable {
    private struct Reserved {
        var ofServices = 0
        var ofClients = BytesByIdentity()
    }

    /// The maximum bytes of the keys of all clients together, of which one identity may have half, and of the keys of
    /// all services together. A single request of a service may exceed it while there are no others.
    let limit: Int
    private let reserved = Mutex(Reserved())

    init(limit: Int = 256 << 20) { self.limit = limit }

    /// The reserved bytes.
    var bytes: Int { reserved.withLock { $0.ofServices + $0.ofClients.total } }

    /// Returns the reservation of one request, without any bytes.
    func reservation(of identity: String, isService: Bool) -> Reservation {
        Reservation(identity, isService: isService, of: self)
    }

    /// The memory of the keys of one request, reserved as long as this object exists. Only one task at a time uses it.
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
        /// - Throws: `busy`, or `limit_exceeded` if the keys of one request exceed the limit of a client
        func add(_ bytes: Int) throws(FetchError) {
            let own = own.withLock { $0 }
            let limitOfIdentity = memory.limit / 2
            guard isService || own + bytes <= limitOfIdentity else {
                throw .tooManyKeyBytes(limit: limitOfIdentity)
            }
            let isAdded = memory.reserved.withLock { reserved in
                guard isService else { return reserved.ofClients.add(bytes, of: identity, limit: memory.limit) }
                guard reserved.ofServices == own || reserved.ofServices + bytes <= memory.limit else { return false }
                reserved.ofServices += bytes
                return true
            }
            guard isAdded else { throw .tooManyWaitingKeys(limit: memory.limit) }
            self.own.withLock { $0 += bytes }
        }

        /// Releases the memory of keys that were sent.
        func remove(_ bytes: Int) {
            own.withLock { $0 -= bytes }
            memory.reserved.withLock { reserved in
                if isService { reserved.ofServices -= bytes } else { reserved.ofClients.remove(bytes, of: identity) }
            }
        }

        deinit { remove(own.withLock { $0 }) }
    }
}
