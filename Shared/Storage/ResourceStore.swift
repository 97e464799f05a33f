import Glibc
import Synchronization

/// Bytes on disk under the name of their content.
///
/// `<root>/ab/cd/<64 digits>`, never rewritten. Only one process writes (the catalog, which holds its lock); any number
/// read. Storing is durable when it returns: temporary file, fsync, rename, fsync of every folder touched.
public final class ResourceStore: Sendable {
    /// The most bytes that one read returns: 64 MiB.
    public static let largestRead = 64 << 20
    /// Copies go in steps of 1 MiB.
    static let stepBytes = 1 << 20

    /// A step of storing or removing, told before it is taken; a test can watch the order, or throw to break it there.
    enum Step: Equatable {
        case write(String), syncFile(String), rename(String, String), syncFolder(String), remove(String)
    }
    typealias Watcher = @Sendable (Step) throws(StorageError) -> Void

    /// The folder of the store.
    public let root: String
    /// Whether nothing can be stored or removed.
    public let isReadOnly: Bool

    let watcher: Watcher?
    private let nextIncoming = Atomic<UInt64>(0)
    private let durableFolders = Mutex<Set<String>>([])
    private let stripes: [Stripe]
    private let holds = Mutex(0)
    private let leases = LeaseTable()

    // One digest always meets the same stripe, so that publishing and removing it exclude each other.
    private final class Stripe: Sendable {
        /// How often something was published here since the store was opened.
        let mutex = Mutex(UInt64(0))
    }

    /// Opens a store, and makes its folder where there is none.
    ///
    /// - Parameters:
    ///   - root: the folder; its parent exists.
    ///   - isReadOnly: open an existing store for reading only.
    /// - Throws: ``StorageError`` of the disk.
    public convenience init(root: String, isReadOnly: Bool = false) throws(StorageError) {
        try self.init(root: root, isReadOnly: isReadOnly, watcher: nil)
    }

    init(root: String, isReadOnly: Bool, watcher: Watcher?) throws(StorageError) {
        var trimmed = root
        while trimmed.count > 1, trimmed.hasSuffix("/") { trimmed.removeLast() }
        self.root = trimmed
        self.isReadOnly = isReadOnly
        self.watcher = watcher
        self.stripes = (0..<64).map { _ in Stripe() }
        if isReadOnly {
            guard try Folder.status(trimmed).st_mode & S_IFMT == S_IFDIR else { throw .io("\(root) is not a folder") }
        } else {
            try makeDurable(folder: trimmed, in: parent(of: trimmed))
            try makeDurable(folder: incoming, in: trimmed)
        }
    }

    var incoming: String { root + "/.incoming" }

    // MARK: Storing

    /// Stores bytes.
    ///
    /// - Parameter verifies: also reads a file that is stored already and compares it with its digest.
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
    ///   - verifies: also reads a file that is stored already and compares it with its digest.
    /// - Returns: the name of the bytes.
    /// - Throws: ``StorageError/tooLarge(_:)``, ``StorageError/invalid(_:)`` for what is no file, errors of the disk.
    public func put(copying path: String, limit: Int64, verifies: Bool = false) throws(StorageError) -> StoredResource {
        // Not blocking: opening a named pipe must not wait for its writer.
        let file = try Descriptor(opening: path, O_RDONLY | O_NONBLOCK | O_NOCTTY)
        guard try file.status().st_mode & S_IFMT == S_IFREG else { throw .invalid("only regular files can be stored") }
        return try put(copying: ResourceFile(file, digest: nil), limit: limit, verifies: verifies)
    }

    /// Stores a copy of an open file from its beginning, up to `limit` bytes.
    ///
    /// Throws as for a path.
    public func put(
        copying file: ResourceFile,
        limit: Int64,
        verifies: Bool = false
    ) throws(StorageError) -> StoredResource {
        let copy = try ResourceCopy(of: file, into: self, limit: limit)
        while try copy.next() {}
        return try copy.finish(verifies: verifies)
    }

