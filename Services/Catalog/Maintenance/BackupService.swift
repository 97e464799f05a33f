import Contracts
import Glibc
import Hosting
import JSONValue
import Logging
import Messaging
import PhotoModel
import Storage
import Synchronization

/// Implements `library.backup`: copies the library while it is in use.
///
/// The steps, in this order: the removal of stored files stops; the database is copied at one sequence and checked as a
/// whole; every resource that the copy refers to is copied; the manifest is written, which makes the backup valid;
/// finally the files that only the earlier backup needed are removed. If a step fails, the copy of the database is
/// removed again.
///
/// No step fails because of a file that is damaged or missing in the library: the other files are backed up, and the
/// file is reported. An intact copy in the earlier backup may be the only one; it is kept.
final class BackupService: Sendable {
    let store: LibraryStore
    let resources: ResourceStore
    let blockingIO: BlockingIOExecutor
    /// Microseconds since 1970.
    let now: @Sendable () -> Int64
    let logger: Logger
    private let isBusy = Atomic<Bool>(false)

    /// The maximum number of resources that are copied between two checks for cancellation.
    private static let batch = 64
    /// The maximum size of these resources in bytes, except that the first is always included.
    private static let batchBytes: Int64 = 64 << 20

    init(
        store: LibraryStore,
        resources: ResourceStore,
        blockingIO: BlockingIOExecutor,
        now: @escaping @Sendable () -> Int64,
        logger: Logger
    ) {
        self.store = store
        self.resources = resources
        self.blockingIO = blockingIO
        self.now = now
        self.logger = logger
    }

    func backup(
        _ request: BackupLibrary,
        _ context: RequestContext
    ) async throws -> BackupLibrary.Result {
        let target = try target(request, context.identity)
        guard isBusy.compareExchange(expected: false, desired: true, ordering: .relaxed).exchanged else {
            throw MaintenanceError.backupRunning
        }
        defer { isBusy.store(false, ordering: .relaxed) }
        resources.suspendRemovals()
        defer { resources.resumeRemovals() }
        do {
            return try await run(target, request, context.notifier)
        } catch let error as StorageError {
            logger.error("a backup failed", metadata: ["target": "\(target.path)", "error": "\(error)"])
            throw MaintenanceError.backupFailed(error, target: target.path)
        }
    }

    /// Returns the target folder. Only the user who owns the service may choose where it writes.
    private func target(_ request: BackupLibrary, _ identity: String) throws -> BackupFolder {
        try ServiceIdentities.checkOwner(identity, to: "make a backup")
        let path = request.target
        guard path.hasPrefix("/"), !path.utf8.contains(0), !path.split(separator: "/").contains("..") else {
            throw MaintenanceError.targetNotAbsolute
        }
        let library = store.folder.split(separator: "/")
        guard !path.split(separator: "/").starts(with: library) else {
            throw MaintenanceError.targetInLibrary
        }
        if mkdir(path, 0o700) != 0, errno != EEXIST {
            let reason = String(cString: strerror(errno))
            throw MaintenanceError.targetNotCreated(path, reason: reason)
        }
        let folder = BackupFolder(path: path)
        guard folder.isUsable() else {
            throw MaintenanceError.targetNotEmpty(path)
        }
        return folder
    }

    private func run(
        _ target: BackupFolder,
        _ request: BackupLibrary,
        _ notifier: Notifier
    ) async throws -> BackupLibrary.Result {
        let lock = try LockFile(
            path: target.path + "/" + BackupFolder.marker,
            program: "backup",
            using: target.path,
            advice: "wait until it is done"
        )
        defer { withExtendedLifetime(lock) {} }
        let head = try await store.read { try $0.head() }
        let targetStore = try await blockingIO.run(.upkeep) {
            try target.requireEarlierBackup(of: head)
            let targetStore = try ResourceStore(root: target.resourcesPath)
            try targetStore.clearIncoming()
            try target.removeOtherDatabases()
            return targetStore
        }
        do {
            return try await copy(to: target, targetStore, request.verifies, notifier)
        } catch {
            try? await blockingIO.run(.upkeep) { try target.removeOtherDatabases() }
            throw error
        }
    }

