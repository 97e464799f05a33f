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
/// Several resources have one path after a file was changed in place and imported again; at most one has its bytes.
///
/// Needs about 400 bytes of memory for each referenced file below the folders.
struct ReferenceScan {
    private struct KnownFile {
        let digest: ResourceDigest
        let reference: FileReference
        var isFound = false
    }

    private let resources: ResourceStore
    private let allowlist: PathAllowlist
    private let maxBytes: Int64
    private let now: Int64
    private let isStopped: () -> Bool
    private let progress: (_ done: Int, _ total: Int) -> Void
    private var done = 0
    private var known: [String: [KnownFile]] = [:]
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
                known[reference.path, default: []].append(KnownFile(digest: digest, reference: reference))
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
        let expected = known.values.joined().filter { Self.isBelow($0.reference.path, root) }
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
        guard var entries = known[path] else { return }
        for index in entries.indices { entries[index].isFound = true }
        known[path] = entries
        guard let file = try? allowlist.open(path), let identity = try? FileIdentity(of: file) else {
            // The file exists, but cannot be read now.
            result.unknown += entries.count
            return
        }
        let isOther = entries.contains { $0.reference.identity != identity }
        let digest = try isOther ? hash(file, identity) : nil
        var isChanged = false
        for entry in entries {
            let isSame = entry.reference.identity == identity
            if isSame, entry.reference.missingSince == nil {
                result.unchanged += 1
            } else if isSame || digest == entry.digest {
                let isSet = try set(FileReference(path: path, identity: identity), of: entry)
                if isSet { result.refreshed += 1 } else { result.unchanged += 1 }
            } else {
                isChanged = true
            }
        }
        if isChanged {
            result.changedCount += 1
            if result.changed.count < RescanLibrary.maxPaths { result.changed.append(path) }
        }
    }

    /// Sets a reference, unless it was changed or removed since the scan has begun.
    ///
    /// - Returns: false if it was
    private func set(_ reference: FileReference, of entry: KnownFile) throws -> Bool {
        guard (try? resources.reference(of: entry.digest)) == entry.reference else { return false }
        try resources.setReference(reference, of: entry.digest)
        return true
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
        var lost: [Int64: [KnownFile]] = [:]
        for (path, entries) in known where !isClosed(path) {
            for entry in entries where !entry.isFound {
                lost[entry.reference.identity.size, default: []].append(entry)
            }
        }
        for (path, size) in unknownFiles {
            if isStopped() { throw CancellationError() }
            var isKnown = false
            if let candidates = lost[size], let file = try? allowlist.open(path),
                let identity = try? FileIdentity(of: file),
                let digest = try hash(file, identity),
                let entry = candidates.first(where: { $0.digest == digest })
            {
                let old = entry.reference.path
                isKnown = true
                if let index = known[old]?.firstIndex(where: { $0.digest == digest }) {
                    known[old]?[index].isFound = true
                }
                lost[size]?.removeAll { $0.digest == digest }
                if try set(FileReference(path: path, identity: identity), of: entry) {
                    result.movedCount += 1
                    if result.moved.count < RescanLibrary.maxPaths { result.moved.append(.init(from: old, to: path)) }
                } else {
                    result.unchanged += 1
                }
            }
            if !isKnown {
                result.newCount += 1
                if result.new.count < RescanLibrary.maxPaths { result.new.append(path) }
            }
        }
    }

    private mutating func conclude() throws {
        for (path, entries) in known.sorted(by: { $0.key < $1.key }) {
            let lost = entries.filter { !$0.isFound }
            if isClosed(path) {
                result.unknown += lost.count
                continue
            }
            var isMissing = false
            for entry in lost {
                if entry.reference.missingSince != nil {
                    isMissing = true
                    continue
                }
                var reference = entry.reference
                reference.missingSince = now
                let isSet = try set(reference, of: entry)
                if isSet { isMissing = true } else { result.unchanged += 1 }
            }
            guard isMissing else { continue }
            result.missingCount += 1
            if result.missing.count < RescanLibrary.maxPaths { result.missing.append(path) }
        }
    }
}