    /// Begins to store bytes that arrive in pieces.
    ///
    /// - Parameter limit: the largest total, in bytes.
    /// - Returns: where the pieces go.
    /// - Throws: ``StorageError`` of the disk, ``StorageError/readOnly(_:)``.
    public func writer(limit: Int64) throws(StorageError) -> ResourceWriter {
        let path = try newIncoming()
        try watcher?(.write(path))
        return try ResourceWriter(store: self, path: path, limit: limit)
    }

    /// A name for a file that is about to be written, and will get its own when it is complete.
    func newIncoming() throws(StorageError) -> String {
        try mayWrite()
        return "\(incoming)/\(getpid())-\(nextIncoming.add(1, ordering: .relaxed).newValue)"
    }

    /// Removes what earlier processes left half-written; call at start, before the first writer.
    ///
    /// - Returns: how many files were removed.
    @discardableResult
    public func clearIncoming() throws(StorageError) -> Int {
        try mayWrite()
        let names = try Folder.names(in: incoming)
        for name in names { try Folder.removeFile("\(incoming)/\(name)") }
        return names.count
    }

    /// Gives a complete temporary file its name.
    ///
    /// A file that has the name already is kept where it is what was published: it has the size, and its modification
    /// time is still the one of its publication (``PublicationStamp``); else, or with `verifies`, it is read and
    /// compared. A damaged one is replaced.
    ///
    /// - Parameter isSynced: the file is durable already.
    func publish(
        _ path: String,
        as digest: ResourceDigest,
        size: Int64,
        isSynced: Bool = false,
        verifies: Bool = false
    ) throws(StorageError) -> StoredResource {
        let lease = leases.take(digest)
        var isSynced = isSynced
        while true {
            let present = try look(at: digest, size: size, verifies: verifies)
            if !present.isGood, !isSynced {
                PublicationStamp.set(path, digest)
                try watcher?(.syncFile(path))
                try Descriptor(opening: path, O_RDONLY).sync()
                isSynced = true
            }
            let isSettled = try stripe(of: digest).mutex.withLock { (publications) throws(StorageError) in
                publications += 1
                return try settle(path, as: digest, present)
            }
            guard isSettled else { continue }
            return StoredResource(
                digest: digest,
                size: size,
                wasPresent: present != .missing,
                isHealed: !present.isGood && present != .missing,
                lease: lease
            )
        }
    }

    /// The file that has a digest's name.
    private enum Present: Equatable {
        case missing
        case good(FileState)
        case damaged(FileState)

        var isGood: Bool { if case .good = self { true } else { false } }
    }

