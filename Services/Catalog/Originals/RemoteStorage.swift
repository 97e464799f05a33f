import Basics
import Contracts
import Hosting
import Logging
import ObjectStorage
import Storage
import Synchronization

/// The object store of a library: its client, the counters of its transfers, and its current problem.
final class RemoteStorage: Sendable {
    let client: ObjectStoreClient
    let options: RemoteStorageOptions
    let store: LibraryStore
    let resources: ResourceStore
    let blockingIO: BlockingIOExecutor
    let logger: Logger
    let now: @Sendable () -> Int64
    /// The progress of jobs.
    let jobChanges = UploadJobChanges()
    /// Held while local files are removed, and while objects are deleted, so that the two exclude each other.
    let exclusive = FairSemaphore<Int>(permits: 1)
    let throttle: ImportThrottle
    private let state = Mutex(State())
    private let wakeups = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))

    /// A failure that concerns the object store as a whole.
    struct Problem: Sendable, Equatable {
        let error: ObjectStoreError
        /// Microseconds since 1970.
        let since: Int64
    }

    private struct State {
        var problem: Problem?
        var uploadedBytes: Int64 = 0
        var downloadedBytes: Int64 = 0
        var releasedBytes: Int64 = 0
        var uploadRate: Int64 = 0
    }

    init(
        _ options: RemoteStorageOptions,
        store: LibraryStore,
        resources: ResourceStore,
        blockingIO: BlockingIOExecutor,
        now: @escaping @Sendable () -> Int64,
        logger: Logger
    ) {
        self.options = options
        throttle = ImportThrottle(options)
        client = ObjectStoreClient(
            options.location,
            options.credentials,
            options.settings,
            credentialsFile: options.credentialsFile
        )
        self.store = store
        self.resources = resources
        self.blockingIO = blockingIO
        self.now = now
        self.logger = logger
    }

    /// The maximum difference in seconds to the clock of the object store that is not a problem.
    private static let maxSkew = 300

    /// Returns the key, below the prefix, of the object with the bytes of a digest.
    static func key(_ digest: ResourceDigest) -> String { "\(digest.text.prefix(2))/\(digest)" }

    /// Checks an object in the object store.
    ///
    /// - Parameter readsBytes: true to download and compare the bytes
    /// - Returns: nil if it does not exist, false if it has another size or other bytes
    /// - Throws: ``ObjectStoreError``
    func isStored(_ digest: ResourceDigest, size: Int64, readsBytes: Bool = false) async throws -> Bool? {
        let key = Self.key(digest)
        guard let info = try await client.head(key) else { return nil }
        guard info.size == size else { return false }
        if readsBytes { return try await client.hasBytes(key, size: size, digest: digest.text) }
        // The checksum of an upload in parts is not that of the bytes.
        return size > options.settings.partBytes || info.mayHave(digest: digest.text)
    }

    /// Removes a local file if that is allowed and the object store, which is asked once more, has its bytes.
    ///
    /// - Returns: the size of the removed file; nil if the file stays
    func release(_ digest: ResourceDigest) async throws -> Int64? {
        try await exclusive.withPermit(for: 0) { try await self.releaseNow(digest) } ?? nil
    }

    /// Removes several local files, four at a time: most of the time is spent waiting for the object store.
    ///
    /// - Returns: the size of the removed files
    func release(_ digests: [ResourceDigest]) async throws -> Int64 {
        let bytes = try await exclusive.withPermit(for: 0) {
            try await withThrowingTaskGroup(of: Int64?.self) { group in
                var rest = digests[...]
                var total: Int64 = 0
                for digest in rest.prefix(Self.concurrentReleases) {
                    group.addTask { try await self.releaseNow(digest) }
                }
                rest = rest.dropFirst(Self.concurrentReleases)
                while let bytes = try await group.next() {
                    total += bytes ?? 0
                    guard let digest = rest.popFirst() else { continue }
                    group.addTask { try await self.releaseNow(digest) }
                }
                return total
            }
        }
        return bytes ?? 0
    }

    private static let concurrentReleases = 4

    private func releaseNow(_ digest: ResourceDigest) async throws -> Int64? {
        // Bytes in use stay, and all bytes during a backup: the object store need not be asked for them.
        guard !resources.areRemovalsSuspended, resources.removalTicket(digest) != nil,
            let file = resources.localFile(of: digest),
            try await store.read({ try $0.uploadStates.isReleasable(digest) })
        else { return nil }
        guard try await isStored(digest, size: file.size) == true else {
            // Only the catalog that writes can register the upload: the file of a standby stays.
            guard store.election?.refusal == nil else { return nil }
            logger.error(
                "the object store has lost or changed an object; it is uploaded again",
                metadata: ["digest": "\(digest)"]
            )
            try await store.changeUploadStates { try $0.registerLost(digest) }
            wake()
            return nil
        }
        let resources = resources
        // The rule is checked again: the file may be needed meanwhile.
        guard try await store.read({ try $0.uploadStates.isReleasable(digest) }) else { return nil }
        let isRemoved = try await blockingIO.run { try resources.remove(digest) }
        guard isRemoved else { return nil }
        throttle.noteRemoved(file.size)
        state.withLock { $0.releasedBytes += file.size }
        return file.size
    }

    // MARK: Events

    /// Begins the next round of the uploads.
    func wake() { wakeups.continuation.yield() }

    /// The events that begin a round; only one task may read them.
    var rounds: AsyncStream<Void> { wakeups.stream }

    // MARK: State

    var problem: Problem? { state.withLock { $0.problem } }

    /// The problem's message; nil if there is none.
    var problemMessage: String? { problem?.error.message }

    /// Records a failure of the object store as a whole, or with nil that it answers again.
    func note(_ error: ObjectStoreError?) {
        let (before, after) = state.withLock { state in
            let before = state.problem
            if error?.problem != before?.error.problem {
                state.problem = error.map { Problem(error: $0, since: now()) }
            }
            return (before, state.problem)
        }
        guard before != after else { return }
        if let after {
            logger.warning(
                "the object store cannot be used; trying again",
                metadata: ["problem": "\(after.error.problem.rawValue)", "message": "\(after.error.message)"]
            )
        } else {
            logger.notice("the object store can be used again")
        }
    }

    func noteUploaded(_ bytes: Int64, microseconds: Int64) {
        state.withLock { state in
            state.uploadedBytes += bytes
            state.uploadRate = microseconds > 0 ? bytes * 1_000_000 / microseconds : 0
        }
    }

    func noteDownloaded(_ bytes: Int64) { state.withLock { $0.downloadedBytes += bytes } }

    /// Sets the members of a status that are in memory.
    func describe(_ status: inout StorageStatus.Result) {
        let state = state.withLock { $0 }
        status.store = options.location.text
        status.policy = options.policy.rawValue
        status.budget = options.policy == .optimize ? options.localBytes : nil
        status.uploadRate = state.uploadRate
        status.uploadedBytes = state.uploadedBytes
        status.downloadedBytes = state.downloadedBytes
        status.releasedBytes = state.releasedBytes
        let skew = client.clockSkewSeconds
        if state.problem == nil, abs(skew) > Self.maxSkew {
            status.problem = ObjectStoreProblem.clockSkew.rawValue
            status.message =
                "the clock of this machine differs from that of the object store by \(skew) s; requests are signed by the "
                + "store's clock meanwhile; set this machine's clock"
            return
        }
        status.problem = state.problem?.error.problem.rawValue
        status.message = state.problem?.error.message
        status.since = state.problem?.since
    }
}

// MARK: - Settings

/// The settings of a library's object store.
struct RemoteStorageOptions: Sendable {
    /// The files that stay on this machine.
    enum Policy: String, CaseIterable, Sendable {
        /// All files; the object store has copies.
        case all
        /// As many files as fit into a number of bytes; the least recently used are removed.
        case optimize
    }

    var location: ObjectStoreLocation
    var credentials: ObjectStoreCredentials
    /// The file of the credentials; nil if they are those of the environment.
    var credentialsFile: String?
    var settings = ObjectStoreSettings()
    var policy = Policy.all
    /// The maximum size of the local files under ``Policy/optimize``, in bytes.
    var localBytes: Int64 = 10 << 30
    /// The number of files that are uploaded at the same time.
    var uploads = 3
}
