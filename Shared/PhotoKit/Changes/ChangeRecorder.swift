import Basics
import Contracts
import Foundation
import JSONValue
import Logging
import PhotoClient
import PhotoModel
import Synchronization

/// The change requests of one change block, in the order in which they were created.
final class ChangeRecorder: Sendable {
    /// The recorder of the change block in which the task was started; the block may have returned.
    @TaskLocal private static var inherited: ChangeRecorder?

    /// The recorder of the running change block; nil outside of one.
    static var current: ChangeRecorder? { inherited.flatMap { $0.state.withLock { $0.isOver } ? nil : $0 } }

    private struct State {
        var requests: [any RecordedChange] = []
        var created: Set<String> = []
        /// The reason for which the objects of a request cannot be read.
        var failure: RPCError?
        /// True once the block has returned. A task that was started in it may still run.
        var isOver = false
    }

    private let state = Mutex(State())
    let connection: LibraryConnection

    init(_ connection: LibraryConnection) { self.connection = connection }

    /// Runs a change block and returns its requests.
    ///
    /// - Throws: `nested_change` inside of another block (T-29); the reason for which the objects of a request cannot be read
    static func record(
        _ connection: LibraryConnection,
        _ block: () -> Void
    ) throws(RPCError) -> [any RecordedChange] {
        guard current == nil else { throw nested }
        let recorder = ChangeRecorder(connection)
        $inherited.withValue(recorder) { block() }
        let (requests, failure) = recorder.state.withLock { state in
            state.isOver = true
            return (state.requests, state.failure)
        }
        if let failure { throw failure }
        return requests
    }

    static var nested: RPCError {
        ErrorCode.nestedChange.error("a change block cannot perform changes; put all requests into one block")
    }

    /// Adds a request to the running block. Outside of one it stops the program, as PhotoKit does (S-75).
    static func add(_ request: any RecordedChange) {
        guard let current else {
            preconditionFailure("change requests are made inside the block of performChanges")
        }
        current.state.withLock { $0.requests.append(request) }
    }

    /// Returns a placeholder with a new identifier, which the catalog gives to the object that is created.
    static func makePlaceholder(_ kind: ObjectKind) -> PHObjectPlaceholder {
        var random = SystemRandomNumberGenerator()
        let id = ObjectID(kind, milliseconds: Int64(Date().timeIntervalSince1970 * 1000), using: &random)
        current?.state.withLock { _ = $0.created.insert(id.text) }
        return PHObjectPlaceholder(id, nil, history: nil)
    }

    /// Returns the identifiers of objects.
    ///
    /// If they are a fetch result that cannot be read to its end, the whole block fails with the reason: a loop over the result
    /// would end early, and the request would name only a part of its objects.
    static func identifiers<Object: PHObject>(_ objects: some Sequence<Object>) -> [ObjectID] {
        guard let result = objects as? any AnyFetchResult else { return objects.map(\.id) }
        do throws(RPCError) {
            return try result.identifiers()
        } catch {
            current?.state.withLock { $0.failure = error }
            return []
        }
    }

    /// Returns references to objects, as ``identifiers(_:)`` does. An object that this block creates is referred to by
    /// its placeholder.
    static func references<Object: PHObject>(_ objects: some Sequence<Object>) -> [ObjectReference] {
        let created = current?.state.withLock { $0.created } ?? []
        return identifiers(objects).map { id in created.contains(id.text) ? .placeholder(id.text) : .id(id) }
    }
}

/// A change request of a block.
protocol RecordedChange: AnyObject, Sendable {
    /// True if the request attaches adjustment data, which cannot be uploaded.
    var hasAdjustmentData: Bool { get }

    /// Returns the corresponding requests of the protocol, and adds the bytes of the files to the attachments and
    /// uploads.
    func wireRequests(_ files: inout ChangeFiles) async throws(RPCError) -> [ChangeRequest]
}

extension RecordedChange {
    var hasAdjustmentData: Bool { false }
}

/// The files of a transaction: attached to its message if they are small, else uploaded before it.
struct ChangeFiles {
    private(set) var attachments: [Bytes] = []
    /// The uploads that the requests name.
    private(set) var uploads: [String] = []
    /// Files that are removed after the commit.
    private var moved: [MovedFile] = []
    private var size = 0
    /// The number of files that are attached.
    private var fileCount = 0
    private let connection: LibraryConnection
    /// The maximum number of attached files: the frames that the adjustment data does not need. Other files are
    /// uploaded.
    private let maxCount: Int

    private static let maxSize = 6 << 20
    /// A message has at most 64 frames, and the first one is the request.
    private static let maxAttachments = 63
    /// The catalog's limit for an identity.
    private static let maxUploads = 64

    /// - Throws: `limit_exceeded` if the changes have more adjustment data than can be attached
    init(_ connection: LibraryConnection, for changes: [any RecordedChange]) throws(RPCError) {
        let edits = changes.count(where: { $0.hasAdjustmentData })
        guard edits <= Self.maxAttachments else {
            throw ErrorCode.limitExceeded.error(
                "a change block can commit \(Self.maxAttachments) edits, not \(edits); use several blocks",
                ["limit": JSON(Self.maxAttachments)]
            )
        }
        self.connection = connection
        maxCount = min(48, Self.maxAttachments - edits)
    }

