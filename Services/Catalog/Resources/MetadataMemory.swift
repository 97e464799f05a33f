import Synchronization

/// Limits the memory of the metadata that is read from files and waits for the commit of its transaction. Even a small
/// file may have megabytes of it, and many requests may name that file.
final class MetadataMemory: Sendable {
    /// The maximum bytes of all transactions, of which those of one identity may have half.
    let limit: Int
    /// The maximum bytes of one transaction: those of its record.
    let limitOfTransaction: Int
    private let reserved = Mutex(BytesByIdentity())

    init(limit: Int = 256 << 20, limitOfTransaction: Int = 8 << 20) {
        (self.limit, self.limitOfTransaction) = (limit, limitOfTransaction)
    }

    /// The reserved bytes.
    var bytes: Int { reserved.withLock { $0.total } }

    /// Returns an empty reservation for one transaction.
    func reservation(of identity: String) -> Reservation { Reservation(identity, of: self) }

    /// The memory of the metadata of one transaction, reserved as long as this object exists.
    final class Reservation: Sendable {
        private let identity: String
        private let memory: MetadataMemory
        private let own = Mutex(0)

        fileprivate init(_ identity: String, of memory: MetadataMemory) {
            self.identity = identity
            self.memory = memory
        }

        /// Reserves memory for the metadata of further files.
        ///
        /// - Throws: `limit_exceeded` if the transaction has to be split, `busy`
        func add(_ bytes: Int) throws {
            guard bytes > 0 else { return }
            try own.withLock { own in
                let (limit, sum) = (memory.limitOfTransaction, own + bytes)
                guard sum <= limit else { throw CatalogError.recordTooLarge(bytes: sum, limit: limit) }
                let isAdded = memory.reserved.withLock { $0.add(bytes, of: identity, limit: memory.limit) }
                guard isAdded else { throw ResourceError.tooMuchMetadata(limit: memory.limit) }
                own = sum
            }
        }

        deinit {
            let own = own.withLock { $0 }
            guard own > 0 else { return }
            memory.reserved.withLock { $0.remove(own, of: identity) }
        }
    }
}
