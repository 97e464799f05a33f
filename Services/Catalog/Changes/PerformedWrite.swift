import Basics
import JSONValue
import PhotoModel

/// The record of a committed transaction in the form in which it is stored and sent: it is encoded once.
struct CommittedRecord: Sendable {
    let sequence: Int64
    let bytes: [UInt8]
    /// True if the record inserts assets.
    let bringsAssets: Bool
}

/// A transaction that was performed, or whose outcome was already known.
struct PerformedWrite: Sendable {
    /// The result as it is stored and sent: it is encoded once.
    var reply: Bytes = []
    /// The record; nil if nothing changed or the outcome was already known.
    var record: CommittedRecord?
    /// The grant after the transaction, if it changed one; the change of its list is in the record and in the database.
    var grant: Grant?
    var isRepeat = false
    /// True if more changes are due by the clock than fit into one transaction.
    var hasMore = false
    /// True if this is a clock transaction and nothing was due.
    var isIdle = false
}

/// The reason why one request of a batch was not performed; the other requests are not affected.
enum WriteFailure: Error, Sendable {
    case refused(RPCError)
    /// The metadata of some bytes is needed after all: the caller extracts it and sends the request again.
    case factsNeeded
}

/// The outcome of a transaction, kept for clients that repeat the request.
struct StoredOutcome: Sendable, Equatable {
    let digest: [UInt8]
    let reply: Bytes

    /// Returns the same reply again.
    ///
    /// - Throws: ``CatalogError/transactionReused(_:)`` if the request has other parameters
    func reply(for digest: [UInt8], _ key: OutcomeKey) throws -> Bytes {
        guard digest == self.digest else { throw CatalogError.transactionReused(key.transaction) }
        return reply
    }
}

/// The key of an idempotent transaction: the identity, the client's name and the transaction id.
struct OutcomeKey: Sendable, Hashable {
    let identity: String
    let client: String
    let transaction: String
}
