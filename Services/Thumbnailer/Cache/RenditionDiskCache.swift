import Basics
import Glibc
import JSONValue
import Logging
import PhotoModel
import Storage
import Synchronization

/// The disk cache: renditions as files, within a byte budget. The least recently used ones are evicted.
///
/// A file gets its name by a rename, so it is complete or missing. Damage after a power failure is found by the
/// checksum and counts as a miss. No file is synced on its own, because every rendition can be made again. ``sync()``
/// syncs all of them together, before anything that depends on them is recorded. The accounting is kept in memory and
/// rebuilt from the files at start, so it cannot drift from the disk.
final class RenditionDiskCache: Sendable {
    /// Syncs the filesystem of the cache's folder; blocks.
    typealias FilesystemSync = @Sendable () throws(StorageError) -> Void

    let root: String
    private let syncFilesystem: FilesystemSync?
    private let state: Mutex<State>

    private struct State {
        var accounting: LRUIndex<RenditionKey>
        var temporaries: UInt64 = 0
        /// The renditions inserted since the last sync, if there are syncs.
        var unsynced: Set<RenditionKey> = []
        /// False until the first sync: an earlier process may have been killed before it synced.
        var isSynced = false
        var failedSyncs = 0
        var damaged = 0
        var evicted = 0
    }

    /// Opens the cache and evicts renditions until it is within its budget.
    ///
    /// The caller holds the lock that keeps other processes out of the folder, so temporary files of an earlier run can
    /// be removed.
    ///
    /// - Parameters:
    ///   - root: the folder, created if missing
    ///   - budget: the maximum bytes of all files, counted in whole disk blocks
    ///   - syncFilesystem: used by ``sync()``; nil if nothing depends on the renditions after a power failure
    init(root: String, budget: Int64, syncFilesystem: FilesystemSync? = nil) throws(CacheError) {
        self.root = root
        self.syncFilesystem = syncFilesystem
        try Self.makeFolder(root)
        var found: [(key: RenditionKey, cost: Int64, used: Int64)] = []
        for folder in Self.folders(of: root) {
            for name in Self.names(in: folder.path) {
                let path = "\(folder.path)/\(name)"
                guard let key = RenditionKey(name), name.hasPrefix(folder.prefix), let status = Self.status(path) else {
                    // A temporary file left behind by a killed process, or a file that does not belong to the cache.
                    unlink(path)
                    continue
                }
                found.append((key, status.cost, status.used))
            }
        }
        found.sort { ($0.used, $0.key.text) < ($1.used, $1.key.text) }
        var accounting = LRUIndex<RenditionKey>(budget: budget)
        for entry in found {
            for evicted in accounting.insert(entry.key, cost: entry.cost) { unlink(Self.path(root, evicted)) }
        }
        self.state = Mutex(State(accounting: accounting))
    }

    /// Returns true if the rendition is cached and its file was not deleted, for example with its folder.
    func contains(_ key: RenditionKey) -> Bool {
        state.withLock { $0.accounting.contains(key) } && access(Self.path(root, key), F_OK) == 0
    }

    /// Returns the rendition if it is cached. A damaged file is removed and counts as a miss.
    func rendition(_ key: RenditionKey) -> EncodedRendition? {
        guard state.withLock({ $0.accounting.touch(key) }) else { return nil }
        let path = Self.path(root, key)
        if let file = Self.read(path), let rendition = RenditionFile.decode(file, key: key) { return rendition }
        state.withLock { state in
            // Another request may have written it again meanwhile; then the new file is checked at its next use.
            guard state.accounting.remove(key) != nil else { return }
            // A file that was deleted, for example with its folder, is not damaged.
            if unlink(path) == 0 { state.damaged += 1 }
        }
        return nil
    }

    /// Records that the rendition was served from memory, so that it is not the first to be evicted from disk.
    func touch(_ key: RenditionKey) {
        // The file's time is set too, so that the order of use is the same after a restart.
        if state.withLock({ $0.accounting.touch(key) }) { utimensat(AT_FDCWD, Self.path(root, key), nil, 0) }
    }

