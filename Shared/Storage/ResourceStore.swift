import Glibc
import Synchronization

/// A content-addressed store of files.
///
/// Paths are `<root>/ab/cd/<64 digits>`; files are never rewritten. Only one process writes (the catalog, which holds
/// the lock); any number may read. Stored bytes are durable when the call returns: temporary file, fsync, rename, fsync
/// of every changed folder. Staged bytes become durable later, many at once (``makeDurable(_:)``).
public final class ResourceStore: Sendable {
    /// The largest read in bytes: 64 MiB.
    public static let largestRead = 64 << 20
    /// The step size of copies in bytes: 1 MiB.
    static let stepBytes = 1 << 20

    /// A step of storing or removing, passed to the watcher before it is executed. A test can observe the order, or
    /// throw to interrupt it.
    enum Step: Equatable {
        case write(String), syncFile(String), rename(String, String), syncFolder(String), remove(String)
        case syncFilesystem(String)
    }
    typealias Watcher = @Sendable (Step) throws(StorageError) -> Void

    /// The folder of the store.
    public let root: String
    /// True if the store is open for reading only.
    public let isReadOnly: Bool

    let watcher: Watcher?
    /// The open folder; the system reports errors of writing to the filesystem since it was opened.
    let folder: Descriptor
    let presence: FilePresence
    /// The number of failed syncs of the filesystem.
    let failedSyncs = Atomic<Int>(0)
    private let nextIncoming = Atomic<UInt64>(0)
    /// The folders whose own entries are durable.
    let durableFolders = Mutex<Set<String>>([])
    private let stripes: [LockStripe]
    /// The number of running backups, each of which suspends removals.
    private let suspensions = Mutex(0)
    private let leases = ResourceLeases()

    // A digest always maps to the same stripe, so that publishing and removing it exclude each other.
    final class LockStripe: Sendable {
        /// The number of publications in this stripe since the store was opened.
        let mutex = Mutex(UInt64(0))
    }

    /// Opens a store, and creates its folder if it does not exist.
    ///
    /// - Parameters:
    ///   - root: the folder; its parent must exist.
    ///   - isReadOnly: opens an existing store for reading only.
    /// - Throws: ``StorageError`` if a system call fails.
    public convenience init(root: String, isReadOnly: Bool = false) throws(StorageError) {
        try self.init(root: root, isReadOnly: isReadOnly, watcher: nil)
    }

    init(root: String, isReadOnly: Bool, watcher: Watcher?) throws(StorageError) {
        var trimmed = root
        while trimmed.count > 1, trimmed.hasSuffix("/") { trimmed.removeLast() }
        self.root = trimmed
        self.isReadOnly = isReadOnly
        self.watcher = watcher
        self.stripes = (0..<64).map { _ in LockStripe() }
        if isReadOnly {
            guard try DirectoryOperations.status(trimmed).st_mode & S_IFMT == S_IFDIR else {
                throw .io("\(root) is not a folder")
            }
        } else {
            _ = try DirectoryOperations.create(trimmed)
        }
        folder = try Descriptor(opening: trimmed, O_RDONLY | O_DIRECTORY)
        presence = try FilePresence(of: trimmed)
        guard !isReadOnly else { return }
        try makeDurable(folder: trimmed, in: Self.parent(of: trimmed))
        try makeDurable(folder: incoming, in: trimmed)
    }

    /// The folder of temporary files, in the store.
    static let incomingName = ".incoming"

    var incoming: String { "\(root)/\(Self.incomingName)" }

    // MARK: Storing

    /// Stores bytes.
    ///
    /// - Parameter verifies: if the bytes are already stored, reads them and compares them with the digest.
    public func put(bytes: [UInt8], verifies: Bool = false) throws(StorageError) -> StoredResource {
        let writer = try writer(limit: Int64(bytes.count))
        try writer.append(bytes)
        return try writer.finish(verifies: verifies)
    }

    /// Stores a copy of the file at a path.
    ///
    /// - Parameters:
    ///   - path: a regular file; links are followed. The caller has checked that the client may name it.
    ///   - limit: the largest size, in bytes.
    ///   - verifies: if the bytes are already stored, reads them and compares them with the digest.
    /// - Returns: the digest of the bytes and whether they were already stored.
    /// - Throws: ``StorageError/tooLarge(_:)``, ``StorageError/invalid(_:)`` unless the path is a regular file, or
    ///   another ``StorageError`` if a system call fails.
    public func put(copying path: String, limit: Int64, verifies: Bool = false) throws(StorageError) -> StoredResource {
        // O_NONBLOCK, because opening a named pipe would otherwise wait for its writer.
        let file = try Descriptor(opening: path, O_RDONLY | O_NONBLOCK | O_NOCTTY)
        guard try file.status().st_mode & S_IFMT == S_IFREG else { throw .invalid("only regular files can be stored") }
        return try put(copying: ResourceFile(file, digest: nil), limit: limit, verifies: verifies)
    }

