import Contracts
import Glibc
import Hosting
import PhotoModel
import Storage

/// A restore of a library from a backup, into a new folder.
///
/// The database gets its final name last: an interrupted restore leaves a folder that no catalog opens as a library. A
/// file marks such a folder, so that the restore can be repeated into it.
struct LibraryRestore: Sendable {
    /// The number of sequences that are skipped after that of the backup, so that no sequence of the lost library is
    /// used again.
    static let gap: Int64 = 1_000_000

    struct Result: Sendable {
        var token: ChangeToken
        var resources = 0
        var referenced = 0
        /// The number of resources that are only in remote storage.
        var remote = 0
        /// The number of resources that are damaged or missing in the backup, and so in the restored library.
        var damaged = 0
        /// The first of the damaged or missing resources.
        var damagedFiles: [BackupLibrary.DamagedFile] = []
    }

    let backup: BackupFolder
    let library: String
    /// The identifier of the new history: 32 hexadecimal digits, never used before.
    let newHistoryID: String

    /// Copies and verifies the database and the resources; blocks the thread.
    ///
    /// Files that are damaged or missing in the backup are left out and reported; their assets stay.
    ///
    /// - Parameter progress: called with the number of resources done and their total
    func run(progress: (Int, Int) -> Void) throws -> Result {
        let manifest = try backup.manifest()
        let saved = backup.databasePath(manifest.database)
        guard try DurableFile.open(saved).hash().text == manifest.databaseDigest else {
            throw StorageError.corrupt("\(saved) does not match the digest in the manifest; use another backup")
        }
        try LibraryFolder.make(library)
        try requireUsable()
        let lock = try LibraryFolder.lock(library, advice: "choose another --library")
        defer { withExtendedLifetime(lock) {} }
        // Another restore may have ended before the lock was taken.
        try requireUsable()
        try markFolder()
        // After an error the partial database is not used again, and it may have filled the disk.
        defer { for ending in [""] + Self.databaseEndings { unlink(partial + ending) } }
        let source = try ResourceStore(root: backup.resourcesPath, isReadOnly: true)
        let target = try ResourceStore(root: library + "/resources")
        try target.clearIncoming()
        var result = Result(token: manifest.token)
        let copy = try BackupStore(path: saved)
        var last: ResourceDigest?
        while case let page = try copy.resources(after: last, limit: 256), let end = page.last {
            for resource in page {
                try Self.restore(resource.digest, copy, from: source, into: target, &result)
            }
            last = end.digest
            progress(result.resources, manifest.resources)
        }
        try copy.close()
        try target.makeAllDurable()

        try Self.copy(saved, to: partial)
        try DatabaseCheck.full(path: partial)
        let head = try BackupStore.startNewHistory(path: partial, history: newHistoryID, gap: Self.gap)
        for ending in Self.databaseEndings { unlink(partial + ending) }
        try DurableFile.commit(partial, as: library + "/library.sqlite")
        let headFile = try HeadFile(path: library + "/head", database: library + "/library.sqlite")
        _ = try headFile.renew(library: head.library, sequence: head.sequence)
        result.token = head.token
        unlink(marker)
        return result
    }

    private static func restore(
        _ digest: ResourceDigest,
        _ copy: BackupStore,
        from source: ResourceStore,
        into target: ResourceStore,
        _ result: inout Result
    ) throws {
        result.resources += 1
        do throws(StorageError) {
            if try target.adopt(digest, from: source) == .referenced { result.referenced += 1 }
        } catch {
            // An error of the target ends the restore.
            guard try source.damage(of: digest) != nil else { throw error }
            // An earlier restore into this folder may have read the bytes before the disk of the backup failed.
            if target.isIntact(digest) { return }
            guard try !copy.isRemote(digest) else {
                result.remote += 1
                return
            }
            result.damaged += 1
            guard result.damagedFiles.count < BackupLibrary.Result.maxDamagedFiles else { return }
            let (asset, filename) = try copy.owner(of: digest)
            result.damagedFiles.append(
                .init(digest: digest.text, asset: asset, filename: filename, isInBackup: false)
            )
        }
    }

    /// The file that marks the folder until the restore is complete.
    private var marker: String { library + "/restoring" }
    /// The database until the restore is complete.
    private var partial: String { library + "/restoring.sqlite" }
    private static let databaseEndings = ["-wal", "-shm", "-journal"]

    /// Checks that the folder is empty or has an unfinished restore.
    private func requireUsable() throws {
        let names = Set(try BackupFolder.names(library)).subtracting(["lock"])
        let isUnfinished = names.contains("restoring") && names.isDisjoint(with: ["library.sqlite", "head"])
        guard names.isEmpty || isUnfinished else {
            throw StorageError.invalid("\(library) is not empty; choose a new folder for the restored library")
        }
    }

    /// Marks the folder, and removes the database of an unfinished restore. The files that it stored are used again if
    /// they match their digests.
    private func markFolder() throws {
        let file = open(marker, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else {
            throw StorageError.io("\(marker) cannot be created: \(String(cString: strerror(errno)))")
        }
        close(file)
        for ending in [""] + Self.databaseEndings { unlink(partial + ending) }
    }

    private static func copy(_ path: String, to target: String) throws {
        let file = try DurableFile.open(path)
        let output = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard output >= 0 else { throw StorageError.io("\(target) cannot be created") }
        defer { close(output) }
        var offset: Int64 = 0
        while offset < file.size {
            let bytes = try file.read(offset: offset, count: 1 << 20)
            guard !bytes.isEmpty, write(output, bytes, bytes.count) == bytes.count else {
                throw StorageError.notEnoughSpace("\(target) cannot be written: \(String(cString: strerror(errno)))")
            }
            offset += Int64(bytes.count)
        }
    }
}