    private func copy(
        to target: BackupFolder,
        _ targetStore: ResourceStore,
        _ verifies: Bool,
        _ notifier: Notifier
    ) async throws -> BackupLibrary.Result {
        let database = target.databasePath(BackupFolder.partialDatabase)
        try await blockingIO.run(.upkeep) { [store] in try store.copy(to: database) }
        let copy = try BackupStore(path: database)
        defer { try? copy.close() }
        let head = try copy.head()
        var result = BackupLibrary.Result(token: head.token)
        try await copyResources(copy, into: targetStore, verifies, &result, notifier)

        let date = now()
        let name = BackupFolder.databaseName(head.sequence, date: date)
        let final = target.databasePath(name)
        let (resources, bytes, referenced) = (result.resources, result.bytes, result.referenced)
        let token = result.token
        try await blockingIO.run(.upkeep) {
            try targetStore.makeAllDurable()
            let digest = try DurableFile.open(database).hash().text
            try DurableFile.commit(database, as: final)
            let manifest = BackupFolder.Manifest(
                token: token,
                date: date,
                database: name,
                databaseDigest: digest,
                resources: resources,
                bytes: bytes,
                referenced: referenced
            )
            try target.write(manifest)
            try target.removeOtherDatabases()
        }
        result.removed = try await blockingIO.run(.upkeep) { try Self.removeOthers(than: copy, from: targetStore) }
        if result.damaged > 0 {
            logger.error(
                "files of the library are damaged or missing; the backup has all others",
                metadata: [
                    "target": "\(target.path)", "files": "\(result.damaged)",
                    "first": "\(result.damagedFiles.prefix(5).map(\.digest).joined(separator: ", "))",
                ]
            )
        }
        return result
    }

    private func copyResources(
        _ copy: BackupStore,
        into target: ResourceStore,
        _ verifies: Bool,
        _ result: inout BackupLibrary.Result,
        _ notifier: Notifier
    ) async throws {
        let total = try await blockingIO.run(.upkeep) { try copy.resourceCount() }
        var last: ResourceDigest?
        while true {
            let page = try await blockingIO.run(.upkeep) { [last] in
                try copy.resources(after: last, limit: Self.batch)
            }
            guard let end = page.last else { break }
            last = end.digest
            var rest = page[...]
            while let first = rest.first {
                try Task.checkCancellation()
                // A large file is a batch of its own, because it may have to be read as a whole.
                var size = first.size
                let batch =
                    [first]
                    + rest.dropFirst().prefix { resource in
                        size += resource.size
                        return size <= Self.batchBytes
                    }
                rest = rest.dropFirst(batch.count)
                let resources = resources
                let outcomes = try await blockingIO.run(.upkeep) {
                    try batch.map { try Self.adopt($0.digest, copy, from: resources, into: target, verifies) }
                }
                for (resource, outcome) in zip(batch, outcomes) { result.count(outcome, size: resource.size) }
                let progress: JSONObject = ["done": JSON(result.resources), "total": JSON(total)]
                try await notifier.notify(BackupLibrary.notification, progress)
            }
        }
    }

    /// The outcome for the bytes of a digest.
    fileprivate enum Outcome: Sendable {
        case adopted(ResourceStore.AdoptionResult)
        /// The bytes are only in remote storage, and no earlier backup has them: the copy of the database names them.
        case remote
        case damaged(BackupLibrary.DamagedFile)
    }

    /// Adds the bytes of a digest to the backup, if it does not have them.
    private static func adopt(
        _ digest: ResourceDigest,
        _ copy: BackupStore,
        from resources: ResourceStore,
        into target: ResourceStore,
        _ verifies: Bool
    ) throws -> Outcome {
        do throws(StorageError) {
            return .adopted(try target.adopt(digest, from: resources, verifies: verifies))
        } catch {
            if case .notFound = error, try copy.isRemote(digest) {
                return target.contains(digest) ? .adopted(.present) : .remote
            }
            // An error of the target ends the backup.
            guard try resources.damage(of: digest) != nil else { throw error }
            let isInBackup = target.isIntact(digest)
            if !isInBackup, try copy.isRemote(digest) { return .remote }
            let (asset, filename) = try copy.owner(of: digest)
            return .damaged(
                BackupLibrary.DamagedFile(
                    digest: digest.text,
                    asset: asset,
                    filename: filename,
                    isInBackup: isInBackup
                )
            )
        }
    }

    /// Removes the files of the earlier backup that this one does not refer to, and returns their number.
    private static func removeOthers(than copy: BackupStore, from target: ResourceStore) throws -> Int {
        var others: [ResourceDigest] = []
        var failure: (any Error)?
        func collect(_ digest: ResourceDigest) -> Bool {
            do {
                if try !copy.isReferenced(digest) { others.append(digest) }
                return true
            } catch {
                failure = error
                return false
            }
        }
        try target.forEach { digest, _, _ in collect(digest) }
        try target.forEachReference { digest, _ in collect(digest) }
        if let failure { throw failure }
        for digest in others {
            try target.remove(digest)
            try target.removeReference(of: digest)
        }
        return others.count
    }
}

extension BackupLibrary.Result {
    fileprivate mutating func count(_ outcome: BackupService.Outcome, size: Int64) {
        resources += 1
        switch outcome {
        case .adopted(let adoption):
            bytes += size
            switch adoption {
            case .present: present += 1
            case .linked: linked += 1
            case .copied: copied += 1
            case .referenced: referenced += 1
            }
        case .remote: remote += 1
        case .damaged(let file):
            damaged += 1
            if damagedFiles.count < Self.maxDamagedFiles { damagedFiles.append(file) }
            guard file.isInBackup else { return }
            bytes += size
            present += 1
        }
    }
}