    /// Stores a copy of an open file from its beginning, up to `limit` bytes.
    ///
    /// Throws like ``put(copying:limit:verifies:)`` with a path.
    public func put(
        copying file: ResourceFile,
        limit: Int64,
        verifies: Bool = false
    ) throws(StorageError) -> StoredResource {
        let copy = try ResourceCopy(of: file, into: self, limit: limit)
        while try copy.next() {}
        return try copy.finish(verifies: verifies)
    }

    /// Makes a writer for bytes that arrive in parts.
    ///
    /// - Parameter limit: the largest total, in bytes.
    /// - Returns: the writer.
    /// - Throws: ``StorageError/readOnly(_:)``, or another ``StorageError`` if the temporary file cannot be created.
    public func writer(limit: Int64) throws(StorageError) -> ResourceWriter {
        let path = try newIncoming()
        try watcher?(.write(path))
        return try ResourceWriter(store: self, path: path, limit: limit)
    }

    /// Returns a new path for a temporary file, which is renamed when it is complete.
    func newIncoming() throws(StorageError) -> String {
        try requireWritable()
        return "\(incoming)/\(getpid())-\(nextIncoming.add(1, ordering: .relaxed).newValue)"
    }

    /// Removes temporary files that earlier processes left; call it at start, before the first writer.
    ///
    /// - Returns: the number of removed files.
    @discardableResult
    public func clearIncoming() throws(StorageError) -> Int {
        try requireWritable()
        let names = try DirectoryOperations.names(in: incoming)
        let before = try DirectoryOperations.status(incoming).st_mtim
        for name in names { try DirectoryOperations.removeFile("\(incoming)/\(name)") }
        // The clock may be behind: the folder keeps the time of the last file that was stored.
        if try microseconds(before) > microseconds(DirectoryOperations.status(incoming).st_mtim) {
            var times = [timespec(tv_sec: 0, tv_nsec: PublicationStamp.omit), before]
            _ = utimensat(AT_FDCWD, incoming, &times, 0)
        }
        return names.count
    }

    /// Renames a complete temporary file to its digest.
    ///
    /// An existing file is kept if it is the published one: it has the size, and its modification time is still that of
    /// its publication (``PublicationStamp``); otherwise, or with `verifies`, it is read and compared. A damaged one is
    /// replaced.
    ///
    /// - Parameters:
    ///   - isSynced: true if the temporary file is already durable.
    ///   - hidesPresence: true to replace an existing file without reading it, with `verifies`: the time of reading
    ///     would reveal that it exists.
    func publish(
        _ path: String,
        as digest: ResourceDigest,
        size: Int64,
        isSynced: Bool = false,
        verifies: Bool = false,
        hidesPresence: Bool = false
    ) throws(StorageError) -> StoredResource {
        let lease = leases.makeLease(of: digest)
        var isSynced = isSynced
        while true {
            let found = try examine(digest, size: size, verifies: verifies, hidesPresence: hidesPresence)
            if !found.isGood, !isSynced {
                PublicationStamp.set(path, digest)
                try watcher?(.syncFile(path))
                try Descriptor(opening: path, O_RDONLY).sync()
                isSynced = true
            }
            if found.isGood, !(try syncUnlessDurable(digest)) { continue }
            let isSettled = try stripe(of: digest).mutex.withLock { (publications) throws(StorageError) in
                publications += 1
                return try settle(path, as: digest, found)
            }
            guard isSettled else { continue }
            let isReplaced = !found.isGood && found != .missing
            return StoredResource(
                digest: digest,
                size: size,
                wasPresent: found != .missing,
                isHealed: isReplaced && !(verifies && hidesPresence),
                isHealingOpen: isReplaced || found.isGood && isHealingOpen(digest),
                lease: lease
            )
        }
    }

    /// Syncs a file that has been staged and is not durable yet; returns false if it no longer exists.
    private func syncUnlessDurable(_ digest: ResourceDigest) throws(StorageError) -> Bool {
        let path = path(of: digest)
        do throws(StorageError) {
            if PublicationStamp.isIntact(try DirectoryOperations.status(path), digest) { return true }
            try watcher?(.syncFile(path))
            try Descriptor(opening: path, O_RDONLY | O_NOFOLLOW).sync()
            return true
        } catch .notFound {
            return false
        }
    }

