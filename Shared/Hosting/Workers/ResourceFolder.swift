import Contracts
import Glibc
public import JSONValue
public import Storage
import Synchronization

/// Read access to a library's files: to the catalog's resource store, which is opened on first use because the catalog
/// may start later, or to the copies of a service on another machine.
public final class ResourceFolder: Sendable {
    /// Path of the resource store.
    public let path: String
    /// The copies, if the catalog is on another machine.
    public let spool: ResourceSpool?
    private let store = Mutex<ResourceStore?>(nil)

    /// - Parameter library: the library's folder
    public init(library: String) {
        path = library + "/resources"
        spool = nil
    }

    /// Opens the library's folder, or the copies of a service on another machine.
    ///
    /// - Parameter spool: the folder of the copies and their maximum size; nil to read the library's folder
    /// - Throws: ``StorageError`` if the folder of the copies cannot be used
    public convenience init(
        library: String,
        spool: (folder: String, maxBytes: Int64)?,
        blockingIO: BlockingIOExecutor
    ) throws(StorageError) {
        if let spool {
            self.init(
                spool: try ResourceSpool(folder: spool.folder, maxBytes: spool.maxBytes, blockingIO: blockingIO)
            )
        } else {
            self.init(library: library)
        }
    }

    /// - Parameter spool: the folder into which requested files are copied
    public init(spool: ResourceSpool) {
        path = spool.store.root
        self.spool = spool
        store.withLock { $0 = spool.store }
    }

    /// Returns true if the bytes of a digest can be opened.
    public func isLocal(_ digest: String) -> Bool { (try? open(digest)) != nil }

    /// Makes sure that bytes can be opened: downloads them from remote storage, and copies them if the catalog is on
    /// another machine. For local bytes it only records their use.
    ///
    /// - Parameters:
    ///   - download: makes the catalog download them to its machine; called if they are not on this one
    ///   - read: reads them from the catalog, if it is on another machine
    /// - Throws: the errors of both. Bytes that exist nowhere cause no error here, but when they are opened.
    public func require(
        _ digest: String,
        download: () async throws(RPCError) -> Void,
        read: @escaping ResourceSpool.Source
    ) async throws(RPCError) {
        guard !isLocal(digest) else {
            spool?.keep(digest)
            return
        }
        do throws(RPCError) {
            try await download()
        } catch  where error.errorCode == .missingResource || error.errorCode == .methodNotFound {
            return
        }
        try await spool?.require(digest, from: read)
    }

    /// Removes the copy of a file if its bytes are damaged: the next request then reads it from the catalog again.
    /// Files of the library stay.
    public func removeIfDamaged(_ digest: String) async { await spool?.removeIfDamaged(digest) }

    /// Opens the file with the bytes of a digest.
    ///
    /// - Throws: `library_offline` or `library_relinquished` if the folder cannot be accessed, `missing_resource` if it
    ///   does not have the bytes, `resource_changed` if a referenced file has changed
    public func open(_ digest: String) throws(RPCError) -> ResourceFile {
        guard let name = ResourceDigest(digest) else {
            throw ErrorCode.internalError.error("the catalog named a resource by an invalid digest")
        }
        let store = try openStore()
        do throws(StorageError) { return try open(name, in: store) } catch {
            if case .resourceChanged(let message) = error {
                throw ErrorCode.resourceChanged.error(message, ["digest": .string(digest)])
            }
            // A folder of copies that was deleted is created again.
            if spool == nil, let absence = Self.absence(error) { throw absence }
            // The message names the path of a missing referenced file.
            if case .notFound(let message) = error, spool == nil, (try? store.reference(of: name)) != nil {
                throw ErrorCode.missingResource.error(message, ["digest": .string(digest)])
            }
            throw ErrorCode.missingResource.error(
                "the bytes \(digest) are not in the library's folder, or cannot be read (\(error.name))",
                ["digest": .string(digest)]
            )
        }
    }

    /// Opens a file. If the folder at the path was replaced, as after a restore, opens it in the new folder.
    private func open(_ name: ResourceDigest, in store: ResourceStore) throws(StorageError) -> ResourceFile {
        do throws(StorageError) {
            return try store.open(name)
        } catch {
            guard spool == nil, Self.absence(error) != nil, let other = reopenStore() else { throw error }
            return try other.open(name)
        }
    }

    /// Opens the folder that is at the path now: another library, or the same one on a disk that was mounted again.
    /// Returns nil if there is none, or if it is an empty mount point.
    private func reopenStore() -> ResourceStore? {
        guard let other = try? ResourceStore(root: path, isReadOnly: true),
            other.foldersToWrite.allSatisfy({ access($0, F_OK) == 0 })
        else { return nil }
        store.withLock { $0 = other }
        return other
    }

    /// Checks that the library's folder can be accessed, if there is one on this machine.
    ///
    /// - Throws: `library_offline`, `library_relinquished`
    public func check() throws(RPCError) {
        guard spool == nil else { return }
        if let absence = try openStore().absence().flatMap(Self.absence), reopenStore() == nil { throw absence }
    }

    private static func absence(_ error: StorageError) -> RPCError? {
        switch error {
        case .offline: ErrorCode.libraryOffline.error("the disk of the library is not there; mount it again")
        case .relinquished:
            ErrorCode.libraryRelinquished.error("the library's folder was moved or deleted; put it back")
        default: nil
        }
    }

    private func openStore() throws(RPCError) -> ResourceStore {
        do throws(StorageError) {
            return try store.withLock { (store) throws(StorageError) in
                if let store { return store }
                let opened = try ResourceStore(root: path, isReadOnly: true)
                store = opened
                return opened
            }
        } catch {
            throw ErrorCode.libraryOffline.error(
                "the library's resources cannot be accessed (\(error.name)); check that this service has the catalog's"
                    + " --library, and that the catalog was started once"
            )
        }
    }
}