    /// Writes a rendition. If the disk is full or fails, the rendition is not cached.
    ///
    /// - Returns: the reason for the log if it could not be written; nil if it was written, or exceeds the whole budget
    func insert(_ rendition: EncodedRendition, _ key: RenditionKey) -> String? {
        let file = RenditionFile.encode(rendition, key: key)
        let cost = Self.sizeOnDisk(Int64(file.count))
        guard state.withLock({ $0.accounting.fits(cost) }) else { return nil }
        let path = Self.path(root, key)
        let (number, failedSyncs) = state.withLock { state in
            state.temporaries += 1
            return (state.temporaries, state.failedSyncs)
        }
        let temporary = "\(path).\(number).part"
        if let problem = Self.write(file, to: temporary, key: key, root: root) {
            unlink(temporary)
            return problem
        }
        return state.withLock { state in
            guard state.failedSyncs == failedSyncs else {
                unlink(temporary)
                return "sync \(root): the disk failed while \(temporary) was written"
            }
            guard rename(temporary, path) == 0 else {
                let problem = errno
                unlink(temporary)
                return "rename \(temporary): \(String(cString: strerror(problem)))"
            }
            if syncFilesystem != nil { state.unsynced.insert(key) }
            for evicted in state.accounting.insert(key, cost: cost) {
                unlink(Self.path(root, evicted))
                state.evicted += 1
            }
            return nil
        }
    }

    // MARK: Power failures

    /// The number of renditions that a power failure may destroy, because they were inserted after the last sync. All
    /// of those of an earlier process count as one.
    var unsyncedCount: Int {
        guard syncFilesystem != nil else { return 0 }
        return state.withLock { $0.unsynced.count + ($0.isSynced ? 0 : 1) }
    }

    /// Syncs the renditions that were inserted so far, so that they survive a power failure; blocks.
    ///
    /// - Returns: the reason if the disk failed. The renditions inserted since the last sync are removed then: the page
    ///   cache may still have bytes that never reached the disk, and the system reports such an error only once.
    func sync() -> String? {
        guard let syncFilesystem else { return nil }
        let keys = state.withLock { state in
            defer { state.unsynced = [] }
            return state.unsynced
        }
        do throws(StorageError) {
            try syncFilesystem()
            state.withLock { $0.isSynced = true }
            return nil
        } catch {
            state.withLock { state in
                state.failedSyncs += 1
                for key in keys.union(state.unsynced) where state.accounting.remove(key) != nil {
                    unlink(Self.path(root, key))
                }
                state.unsynced = []
            }
            return error.description
        }
    }

    /// Returns a function that syncs the filesystem of an existing folder.
    ///
    /// It keeps the folder open, because the system reports write errors that happen after a descriptor was opened.
    static func filesystemSync(of folder: String) throws(StorageError) -> FilesystemSync {
        // Used only to sync the filesystem: no resources are read from it.
        let store = try ResourceStore(root: folder, isReadOnly: true)
        return { () throws(StorageError) in try store.makeAllDurable() }
    }

    // MARK: Numbers

    /// The cache's content and the counts of damaged and evicted files.
    var metrics: (count: Int, bytes: Int64, damaged: Int, evicted: Int) {
        state.withLock { ($0.accounting.count, $0.accounting.total, $0.damaged, $0.evicted) }
    }

    // MARK: Names

    /// Returns the folders that hold files, each with the prefix of the names in it.
    static func folders(of root: String) -> [(path: String, prefix: String)] {
        let digits = Array("0123456789abcdef")
        return digits.flatMap { first in
            digits.map { second in ("\(root)/\(first)/\(second)", "\(first)\(second)") }
        }
    }

    /// Returns a file's path. Two levels of sixteen folders keep the number of names in a folder below a
    /// few thousand.
    static func path(_ root: String, _ key: RenditionKey) -> String {
        let digits = Array(key.text.prefix(2))
        return "\(root)/\(digits[0])/\(digits[1])/\(key.text)"
    }

