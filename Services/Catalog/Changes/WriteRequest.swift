import Basics
import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoModel

/// One transaction for the writer: the prepared requests of a client's `changes.perform`, or a change that the catalog
/// makes otherwise, for example of a grant.
struct WriteRequest: Sendable {
    /// The requests of the client, in order; empty without a `changes.perform`.
    var prepared: [PreparedChange]
    var origin: ChangeOrigin
    /// The idempotency key; nil if the write is not idempotent.
    var key: OutcomeKey?
    /// The digest of the call (``RequestDigest``), 32 bytes; empty without a key.
    var digest: [UInt8]
    /// The client that the transaction is made for.
    var source = WorkSource.service
    /// True if the transaction also makes the changes that depend on the time, to recently added assets and the trash.
    var expiresAssets = false
    /// The maximum number of assets that these changes affect.
    var maxExpired = Int.max
    /// Damage found in stored bytes, which the transaction also records.
    var marks: [DamageReport] = []
    /// Metadata of files that were read again, which the transaction also adds.
    var reread: [RereadMetadata] = []
    /// A change of one grant; a transaction that has it has no ``question``.
    var grant: GrantChange?
    /// A question about consent that the transaction records.
    var question: ConsentQuestion?
    /// The limited grant of the client: the transaction may name only assets on its list, and new assets join the list.
    var limited: Grant?
    /// True if the reply names the other assets that have the image of a new one.
    var reportsSameImage = true
    /// True if bytes that the library already has are uploaded to the object store again, like new ones: the client may
    /// not learn that the library had them.
    var uploadsAgain = false
    /// The add-only client that makes the transaction; the new assets are recorded as added by it.
    var addOnly: AddOnlyClient?
    /// Throws if the client may no longer make the transaction. Called when the transaction begins, perhaps long after
    /// it was received.
    var checkAccess: (@Sendable () throws(RPCError) -> Void)?

    init(prepared: [PreparedChange] = [], origin: ChangeOrigin, key: OutcomeKey? = nil, digest: [UInt8] = []) {
        self.prepared = prepared
        self.origin = origin
        self.key = key
        self.digest = digest
    }

    /// Returns a transaction of origin `clock`, which makes the changes that depend on the time.
    static var clock: WriteRequest { Self.clock(max: .max) }

    /// Returns a transaction of origin `clock` for at most a number of assets.
    static func clock(max: Int) -> WriteRequest {
        var write = WriteRequest(origin: ChangeOrigin(identity: "clock"))
        write.expiresAssets = true
        write.maxExpired = max
        return write
    }

    /// Returns a transaction that marks damaged images.
    static func marking(_ marks: [DamageReport]) -> WriteRequest {
        var write = WriteRequest(origin: ChangeOrigin(identity: "examiner"))
        write.marks = marks
        return write
    }

    /// Returns a transaction that adds metadata of files that were read again.
    static func rereading(_ found: [RereadMetadata]) -> WriteRequest {
        var write = WriteRequest(origin: ChangeOrigin(identity: "examiner"))
        write.reread = found
        return write
    }
}

// MARK: - Result

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

/// The reason why a transaction was not performed.
enum WriteFailure: Error, Sendable, CustomStringConvertible {
    case refused(RPCError)
    /// The commit failed but may have happened: only the reply of the server may have been lost.
    case unknown(RPCError)
    /// The metadata of bytes that were not read is needed: the caller extracts it and performs the transaction again.
    case metadataNeeded

    /// The error for logs.
    var description: String {
        switch self {
        case .refused(let refusal), .unknown(let refusal): "\(refusal.name): \(refusal.message)"
        case .metadataNeeded: "metadata is needed"
        }
    }

    /// The error to throw to the client. Metadata is needed only by requests with bytes, and they are performed again.
    var clientError: any Error {
        switch self {
        case .refused(let refusal), .unknown(let refusal): refusal
        case .metadataNeeded: ChangeError.noMetadata
        }
    }

    /// True if the transaction has to be split.
    var isTooLarge: Bool {
        guard case .refused(let refusal) = self else { return false }
        return refusal.errorCode == .limitExceeded
    }
}

// MARK: - Outcome

/// The outcome of a transaction, kept for clients that repeat it.
struct StoredOutcome: Sendable, Equatable {
    let digest: [UInt8]
    let reply: Bytes

    /// Returns the same reply again.
    ///
    /// - Throws: ``CatalogError/transactionReused(_:)`` if the repeated transaction has other parameters
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

// MARK: - Weight

extension WriteRequest {
    /// The approximate number of entities that the transaction names; it bounds the size of a commit.
    var weight: Int { prepared.indices.reduce(0) { $0 + prepared[$1].request.weight } }
}

extension ChangeRequest {
    /// The approximate number of entities that the request names, at least 1.
    fileprivate var weight: Int {
        switch self {
        case .deleteAssets(let request), .deleteCollections(let request), .deleteLists(let request),
            .trashAssets(let request), .restoreAssets(let request):
            max(1, request.ids.count)
        case .createCollection(let request): 1 + request.add.count
        case .updateCollection(let request): 1 + request.add.count + request.remove.count + request.edits.count
        case .createList(let request): 1 + request.add.count
        case .updateList(let request): 1 + request.edits.count
        default: 1
        }
    }
}
