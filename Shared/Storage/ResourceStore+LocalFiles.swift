import Glibc

/// The files of a store and their last uses.
///
/// The last use is the file's access time. It is set when a file is opened, at most once a second, also on filesystems that
/// are mounted without access times.
extension ResourceStore {
    /// A stored file.
    public struct LocalFile: Sendable {
        public let digest: ResourceDigest
        /// The size in bytes.
        public let size: Int64
        /// The time of its last use, in microseconds since 1970.
        public let lastUse: Int64
    }

    /// Calls `visit` for each stored file, folder by folder, in no particular order.
    public func forEachFile(_ visit: (LocalFile) -> Void) throws(StorageError) {
        for part in Self.parts {
            do throws(StorageError) {
                for second in try DirectoryOperations.names(in: "\(root)/\(part)") where second.count == 2 {
                    for name in try DirectoryOperations.names(in: "\(root)/\(part)/\(second)") {
                        guard let digest = ResourceDigest(name),
                            let status = try? DirectoryOperations.status(path(of: digest))
                        else { continue }
                        visit(
                            LocalFile(
                                digest: digest,
                                size: Int64(status.st_size),
                                lastUse: microseconds(status.st_atim)
                            )
                        )
                    }
                }
            } catch .notFound {
                continue
            }
        }
    }

    /// Returns the file of a digest; nil if it is not stored.
    public func localFile(of digest: ResourceDigest) -> LocalFile? {
        guard let status = try? DirectoryOperations.status(path(of: digest)) else { return nil }
        return LocalFile(digest: digest, size: Int64(status.st_size), lastUse: microseconds(status.st_atim))
    }

    /// Returns true if the bytes of a digest, or a reference to them, are on this machine.
    public func isLocal(_ digest: String) -> Bool {
        guard let digest = ResourceDigest(digest) else { return false }
        return contains(digest) || access(referencePath(of: digest), F_OK) == 0
    }

    /// The seconds between two updates of a file's last use.
    private static let useInterval = 1

    /// Records the use of a stored file that has just been opened, and returns it.
    static func used(_ file: ResourceFile) -> ResourceFile {
        var status = stat()
        var now = timespec()
        guard fstat(file.descriptor, &status) == 0, clock_gettime(CLOCK_REALTIME, &now) == 0,
            now.tv_sec - status.st_atim.tv_sec >= useInterval || now.tv_sec < status.st_atim.tv_sec
        else { return file }
        // The time of modification is the mark of publication and stays. Another user's file cannot be marked.
        var times = [now, timespec(tv_sec: 0, tv_nsec: PublicationStamp.omit)]
        _ = futimens(file.descriptor, &times)
        return file
    }
}

func microseconds(_ time: timespec) -> Int64 {
    let (whole, overflow) = Int64(time.tv_sec).multipliedReportingOverflow(by: 1_000_000)
    return overflow ? Int64.max : whole &+ Int64(time.tv_nsec) / 1000
}