    /// The state of the file with a digest's name.
    enum TargetState: Equatable {
        case missing
        case good(FileState)
        /// Damaged, or to be replaced in any case.
        case damaged(FileState)

        var isGood: Bool { if case .good = self { true } else { false } }
    }

    func examine(
        _ digest: ResourceDigest,
        size: Int64,
        verifies: Bool,
        hidesPresence: Bool
    ) throws(StorageError) -> TargetState {
        let target = path(of: digest)
        let status: stat
        do throws(StorageError) { status = try DirectoryOperations.status(target) } catch .notFound { return .missing }
        let state = FileState(status)
        if verifies, hidesPresence { return .damaged(state) }
        guard status.st_mode & S_IFMT == S_IFREG, status.st_size == off_t(size) else { return .damaged(state) }
        if !verifies, PublicationStamp.isIntact(status, digest) { return .good(state) }
        do throws(StorageError) {
            try ResourceFile(Descriptor(opening: target, O_RDONLY | O_NOFOLLOW), digest: digest).verify()
            return .good(state)
        } catch .notFound {
            return .missing
        } catch .resourceChanged, .io {
            return .damaged(state)
        }
    }

    /// Publishes according to the examined state, with the digest's lock held; returns false if the target has changed
    /// since.
    private func settle(_ path: String, as digest: ResourceDigest, _ found: TargetState) throws(StorageError) -> Bool {
        let target = self.path(of: digest)
        let now = (try? DirectoryOperations.status(target)).map(FileState.init)
        let folder: String
        switch found {
        case .missing:
            guard now == nil else { return false }
            folder = try makeFolders(of: digest)
            try watcher?(.rename(path, target))
            guard try DirectoryOperations.renameExclusively(path, to: target) else { return false }
        case .good(let state):
            guard now == state else { return false }
            folder = try makeFolders(of: digest)
            PublicationStamp.set(target, digest)
            try DirectoryOperations.removeFile(path)
        case .damaged(let state):
            guard now == state else { return false }
            folder = try makeFolders(of: digest)
            noteHealing(of: digest)
            try watcher?(.rename(path, target))
            guard rename(path, target) == 0 else { throw .system(errno, "replace \(target)") }
        }
        // Also if the file existed: the process that stored it may have been killed before this point.
        try watcher?(.syncFolder(folder))
        try DirectoryOperations.sync(folder)
        return true
    }

    /// Creates the folders of a digest's file; returns the inner one.
    func makeFolders(of digest: ResourceDigest) throws(StorageError) -> String {
        let first = "\(root)/\(digest.text.prefix(2))"
        let folder = "\(first)/\(digest.text.dropFirst(2).prefix(2))"
        try makeDurable(folder: first, in: root)
        try makeDurable(folder: folder, in: first)
        return folder
    }

    // A folder's entry is durable after its parent was synced, even if a killed process created the folder.
    private func makeDurable(folder: String, in parent: String) throws(StorageError) {
        if durableFolders.withLock({ $0.contains(folder) }) { return }
        _ = try DirectoryOperations.create(folder)
        try watcher?(.syncFolder(parent))
        try DirectoryOperations.sync(parent)
        durableFolders.withLock { _ = $0.insert(folder) }
    }

    /// Creates the folders in a store of copies again, if they were deleted. The folder of the store itself exists.
    ///
    /// - Returns: true if they were missing
    public func remakeMissingFolders() throws(StorageError) -> Bool {
        guard access(incoming, F_OK) != 0, errno == ENOENT else { return false }
        durableFolders.withLock { $0 = [] }
        try makeDurable(folder: incoming, in: root)
        return true
    }

    // MARK: Reading

    /// Returns the path of a digest's bytes, whether they are stored or not.
    public func path(of digest: ResourceDigest) -> String {
        "\(root)/\(digest.text.prefix(2))/\(digest.text.dropFirst(2).prefix(2))/\(digest.text)"
    }

    /// Returns true if the bytes are stored; false for referenced files.
    public func contains(_ digest: ResourceDigest) -> Bool {
        access(path(of: digest), F_OK) == 0
    }

    /// Opens stored bytes, or the referenced file if it is unchanged.
    ///
    /// - Throws: ``StorageError/notFound(_:)``, ``absence()``; ``StorageError/resourceChanged(_:)`` for references.
    public func open(_ digest: ResourceDigest) throws(StorageError) -> ResourceFile {
        do throws(StorageError) {
            let file = try Descriptor(opening: path(of: digest), O_RDONLY | O_NOFOLLOW)
            let resource = try ResourceFile(file, digest: digest, isStored: true)
            Self.recordUse(of: resource)
            return resource
        } catch .notFound {
            return try openReference(digest)
        }
    }

