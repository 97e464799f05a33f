import Glibc

/// The files of a store.
extension ResourceStore {
    /// The parts of the store that ``digests(in:)`` lists one at a time: the first two digits of a digest.
    public static let parts: [String] = (0..<256).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }

    /// Returns true if a store at a path has any files. A folder that does not exist has none.
    public static func hasFiles(root: String) throws(StorageError) -> Bool {
        for part in parts {
            do throws(StorageError) {
                for second in try DirectoryOperations.names(in: "\(root)/\(part)") {
                    if try !DirectoryOperations.names(in: "\(root)/\(part)/\(second)").isEmpty { return true }
                }
            } catch .notFound {}
        }
        return false
    }

    /// Returns the time at which the last file was stored in a store at a path, in microseconds since 1970; nil if
    /// there is no store.
    ///
    /// Every stored file was renamed out of one folder, and each rename updates that folder's times. So no file was
    /// stored later, unless the clock has been set back since.
    public static func lastStored(root: String) throws(StorageError) -> Int64? {
        do throws(StorageError) {
            let status = try DirectoryOperations.status("\(root)/\(incomingName)")
            return max(microseconds(status.st_mtim), microseconds(status.st_ctim))
        } catch .notFound {
            return nil
        }
    }

    /// Returns true if the file of a digest, or its reference, was created after `time` and not after `end`, in
    /// microseconds since 1970.
    ///
    /// Its birth time is compared. Reading a file, or removing another link to it, changes `st_ctime`, which is
    /// compared only on filesystems without birth times.
    public func wasCreated(_ digest: ResourceDigest, after time: Int64, until end: Int64 = .max) -> Bool {
        [path(of: digest), referencePath(of: digest)].contains { path in
            guard let status = try? DirectoryOperations.status(path), let birth = try? FileBirth(path: path) else {
                return false
            }
            let created = birth.birth != 0 ? birth.birth / 1000 : microseconds(status.st_ctim)
            return created > time && created <= end
        }
    }

    /// A stored file, or a reference.
    public struct StoredFile: Sendable {
        /// The size on disk in bytes.
        public var size: Int64
        /// The time at which it was stored or last linked (`st_ctime`), in microseconds since 1970.
        public var changedAt: Int64
        /// True if it is removed only on request (``ResourceStore/keep(_:)``).
        public var isKept = false
    }

    /// Returns all digests in one part of the store, including referenced files.
    public func digests(in part: String) throws(StorageError) -> [ResourceDigest: StoredFile] {
        var found: [ResourceDigest: StoredFile] = [:]
        do throws(StorageError) {
            for second in try DirectoryOperations.names(in: "\(root)/\(part)") where second.count == 2 {
                let folder = "\(root)/\(part)/\(second)"
                let names = try DirectoryOperations.names(in: folder)
                for name in names {
                    let isReference = name.hasSuffix(Self.referenceFileExtension)
                    let text = isReference ? String(name.dropLast(Self.referenceFileExtension.count)) : name
                    guard let digest = ResourceDigest(text),
                        let status = try? DirectoryOperations.status("\(folder)/\(name)")
                    else {
                        continue
                    }
                    let time = Int64(status.st_ctim.tv_sec) * 1_000_000 + Int64(status.st_ctim.tv_nsec) / 1000
                    var file = found[digest] ?? StoredFile(size: 0, changedAt: 0)
                    file.size += Int64(status.st_size)
                    file.changedAt = max(file.changedAt, time)
                    found[digest] = file
                }
                for name in names where name.hasSuffix(Self.keepingFileExtension) {
                    let text = String(name.dropLast(Self.keepingFileExtension.count))
                    guard let digest = ResourceDigest(text) else { continue }
                    found[digest]?.isKept = true
                }
            }
        } catch .notFound {
            return found
        }
        return found
    }

    /// Calls `visit` for each stored file, folder by folder, in no particular order.
    ///
    /// - Parameter visit: receives each digest with its size and time of last storing (microseconds since 1970);
    ///   returns `false` to stop.
    /// - Throws: ``StorageError`` if a folder cannot be read.
    public func forEach(_ visit: (ResourceDigest, _ size: Int64, _ storedAt: Int64) -> Bool) throws(StorageError) {
        for first in try DirectoryOperations.names(in: root) where first.count == 2 {
            for second in try DirectoryOperations.names(in: "\(root)/\(first)") where second.count == 2 {
                for name in try DirectoryOperations.names(in: "\(root)/\(first)/\(second)") {
                    guard let digest = ResourceDigest(name),
                        let status = try? DirectoryOperations.status(path(of: digest))
                    else {
                        continue
                    }
                    if !visit(digest, Int64(status.st_size), microseconds(status.st_mtim)) { return }
                }
            }
        }
    }
}

// MARK: - Last uses

/// The files of a store and their last uses.
///
/// The last use is the file's access time. It is set when a file is opened, at most once a second, also on filesystems
/// that are mounted without access times.
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

    /// Records the use of a stored file that has just been opened.
    static func recordUse(of file: ResourceFile) {
        var status = stat()
        var now = timespec()
        guard fstat(file.descriptor, &status) == 0, clock_gettime(CLOCK_REALTIME, &now) == 0,
            now.tv_sec - status.st_atim.tv_sec >= useInterval || now.tv_sec < status.st_atim.tv_sec
        else { return }
        // The modification time is the stamp of publication and is not changed. This fails for another user's file.
        var times = [now, timespec(tv_sec: 0, tv_nsec: PublicationStamp.omit)]
        _ = futimens(file.descriptor, &times)
    }
}

func microseconds(_ time: timespec) -> Int64 {
    let (whole, overflow) = Int64(time.tv_sec).multipliedReportingOverflow(by: 1_000_000)
    return overflow ? Int64.max : whole &+ Int64(time.tv_nsec) / 1000
}
