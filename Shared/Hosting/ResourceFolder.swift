import Contracts
import JSONValue
public import Messaging
public import Storage
import Synchronization

/// The catalog's resource store, for reading; opened when it is first needed, because the catalog may start later.
public final class ResourceFolder: Sendable {
    public let path: String
    private let store = Mutex<ResourceStore?>(nil)

    /// - Parameter library: the library's folder
    public init(library: String) {
        path = library + "/resources"
    }

    /// Opens the bytes of a digest.
    ///
    /// - Throws: `library_offline` where the folder cannot be reached, `missing_resource` where it lacks the bytes,
    ///   `resource_changed` for a referenced file that is not what it was
    public func open(_ digest: String) throws(RPCError) -> ResourceFile {
        guard let name = ResourceDigest(digest) else {
            throw Refusal.internalError.error("the catalog named a resource by what is no digest")
        }
        let store = try opened()
        do throws(StorageError) { return try store.open(name) } catch {
            if case .resourceChanged(let message) = error {
                throw Refusal.resourceChanged.error(message, ["digest": .string(digest)])
            }
            throw Refusal.missingResource.error(
                "the bytes \(digest) are not in the library's folder, or cannot be read (\(error.name))",
                ["digest": .string(digest)]
            )
        }
    }

    /// Whether the folder can be reached; why not.
    public func check() throws(RPCError) { _ = try opened() }

    private func opened() throws(RPCError) -> ResourceStore {
        do throws(StorageError) {
            return try store.withLock { (store) throws(StorageError) in
                if let store { return store }
                let opened = try ResourceStore(root: path, isReadOnly: true)
                store = opened
                return opened
            }
        } catch {
            throw Refusal.libraryOffline.error(
                "the library's resources cannot be reached (\(error.name)); see that this service's --library is the"
                    + " catalog's, and that the catalog was started once"
            )
        }
    }
}