    private func look(at digest: ResourceDigest, size: Int64, verifies: Bool) throws(StorageError) -> Present {
        let target = path(of: digest)
        let status: stat
        do throws(StorageError) { status = try Folder.status(target) } catch .notFound { return .missing }
        let state = FileState(status)
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

    /// Publishes what was found, with the digest's lock held; false where the target has changed since.
    private func settle(_ path: String, as digest: ResourceDigest, _ present: Present) throws(StorageError) -> Bool {
        let target = self.path(of: digest)
        let now = (try? Folder.status(target)).map(FileState.init)
        let folder: String
        switch present {
        case .missing:
            guard now == nil else { return false }
            folder = try makeFolders(of: digest)
            try watcher?(.rename(path, target))
            guard try Folder.renameExclusively(path, to: target) else { return false }
        case .good(let state):
            guard now == state else { return false }
            folder = try makeFolders(of: digest)
            PublicationStamp.set(target, digest)
            try Folder.removeFile(path)
        case .damaged(let state):
            guard now == state else { return false }
            folder = try makeFolders(of: digest)
            try watcher?(.rename(path, target))
            guard rename(path, target) == 0 else { throw .system(errno, "replace \(target)") }
        }
        // Also where it existed: whoever stored it may have been killed before this point.
        try watcher?(.syncFolder(folder))
        try Folder.sync(folder)
        return true
    }

    /// Makes the folders that a digest's file stands in; the inner one.
    func makeFolders(of digest: ResourceDigest) throws(StorageError) -> String {
        let first = "\(root)/\(digest.text.prefix(2))"
        let folder = "\(first)/\(digest.text.dropFirst(2).prefix(2))"
        try makeDurable(folder: first, in: root)
        try makeDurable(folder: folder, in: first)
        return folder
    }

    // A folder is in its parent for good once the parent was synced after it was made, by us or by someone killed.
    private func makeDurable(folder: String, in parent: String) throws(StorageError) {
        if durableFolders.withLock({ $0.contains(folder) }) { return }
        _ = try Folder.create(folder)
        try watcher?(.syncFolder(parent))
        try Folder.sync(parent)
        durableFolders.withLock { _ = $0.insert(folder) }
    }

    // MARK: Reading

    /// Where the bytes of a digest are, or would be.
    public func path(of digest: ResourceDigest) -> String {
        "\(root)/\(digest.text.prefix(2))/\(digest.text.dropFirst(2).prefix(2))/\(digest.text)"
    }

    /// Whether the bytes are stored.
    public func contains(_ digest: ResourceDigest) -> Bool {
        access(path(of: digest), F_OK) == 0
    }

    /// Opens stored bytes, or the file that stands for them if it is still the same.
    ///
    /// - Throws: ``StorageError/notFound(_:)``; ``StorageError/resourceChanged(_:)`` for a referenced file.
    public func open(_ digest: ResourceDigest) throws(StorageError) -> ResourceFile {
        do throws(StorageError) {
            let file = try Descriptor(opening: path(of: digest), O_RDONLY | O_NOFOLLOW)
            return try ResourceFile(file, digest: digest, isStored: true)
        } catch .notFound {
            return try openReference(digest)
        }
    }

    /// Bytes of a range; fewer where the resource ends.
    public func read(_ digest: ResourceDigest, offset: Int64, count: Int) throws(StorageError) -> [UInt8] {
        try open(digest).read(offset: offset, count: count)
    }

    /// All bytes, checked against the digest.
    public func readAll(_ digest: ResourceDigest, limit: Int64) throws(StorageError) -> [UInt8] {
        try open(digest).readAll(limit: limit)
    }

    // MARK: Removing

    /// Removes stored bytes; whether they were there.
    ///
    /// - Parameters:
    ///   - digest: the name.
    ///   - condition: asked with the digest's lock held and the time of last storing, in microseconds since 1970: the
    ///     collector's last look whether it is still unreferenced.
    /// - Returns: whether they were there and are gone.
    /// - Throws: ``StorageError`` of the disk, ``StorageError/readOnly(_:)``.
    @discardableResult
    public func remove(_ digest: ResourceDigest, if condition: (_ storedAt: Int64) -> Bool = { _ in true })
        throws(StorageError) -> Bool
    {
        try mayWrite()
        let target = path(of: digest)
        return try stripe(of: digest).mutex.withLock { (_) throws(StorageError) in
            guard !isHeld, !leases.has(digest) else { return false }
            do throws(StorageError) {
                let status = try Folder.status(target)
                guard condition(microseconds(status.st_mtim)) else { return false }
                try watcher?(.remove(target))
                try Folder.removeFile(target)
                return true
            } catch .notFound {
                return false
            }
        }
    }

    /// The number of publications that a later ``remove(_:ifStillAt:)`` compares; nil where somebody holds the bytes.
    ///
    /// Take it before asking whether anything refers to the bytes: whoever is about to refer to them holds them until
    /// that is committed, or publishes them again.
    public func removalTicket(_ digest: ResourceDigest) -> UInt64? {
        stripe(of: digest).mutex.withLock { publications in leases.has(digest) ? nil : publications }
    }

    /// Removes bytes, and a reference that stands for them, unless they were published or are held since the ticket.
    ///
    /// - Returns: how many bytes were removed; nil where nothing was.
    public func remove(_ digest: ResourceDigest, ifStillAt ticket: UInt64) throws(StorageError) -> Int64? {
        try mayWrite()
        return try stripe(of: digest).mutex.withLock { (publications) throws(StorageError) in
            guard !isHeld, publications == ticket, !leases.has(digest) else { return nil }
            var removed: Int64?
            for path in [path(of: digest), referencePath(of: digest)] {
                do throws(StorageError) {
                    let size = Int64(try Folder.status(path).st_size)
                    try watcher?(.remove(path))
                    try Folder.removeFile(path)
                    removed = (removed ?? 0) + size
                } catch .notFound {
                    continue
                }
            }
            return removed
        }
    }

    /// Holds the bytes of a digest, whether they are stored or not yet: they are not removed while the lease lives.
    public func lease(_ digest: ResourceDigest) -> ResourceLease { leases.take(digest) }

    /// Whether nothing is removed now, because a backup is under way.
    public var isHeld: Bool { holds.withLock { $0 > 0 } }

    /// Keeps everything that is stored until ``release()``: ``remove(_:if:)`` does nothing meanwhile.
    ///
    /// When this returns, no removal is under way.
    public func hold() {
        holds.withLock { $0 += 1 }
        // Whoever removes holds a stripe and looked before this: wait until it is done.
        for stripe in stripes { stripe.mutex.withLock { _ in } }
    }

    /// Ends one ``hold()``.
    public func release() { holds.withLock { $0 -= 1 } }

    /// Visits what is stored, one folder at a time, in no order.
    ///
    /// - Parameter visit: gets each digest with size and time of last storing (microseconds since 1970); returns
    ///   `false` to stop.
    /// - Throws: ``StorageError`` of the disk.
    public func forEach(_ visit: (ResourceDigest, _ size: Int64, _ storedAt: Int64) -> Bool) throws(StorageError) {
        for first in try Folder.names(in: root) where first.count == 2 {
            for second in try Folder.names(in: "\(root)/\(first)") where second.count == 2 {
                for name in try Folder.names(in: "\(root)/\(first)/\(second)") {
                    guard let digest = ResourceDigest(name), let status = try? Folder.status(path(of: digest)) else {
                        continue
                    }
                    if !visit(digest, Int64(status.st_size), microseconds(status.st_mtim)) { return }
                }
            }
        }
    }

    /// The parts of the store that ``digests(in:)`` lists one at a time: the first two digits of digests.
    public static let parts: [String] = (0..<256).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }

