import Storage
import Synchronization

/// The bytes that were stored for one request; they are not collected while this lives.
final class TakenResources: Sendable {
    private let stored = Mutex<[StoredResource]>([])
    private let uploadNames = Mutex<[String]>([])

    /// - Parameter upload: the upload that the bytes came in
    func add(_ resource: StoredResource, upload: String? = nil) {
        stored.withLock { $0.append(resource) }
        if let upload { uploadNames.withLock { $0.append(upload) } }
    }

    /// The uploads among them.
    var uploads: [String] { uploadNames.withLock { $0 } }

    /// Those that replaced a damaged file.
    var healed: [ResourceDigest] {
        stored.withLock { stored in Set(stored.filter(\.isHealed).map(\.digest)).sorted() }
    }

    /// Gives them up; what nothing else refers to may be removed then.
    func release() -> [ResourceDigest] {
        stored.withLock { stored in
            defer { stored = [] }
            return stored.map(\.digest)
        }
    }
}