    /// Returns the size of a file on disk in bytes, rounded up to whole blocks.
    static func sizeOnDisk(_ bytes: Int64) -> Int64 { (bytes + 4095) / 4096 * 4096 }
}

/// The reason why the cache's folder cannot be used.
struct CacheError: Error, Sendable, CustomStringConvertible {
    let description: String
}

// MARK: - System calls

extension RenditionDiskCache {
    private static let maxFileBytes: Int64 = 256 << 20

    private static func makeFolder(_ path: String) throws(CacheError) {
        if mkdir(path, 0o750) == 0 || errno == EEXIST { return }
        throw CacheError(description: "the cache folder \(path) cannot be created: \(String(cString: strerror(errno)))")
    }

    private static func makeMissingFolders(_ path: String) {
        let isMissing = mkdir(path, 0o750) != 0 && errno == ENOENT
        guard isMissing, let slash = path.lastIndex(of: "/"), slash > path.startIndex else { return }
        makeMissingFolders(String(path[..<slash]))
        mkdir(path, 0o750)
    }

    static func names(in folder: String) -> [String] {
        guard let stream = opendir(folder) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }

    /// Returns the bytes of the file's blocks and the time of its last use in microseconds; nil if it is not a regular
    /// file.
    private static func status(_ path: String) -> (cost: Int64, used: Int64)? {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        let used = Int64(status.st_mtim.tv_sec).multipliedReportingOverflow(by: 1_000_000).partialValue
        return (sizeOnDisk(Int64(status.st_size)), used &+ Int64(status.st_mtim.tv_nsec / 1000))
    }

    /// Reads the whole file. With `recordsUse` its time is set to now, so that the order of use survives a restart.
    static func read(_ path: String, recordsUse: Bool = true) -> Bytes? {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, Int64(status.st_size) <= maxFileBytes else { return nil }
        if recordsUse { futimens(file, nil) }
        return Bytes(unsafeUninitializedCapacity: Int(status.st_size)) { buffer, used in
            while used < buffer.count {
                let count = Glibc.read(file, buffer.baseAddress?.advanced(by: used), buffer.count - used)
                if count > 0 { used += count } else if count == 0 || errno != EINTR { break }
            }
        }
    }

    /// Writes a new file and creates its folders, which are missing at first and after the cache was deleted.
    ///
    /// - Returns: the reason if it could not be written
    private static func write(_ bytes: Bytes, to path: String, key: RenditionKey, root: String) -> String? {
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC
        var file = open(path, flags, 0o640)
        if file < 0, errno == ENOENT {
            makeMissingFolders(root)
            let digits = Array(key.text.prefix(2))
            mkdir("\(root)/\(digits[0])", 0o750)
            mkdir("\(root)/\(digits[0])/\(digits[1])", 0o750)
            file = open(path, flags, 0o640)
        }
        guard file >= 0 else { return "open \(path): \(String(cString: strerror(errno)))" }
        var done = 0
        while done < bytes.count {
            let count = bytes[done...].withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
            if count > 0 {
                done += count
            } else if errno != EINTR {
                let problem = errno
                close(file)
                return "write \(path): \(String(cString: strerror(problem)))"
            }
        }
        // NFS reports only here that the disk or the quota is full. The file is closed also after EINTR.
        guard close(file) == 0 || errno == EINTR else { return "close \(path): \(String(cString: strerror(errno)))" }
        return nil
    }
}

// MARK: - The format of a file

/// The file format of the disk cache: magic, header, image, checksum.
///
/// The header contains the key and the checksum covers the whole file, so that a partial, damaged or
/// misplaced file is detected and never served.
///
///     8 bytes   "SLRENDR1"
///     4 bytes   length of the header, little-endian
///     …         the header: JSON with the key, the text that it is the hash of (`made`), and the image's properties
///     …         the image
///     32 bytes  SHA-256 of everything before
enum RenditionFile {
    static let magic = Array("SLRENDR1".utf8)
    private static let checksumLength = 32
    private static let maxHeaderBytes = 4096

