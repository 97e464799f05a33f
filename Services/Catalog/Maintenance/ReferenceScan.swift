import Contracts
import Glibc
import PhotoModel
import Storage

/// One comparison of the referenced files below some folders with the disk; blocks.
///
/// - A file with the recorded attributes is unchanged; one with another time, inode or device but the same bytes is
///   accepted again.
/// - A file with other bytes is changed: it is reported and never served.
/// - A file that is gone is searched by size and content among the unreferenced files; if found, it moved.
/// - A file that is not found anywhere is marked missing; its asset stays.
/// - Below a folder that cannot be read nothing is concluded. A root without a single referenced file that is empty or
///   on another device than they were is treated as not mounted.
///
/// Needs about 300 bytes of memory for each referenced file below the folders.
struct ReferenceScan {
    private struct KnownFile {
        let digest: ResourceDigest
        var reference: FileReference
        var isFound = false
    }

    private let resources: ResourceStore
    private let allowlist: PathAllowlist
    private let maxBytes: Int64
    private let now: Int64
    private let isStopped: () -> Bool
    private let progress: (_ done: Int, _ total: Int) -> Void
    private var done = 0
    private var known: [String: KnownFile] = [:]
    /// Files that no asset refers to, with their sizes.
    private var unknownFiles: [(path: String, size: Int64)] = []
    /// Folders below which nothing is concluded.
    private var closed: [String] = []
    private(set) var result = RescanLibrary.Result()

    /// The number of referenced files between two progress reports.
    private static let step = 64

    /// - Parameters:
    ///   - isStopped: called between steps, none of which reads more than ``FileHash/stepBytes``
    ///   - progress: called with the number of referenced files compared and their total
    init(
        resources: ResourceStore,
        allowlist: PathAllowlist,
        maxBytes: Int64,
        now: Int64,
        isStopped: @escaping () -> Bool,
        progress: @escaping (_ done: Int, _ total: Int) -> Void
    ) {
        self.resources = resources
        self.allowlist = allowlist
        self.maxBytes = maxBytes
        self.now = now
        self.isStopped = isStopped
        self.progress = progress
    }

    /// Compares everything below folders, each of which is below an allowed root.
    mutating func run(_ roots: [String]) throws {
        try resources.forEachReference { digest, reference in
            if roots.contains(where: { Self.isBelow(reference.path, $0) }) {
                known[reference.path] = KnownFile(digest: digest, reference: reference)
            }
            return true
        }
        progress(0, known.count)
        for root in roots { try search(root) }
        progress(done, known.count)
        try findMoved()
        try conclude()
    }

    static func isBelow(_ path: String, _ root: String) -> Bool {
        root == "/" || path == root || path.hasPrefix(root + "/")
    }

    // MARK: Searching

    private mutating func search(_ root: String) throws {
        var found = 0
        var others: [(path: String, size: Int64)] = []
        var status = stat()
        let isThere = lstat(root, &status) == 0
        var folders = isThere ? [root] : []
        if !isThere { close(root) }
        while let folder = folders.popLast() {
            if isStopped() { throw CancellationError() }
            guard let names = try? BackupFolder.names(folder) else {
                close(folder)
                continue
            }
            for name in names.sorted() where !name.hasPrefix(".") {
                let path = folder == "/" ? "/" + name : "\(folder)/\(name)"
                var status = stat()
                guard lstat(path, &status) == 0 else { continue }
                switch status.st_mode & S_IFMT {
                case S_IFDIR: folders.append(path)
                case S_IFREG where known[path] != nil:
                    found += 1
                    if isStopped() { throw CancellationError() }
                    try compare(path)
                    done += 1
                    if done % Self.step == 0 { progress(done, known.count) }
                case S_IFREG where !Self.isSidecar(name): others.append((path, Int64(status.st_size)))
                default: continue
                }
            }
        }
        let expected = known.values.filter { Self.isBelow($0.reference.path, root) }
        let isElsewhere = expected.allSatisfy { $0.reference.identity.device != UInt64(status.st_dev) }
        if isThere, found == 0, !expected.isEmpty, isElsewhere || others.isEmpty {
            close(root)
        } else {
            unknownFiles += others
        }
    }

    private mutating func close(_ folder: String) {
        closed.append(folder)
        if result.unreadable.count < RescanLibrary.maxPaths { result.unreadable.append(folder) }
    }

    private static func isSidecar(_ name: String) -> Bool {
        let name = name.lowercased()
        return name.hasSuffix(".xmp") || name.hasSuffix(".aae")
    }

    private mutating func compare(_ path: String) throws {
        guard var entry = known[path] else { return }
        entry.isFound = true
        known[path] = entry
        guard let file = try? allowlist.open(path), let identity = try? FileIdentity(of: file) else {
            // The file exists, but cannot be read now.
            result.unknown += 1
            return
        }
        if identity == entry.reference.identity, entry.reference.missingSince == nil { return result.unchanged += 1 }
        guard try identity == entry.reference.identity || hash(file, identity) == entry.digest else {
            result.changedCount += 1
            if result.changed.count < RescanLibrary.maxPaths { result.changed.append(path) }
            return
        }
        try resources.setReference(FileReference(path: path, identity: identity), of: entry.digest)
        result.refreshed += 1
    }

    /// Returns the digest of a file, or nil if the file changes while it is read.
    private func hash(_ file: ResourceFile, _ identity: FileIdentity) throws -> ResourceDigest? {
        guard file.size <= maxBytes else { return nil }
        let hash = FileHash(of: file)
        while true {
            if isStopped() { throw CancellationError() }
            do throws(StorageError) {
                guard let digest = try hash.next() else { continue }
                return try FileIdentity(of: file) == identity ? digest : nil
            } catch {
                return nil
            }
        }
    }

    // MARK: Results

    private func isClosed(_ path: String) -> Bool { closed.contains { Self.isBelow(path, $0) } }

    private mutating func findMoved() throws {
        var lost: [Int64: [String]] = [:]
        for (path, entry) in known where !entry.isFound && !isClosed(path) {
            lost[entry.reference.identity.size, default: []].append(path)
        }
        for (path, size) in unknownFiles {
            if isStopped() { throw CancellationError() }
            var wasMoved = false
            if let candidates = lost[size], let file = try? allowlist.open(path),
                let identity = try? FileIdentity(of: file),
                let digest = try hash(file, identity),
                let old = candidates.sorted().first(where: { known[$0]?.digest == digest })
            {
                try resources.setReference(FileReference(path: path, identity: identity), of: digest)
                known[old]?.isFound = true
                lost[size]?.removeAll { $0 == old }
                wasMoved = true
                result.movedCount += 1
                if result.moved.count < RescanLibrary.maxPaths { result.moved.append(.init(from: old, to: path)) }
            }
            if !wasMoved {
                result.newCount += 1
                if result.new.count < RescanLibrary.maxPaths { result.new.append(path) }
            }
        }
    }

    private mutating func conclude() throws {
        for (path, entry) in known.sorted(by: { $0.key < $1.key }) where !entry.isFound {
            if isClosed(path) {
                result.unknown += 1
                continue
            }
            if entry.reference.missingSince == nil {
                var reference = entry.reference
                reference.missingSince = now
                try resources.setReference(reference, of: entry.digest)
            }
            result.missingCount += 1
            if result.missing.count < RescanLibrary.maxPaths { result.missing.append(path) }
        }
    }
}
