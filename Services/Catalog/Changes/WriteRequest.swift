import Basics
import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoModel
import Storage

/// A request for one transaction.
struct WriteRequest: Sendable {
    var changes: [PreparedChange]
    var origin: ChangeOrigin
    /// The idempotency key; nil if the write is not idempotent.
    var key: OutcomeKey?
    /// SHA-256 of the request's parameters.
    var digest: [UInt8]
    /// The client that the transaction is made for.
    var source = WorkSource.service
    /// True if the transaction also makes the changes that depend on the time: of recently added assets and the trash.
    var expiresAssets = false
    /// The maximum number of assets to which that applies.
    var maxExpired = Int.max
    /// Damage found in stored bytes, which the transaction also records.
    var marks: [DamageReport] = []
    /// Metadata of files that were read again, which the transaction also adds.
    var reread: [RereadMetadata] = []
    /// A change of one grant; a request with one has no question.
    var grant: GrantChange?
    /// A question about consent that the transaction records.
    var question: ConsentQuestion?
    /// The limited grant of the client: the transaction names the assets of its list only, and its new assets join the
    /// list.
    var limited: Grant?
    /// True if the reply names the other assets that have the image of a new one.
    var reportsSameImage = true
    /// True if bytes that the library has already are uploaded again: the client may not learn that it had them.
    var uploadsAgain = false
    /// The add-only client that makes the transaction; its new assets are recorded as added by it.
    var addOnly: AddOnlyClient?
    /// Throws if the client may no longer make the transaction. Called when the transaction begins, perhaps long after
    /// it was received.
    var checkAccess: (@Sendable () throws(RPCError) -> Void)?

    init(changes: [PreparedChange], origin: ChangeOrigin, key: OutcomeKey?, digest: [UInt8]) {
        self.changes = changes
        self.origin = origin
        self.key = key
        self.digest = digest
    }

    /// Returns a transaction of origin `clock`, which makes the changes that depend on the time.
    static var clock: WriteRequest { Self.clock(max: .max) }

    /// Returns a transaction of origin `clock` for at most a number of assets.
    static func clock(max: Int) -> WriteRequest {
        var request = WriteRequest(changes: [], origin: ChangeOrigin(identity: "clock"), key: nil, digest: [])
        request.expiresAssets = true
        request.maxExpired = max
        return request
    }

    /// Returns a transaction that marks damaged images.
    static func marking(_ marks: [DamageReport]) -> WriteRequest {
        var request = WriteRequest(changes: [], origin: ChangeOrigin(identity: "examiner"), key: nil, digest: [])
        request.marks = marks
        return request
    }

    /// Returns a transaction that adds metadata of files that were read again.
    static func rereading(_ found: [RereadMetadata]) -> WriteRequest {
        var request = WriteRequest(changes: [], origin: ChangeOrigin(identity: "examiner"), key: nil, digest: [])
        request.reread = found
        return request
    }
}

// MARK: - Outcome

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
enum WriteFailure: Error, Sendable, CustomStringConvertible {
    case refused(RPCError)
    /// The commit failed but may have happened: only the reply of the server may have been lost.
    case unknown(RPCError)
    /// The metadata of some bytes is needed after all: the caller extracts it and sends the request again.
    case factsNeeded

