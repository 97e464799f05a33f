import Storage
import Synchronization

/// The bytes that were stored for one request. They are not collected as long as this object is alive.
final class TakenResources: Sendable {
    private let stored = Mutex<[StoredResource]>([])
    private let unsynced = Mutex<[StagedResource]>([])
    private let uploadNames = Mutex<[String]>([])

    /// - Parameter upload: the upload that delivered the bytes
    func add(_ resource: StagedResource, upload: String? = nil) {
        stored.withLock { $0.append(resource.stored) }
        unsynced.withLock { $0.append(resource) }
        if let upload { uploadNames.withLock { $0.append(upload) } }
    }

    /// Returns the resources that were added since the last call; they may not be durable yet.
    func staged() -> [StagedResource] {
        unsynced.withLock { unsynced in
            defer { unsynced = [] }
            return unsynced
        }
    }

    /// True if nothing was stored.
    var isEmpty: Bool { stored.withLock { $0.isEmpty } && uploadNames.withLock { $0.isEmpty } }

    /// The uploads that delivered some of the bytes.
    var uploads: [String] { uploadNames.withLock { $0 } }

    /// The digests whose damaged stored file was replaced.
    var healed: [ResourceDigest] {
        stored.withLock { stored in Set(stored.filter(\.isHealed).map(\.digest)).sorted() }
    }

    /// Releases the resources and returns their digests; those that nothing else refers to may then be removed.
    func release() -> [ResourceDigest] {
        stored.withLock { stored in
            defer { stored = [] }
            return stored.map {
                $0.lease.end()
                return $0.digest
            }
        }
    }
}