    /// Everything in one part of the store, referenced files too, with the size on the disk; in no order.
    public func digests(in part: String) throws(StorageError) -> [ResourceDigest: Int64] {
        var found: [ResourceDigest: Int64] = [:]
        do throws(StorageError) {
            for second in try Folder.names(in: "\(root)/\(part)") where second.count == 2 {
                let folder = "\(root)/\(part)/\(second)"
                for name in try Folder.names(in: folder) {
                    let isReference = name.hasSuffix(Self.referenceEnding)
                    let text = isReference ? String(name.dropLast(Self.referenceEnding.count)) : name
                    guard let digest = ResourceDigest(text), let status = try? Folder.status("\(folder)/\(name)") else {
                        continue
                    }
                    found[digest, default: 0] += Int64(status.st_size)
                }
            }
        } catch .notFound {
            return found
        }
        return found
    }

    // MARK: Parts

    private func stripe(of digest: ResourceDigest) -> Stripe {
        stripes[Int(digest.text.utf8.reduce(UInt64(0)) { $0 &* 31 &+ UInt64($1) } % 64)]
    }

    private func mayWrite() throws(StorageError) {
        guard !isReadOnly else { throw .readOnly("\(root) is open for reading only; the catalog stores resources") }
    }

    private func parent(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}

/// What storing bytes came to.
public struct StoredResource: Sendable {
    /// The name of the bytes.
    public let digest: ResourceDigest
    /// The size in bytes.
    public let size: Int64
    /// Whether they were there before; then their age counts from now.
    public let wasPresent: Bool
    /// Whether they replaced a stored file that was damaged.
    public let isHealed: Bool
    /// Keeps the bytes in the store until something refers to them.
    public let lease: ResourceLease
}

func microseconds(_ time: timespec) -> Int64 {
    let (whole, overflow) = Int64(time.tv_sec).multipliedReportingOverflow(by: 1_000_000)
    return overflow ? Int64.max : whole &+ Int64(time.tv_nsec) / 1000
}