    /// The error for logs.
    var description: String {
        switch self {
        case .refused(let refusal), .unknown(let refusal): "\(refusal.name): \(refusal.message)"
        case .factsNeeded: "metadata is needed"
        }
    }

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

// MARK: - Objects that a request names

extension WriteRequest {
    /// The approximate number of entities that the request names, at least 1; it bounds the size of a commit.
    var weight: Int { changes.indices.reduce(0) { $0 + changes[$1].request.weight } }
}

extension ChangeRequest {
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

extension ChangeRequest {
    /// The stored assets that the request names, except those of a list's edits. A limited client may name those of its
    /// list only, so each kind of request says which they are.
    var assets: [ObjectID] {
        switch self {
        case .updateAsset(let request): [request.id].compactMap(\.storedID)
        case .editAsset(let request): [request.id]
        case .revertAsset(let request): [request.id]
        case .deleteAssets(let request), .trashAssets(let request), .restoreAssets(let request): request.ids
        case .createCollection(let request): request.add.compactMap(\.storedID)
        case .updateCollection(let request): request.add.compactMap(\.storedID) + request.remove
        case .createAsset, .deleteCollections, .createList, .updateList, .deleteLists: []
        // They change no asset. That of an accepted edit is checked when the edit is applied.
        case .acceptEdit, .failEdit: []
        }
    }

    /// Those of them that are always read; of the assets to remove from an album only its members are read.
    var readAssets: [ObjectID] {
        if case .updateCollection(let request) = self { return request.add.compactMap(\.storedID) }
        return assets
    }
}

extension ChangeRequest {
    /// The number of objects that the operations on an album or a folder name.
    var namedInEdits: Int {
        switch self {
        case .updateCollection(let request): request.edits.reduce(0) { $0 + $1.named }
        case .updateList(let request): request.edits.reduce(0) { $0 + $1.named }
        default: 0
        }
    }
}

extension MemberEdit {
    fileprivate var named: Int {
        switch self {
        case .add(let members), .insert(let members, _), .replace(_, let members): members.count
        case .remove(let ids): ids.count
        case .move, .removeAt: 0
        }
    }
}

extension ObjectReference {
    fileprivate var storedID: ObjectID? {
        guard case .id(let id) = self else { return nil }
        return id
    }
}

// MARK: - Prepared changes

/// Bytes in the resource store that are about to be assigned to an asset.
struct PreparedResource: Sendable {
    var type: ResourceType
    var digest: String
    var size: Int64
    /// False if the bytes are new: no asset has them, unless its stored file was lost or is a reference.
    var wasPresent: Bool
    var originalFilename: String?
    /// The path that the client sent, for error messages; nil if the bytes did not come from a path.
    var path: String?
    /// The file at the path, if it is to be removed once its bytes belong to an asset.
    var identity: FileIdentity?
    // Stored indirectly, because each change contains a resource, which usually has no metadata.
    private var storedFacts: Indirect<ExtractedMetadata>?

    init(
        type: ResourceType,
        digest: String,
        size: Int64,
        wasPresent: Bool = true,
        originalFilename: String? = nil,
        path: String? = nil,
        identity: FileIdentity? = nil,
        facts: ExtractedMetadata? = nil
    ) {
        self.type = type
        self.digest = digest
        self.size = size
        self.wasPresent = wasPresent
        self.originalFilename = originalFilename
        self.path = path
        self.identity = identity
        self.facts = facts
    }

    /// The metadata; nil if it was not extracted because an asset with these bytes already existed.
    var facts: ExtractedMetadata? {
        get { storedFacts?.value }
        set { storedFacts = newValue.map { Indirect($0) } }
    }
}

/// A change request whose bytes are in the resource store.
struct PreparedChange: Sendable {
    var request: ChangeRequest
    /// The resources in the order of the request; for an edit, the render and the video of a Live Photo.
    var resources: [PreparedResource] = []
    /// The render, if a new asset comes with an edit.
    var render: PreparedResource?
    /// The adjustment data, if the request is an edit.
    var adjustment: PreparedResource?
    /// The list as the client saw it, if the request has index operations.
    var snapshot: SnapshotList?

    init(
        _ request: ChangeRequest,
        resources: [PreparedResource] = [],
        render: PreparedResource? = nil,
        adjustment: PreparedResource? = nil,
        snapshot: SnapshotList? = nil
    ) {
        self.render = render
        self.snapshot = snapshot
        self.request = request
        self.resources = resources
        self.adjustment = adjustment
    }
}