    /// Returns the bytes of a range; fewer at the end of the resource.
    public func read(_ digest: ResourceDigest, offset: Int64, count: Int) throws(StorageError) -> [UInt8] {
        try open(digest).read(offset: offset, count: count)
    }

    /// Returns all bytes, checked against the digest.
    public func readAll(_ digest: ResourceDigest, limit: Int64) throws(StorageError) -> [UInt8] {
        try open(digest).readAll(limit: limit)
    }

    // MARK: Removing

    /// Removes stored bytes.
    ///
    /// - Parameters:
    ///   - digest: the digest of the bytes.
    ///   - condition: called with the digest's lock held and the time of last storing, in microseconds since 1970; the
    ///     collector uses it to check again that the bytes are unreferenced.
    /// - Returns: true if the bytes existed and were removed.
    /// - Throws: ``StorageError/readOnly(_:)``, or another ``StorageError`` if a system call fails.
    @discardableResult
    public func remove(_ digest: ResourceDigest, if condition: (_ storedAt: Int64) -> Bool = { _ in true })
        throws(StorageError) -> Bool
    {
        try requireWritable()
        let target = path(of: digest)
        return try stripe(of: digest).mutex.withLock { (_) throws(StorageError) in
            guard !areRemovalsSuspended, !leases.has(digest) else { return false }
            do throws(StorageError) {
                let status = try DirectoryOperations.status(target)
                guard condition(microseconds(status.st_mtim)) else { return false }
                try watcher?(.remove(target))
                try DirectoryOperations.removeFile(target)
                endHealing(of: digest)
                endKeeping(digest)
                return true
            } catch .notFound {
                return false
            }
        }
    }

    /// Returns the number of publications, which a later ``remove(_:ifStillAt:)`` compares; nil if the bytes are
    /// leased.
    ///
    /// Call it before checking whether anything refers to the bytes: a transaction that is about to refer to them
    /// leases them until it is committed, or publishes them again.
    public func removalTicket(_ digest: ResourceDigest) -> UInt64? {
        stripe(of: digest).mutex.withLock { publications in leases.has(digest) ? nil : publications }
    }

    /// Removes bytes, and a reference for them, unless they were published since the ticket or are leased.
    ///
    /// - Returns: the number of removed bytes; nil if nothing was removed.
    public func remove(_ digest: ResourceDigest, ifStillAt ticket: UInt64) throws(StorageError) -> Int64? {
        try requireWritable()
        return try stripe(of: digest).mutex.withLock { (publications) throws(StorageError) in
            guard !areRemovalsSuspended, publications == ticket, !leases.has(digest) else { return nil }
            var removed: Int64?
            for path in [path(of: digest), referencePath(of: digest)] {
                do throws(StorageError) {
                    let size = Int64(try DirectoryOperations.status(path).st_size)
                    try watcher?(.remove(path))
                    try DirectoryOperations.removeFile(path)
                    removed = (removed ?? 0) + size
                } catch .notFound {
                    continue
                }
            }
            if removed != nil {
                endHealing(of: digest)
                endKeeping(digest)
            }
            return removed
        }
    }

    /// Leases the bytes of a digest, stored or not yet: they are not removed while the lease exists.
    public func lease(_ digest: ResourceDigest) -> ResourceLease { leases.makeLease(of: digest) }

    /// True if removals are suspended, because a backup is running.
    public var areRemovalsSuspended: Bool { suspensions.withLock { $0 > 0 } }

    /// Suspends all removals until ``resumeRemovals()``: ``remove(_:if:)`` does nothing meanwhile.
    ///
    /// When this returns, no removal is in progress.
    public func suspendRemovals() {
        suspensions.withLock { $0 += 1 }
        // A removal in progress made its check before and has locked a stripe: wait for it.
        for stripe in stripes { stripe.mutex.withLock { _ in } }
    }

    /// Ends the effect of one call of ``suspendRemovals()``.
    public func resumeRemovals() { suspensions.withLock { $0 -= 1 } }

    // MARK: Parts

    func stripe(of digest: ResourceDigest) -> LockStripe {
        stripes[Int(digest.text.utf8.reduce(UInt64(0)) { $0 &* 31 &+ UInt64($1) } % 64)]
    }

    private func requireWritable() throws(StorageError) {
        guard !isReadOnly else { throw .readOnly("\(root) is open read-only; only the catalog stores resources") }
    }

    private static func parent(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}