    /// - Throws: `limit_exceeded` if the changes have more files than can be attached and uploaded
    mutating func add(_ bytes: Bytes) async throws(RPCError) -> ResourceSource {
        guard canAttach(bytes.count) else {
            try checkUploads()
            return uploaded(try await connection.client.upload(bytes))
        }
        return attached(bytes)
    }

    /// - Throws: `missing_resource` if the file cannot be read; `limit_exceeded` as ``add(_:)``
    mutating func add(file url: URL) async throws(RPCError) -> ResourceSource { try await add(try SourceFile(url)) }

    /// - Parameter verifies: true to compare the file that the library already stores, if it has one, with the bytes
    private mutating func add(_ file: SourceFile, verifies: Bool = false) async throws(RPCError) -> ResourceSource {
        guard canAttach(file.size) else {
            try checkUploads()
            // The file has to stay open until the end of the upload.
            defer { withExtendedLifetime(file) {} }
            return uploaded(
                try await connection.client.upload(file.descriptor, named: file.path, verifies: verifies)
            )
        }
        return attached(try file.read())
    }

    private func canAttach(_ count: Int) -> Bool { count <= Self.maxSize - size && fileCount < maxCount }

    private mutating func attached(_ bytes: Bytes) -> ResourceSource {
        fileCount += 1
        size += bytes.count
        attachments.append(bytes)
        return .attachment(attachments.count - 1)
    }

    private func checkUploads() throws(RPCError) {
        guard uploads.count < Self.maxUploads else {
            throw ErrorCode.limitExceeded.error(
                "the files of a change block are too many or too large; use several blocks",
                ["limit": JSON(Self.maxUploads)]
            )
        }
    }

    private mutating func uploaded(_ upload: String) -> ResourceSource {
        uploads.append(upload)
        return .upload(upload)
    }

    /// Adds a file that is removed after the commit. If the library already stores a file with these bytes, that one is
    /// verified first: it may be damaged, and will be the only copy.
    ///
    /// - Throws: `invalid_resource` if it has other hard links (T-21); errors of ``add(file:)``
    mutating func move(file url: URL) async throws(RPCError) -> ResourceSource {
        let file = try SourceFile(url)
        guard !file.hasOtherLinks else {
            throw ErrorCode.invalidResource.error("\(url.path) has other hard links and cannot be moved")
        }
        moved.append(MovedFile(url: url, identity: file.identity))
        return try await add(file, verifies: true)
    }

    /// Removes the files that were moved in, after the transaction is committed.
    func removeMoved() {
        for file in moved {
            if file.remove() { continue }
            connection.logger.warning(
                "a file that was moved into the library stays: it was changed or replaced, or cannot be removed",
                metadata: ["file": "\(file.url.path)"]
            )
        }
    }

    /// Attaches bytes that cannot be uploaded, such as adjustment data, and returns the number of the attachment.
    mutating func attach(_ bytes: Bytes) -> Int {
        size += bytes.count
        attachments.append(bytes)
        return attachments.count - 1
    }
}

extension LibraryConnection {
    /// The time for which changes wait for the owner's consent.
    private static let consentTime = Duration.seconds(600)

    /// Performs the requests of a block as one transaction, exactly once (S-71 to S-73).
    func perform(_ changes: [any RecordedChange]) async throws(RPCError) {
        let transaction = PhotoLibrary.uniqueTransaction()
        for attempt in 1... {
            var files = try ChangeFiles(self, for: changes)
            do throws(RPCError) {
                return try await perform(changes, transaction, &files)
            } catch {
                await client.cancelUploads(files.uploads)
                // The catalog was restarted after an upload and has discarded it; the changes were not committed.
                let isLost = error.errorCode == .handleExpired && !files.uploads.isEmpty
                guard isLost, attempt < PhotoLibrary.uploadAttempts else { throw error }
            }
        }
    }

    private func perform(
        _ changes: [any RecordedChange],
        _ transaction: String,
        _ files: inout ChangeFiles
    ) async throws(RPCError) {
        var requests: [ChangeRequest] = []
        for change in changes { requests += try await change.wireRequests(&files) }
        guard !requests.isEmpty else { return }
        // A request that adds assets to an album may precede the requests that create them in the same block.
        requests = requests.filter(\.isCreation) + requests.filter { !$0.isCreation }
        let request = PerformChanges(
            requests: requests,
            client: configuration.client,
            transaction: transaction
        )
        // The owner may take longer to consent than the deadline of a request. A request with the same transaction then
        // waits for the same consent.
        let end = ContinuousClock.now + Self.consentTime
        while true {
            do throws(RPCError) {
                _ = try await ask(request, of: client.catalog, attachments: files.attachments)
                break
            } catch {
                guard error.data["isWaiting"] == true, ContinuousClock.now < end, !Task.isCancelled,
                    !isClosed.load(ordering: .relaxed)
                else { throw error }
            }
        }
        files.removeMoved()
    }
}

extension ChangeRequest {
    fileprivate var isCreation: Bool {
        switch self {
        case .createAsset, .createCollection, .createList: true
        default: false
        }
    }
}