    static func encode(_ rendition: EncodedRendition, key: RenditionKey) -> Bytes {
        var header: JSONObject = ["key": .string(key.text)]
        if let canonical = key.canonical { header["made"] = .string(canonical) }
        for member in EncodedRendition.table.encode(rendition).members { header[member.name] = member.value }
        let headerBytes = JSON.object(header).bytes
        var file = Bytes()
        file.reserveCapacity(magic.count + 4 + headerBytes.count + rendition.bytes.count + checksumLength)
        file += magic
        let length = UInt32(truncatingIfNeeded: headerBytes.count)
        for shift in stride(from: 0, to: 32, by: 8) { file.append(UInt8(truncatingIfNeeded: length >> shift)) }
        file += headerBytes
        file += rendition.bytes
        file += SHA256.hash(data: file)
        return file
    }

    /// Returns the text that the key is the hash of, from the header of an undamaged file; nil if the header lacks it.
    static func canonical(_ file: Bytes) -> String? {
        let start = magic.count + 4
        guard file.count >= start, file.starts(with: magic) else { return nil }
        let length = (0..<4).reduce(0) { $0 | Int(file[magic.count + $1]) << ($1 * 8) }
        guard length <= maxHeaderBytes, start + length <= file.count else { return nil }
        return (try? JSON(parsing: file[start..<start + length]))?["made"]?.stringValue
    }

    /// Decodes a rendition. Returns nil if the file is damaged, incomplete or of another key.
    static func decode(_ file: Bytes, key: RenditionKey) -> EncodedRendition? {
        let start = magic.count + 4
        guard file.count >= start + checksumLength, file.starts(with: magic) else { return nil }
        let length = (0..<4).reduce(0) { $0 | Int(file[magic.count + $1]) << ($1 * 8) }
        let end = file.count - checksumLength
        guard length <= maxHeaderBytes, start + length <= end else { return nil }
        guard SHA256.hash(data: file[..<end]).elementsEqual(file[end...]) else { return nil }
        guard let header = try? JSON(parsing: file[start..<start + length]),
            header["key"]?.stringValue == key.text,
            var rendition = try? EncodedRendition(json: header)
        else { return nil }
        rendition.bytes = Array(file[(start + length)..<end])
        return rendition
    }
}

/// Writes renditions to the disk cache, and logs at most once a second that it cannot.
final class RenditionWriter: Sendable {
    private let disk: RenditionDiskCache
    private let clock: MonotonicClock
    private let logger: Logger
    private let state = Mutex(State())

    private struct State {
        var log = LogThrottle()
        var failures = 0
        /// The reason why the last rendition could not be written; nil if it was written.
        var problem: String?
    }

    init(_ disk: RenditionDiskCache, clock: MonotonicClock, logger: Logger) {
        self.disk = disk
        self.clock = clock
        self.logger = logger
    }

    /// Writes a rendition.
    ///
    /// - Returns: the reason if it could not be written; nil if it was written, or exceeds the whole budget
    @discardableResult
    func write(_ rendition: EncodedRendition, _ key: RenditionKey) -> String? {
        let problem = disk.insert(rendition, key)
        let now = clock.nowMicroseconds()
        let count = state.withLock { state -> Int? in
            state.problem = problem
            guard problem != nil else { return nil }
            state.failures += 1
            return state.log.count(at: now)
        }
        if let count, let problem {
            logger.warning(
                "renditions were not written to the disk cache",
                metadata: ["error": "\(problem)", "count": "\(count)"]
            )
        }
        return problem
    }

    /// The number of renditions that could not be written since the start, and the reason if the last one is among
    /// them.
    var failures: (count: Int, problem: String?) { state.withLock { ($0.failures, $0.problem) } }
}
