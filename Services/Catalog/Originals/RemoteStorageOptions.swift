import Hosting
import ObjectStorage

/// The settings of a library's object store.
struct RemoteStorageOptions: Sendable {
    /// The files that stay on this machine.
    enum Policy: String, CaseIterable, Sendable {
        /// Every file, besides the copy at the store.
        case all
        /// As many as fit into a number of bytes; the least recently used are removed.
        case optimize
    }

    var location: ObjectStoreLocation
    var credentials: ObjectStoreCredentials
    /// The file of the credentials; nil if they are those of the environment.
    var credentialsFile: String?
    var settings = ObjectStoreSettings()
    var policy = Policy.all
    /// The bytes that local files may have under ``Policy/optimize``.
    var localBytes: Int64 = 10 << 30
    /// The number of files that are uploaded at the same time.
    var uploads = 3
}
