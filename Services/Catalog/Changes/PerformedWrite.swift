import Basics
import Contracts
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

/// The reason why a request was not performed.
enum WriteFailure: Error, Sendable {
    case refused(RPCError)
    /// The commit failed, and may have happened all the same: the server may have lost only its answer.
    case unknown(RPCError)
    /// The metadata of some bytes is needed after all: the caller extracts it and sends the request again.
    case factsNeeded

    /// True if the transaction has to be split.
    var isTooLarge: Bool {
        guard case .refused(let refusal) = self else { return false }
        return refusal.errorCode == .limitExceeded
    }
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
