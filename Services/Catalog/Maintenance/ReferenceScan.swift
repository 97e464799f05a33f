import Contracts
import Glibc
import ImageFormats
import PhotoModel
import Storage

/// One comparison of the referenced files below some folders with the disk; blocks.
///
/// - A file with the recorded attributes is unchanged; one with another time, inode or device but the same bytes is
///   accepted again.
/// - A file with other bytes is changed: it is reported and never served.
/// - A missing or changed file is searched by size and content among the unreferenced files and among those that have
///   taken the places of others; if found, it moved. So files may be renumbered or swapped.
/// - A file that is not found anywhere is marked missing; its asset stays.
/// - No conclusion is drawn about files below a folder that cannot be read. A root without a single referenced file
///   that is empty or on another device than they were is treated as not mounted. So is a disk below a root: the
///   nearest folder that exists is on another device than the file was, and no other file of its device is there.
///
/// Several resources have one path after a file was changed in place and imported again; at most one has its bytes.
///
/// Needs about 400 bytes of memory for each referenced file below the folders.
struct ReferenceScan {
    private struct KnownFile {
        let digest: ResourceDigest
        let reference: FileReference
        var isFound = false
        /// True if its path has other bytes.
        var isReplaced = false
        /// True if its disk is not mounted.
        var isAway = false
    }

    /// A device as it was recorded, and as it is now, of files that were found below a folder.
    private struct Renumbering: Hashable {
        let folder: String
        let recorded: UInt64
        let current: UInt64
    }

    /// A file that has taken the place of another one.
    private struct Replacement {
        let path: String
        let identity: FileIdentity
        let digest: ResourceDigest
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
    private var replacements: [Replacement] = []
    /// Devices that have another number than recorded, by the folders of their files and those above.
    private var renumberings: Set<Renumbering> = []
    /// Folders about whose files no conclusion is drawn.
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
        findAway()
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
        report(unreadable: folder)
    }

    private mutating func report(unreadable folder: String) {
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
        var isReplacement = false
        for index in entries.indices {
            let entry = entries[index]
            let isSame = entry.reference.identity == identity
            if isSame, entry.reference.missingSince == nil {
                result.unchanged += 1
            } else if isSame || digest == entry.digest {
                let isSet = try set(FileReference(path: path, identity: identity), of: entry)
                if isSet { result.refreshed += 1 } else { result.unchanged += 1 }
                note(entry.reference.identity.device, isNow: identity.device, at: path)
            } else {
                (entries[index].isFound, entries[index].isReplaced) = (false, true)
                isReplacement = true
            }
        }
        known[path] = entries
        if isReplacement, let digest {
            replacements.append(Replacement(path: path, identity: identity, digest: digest))
        }
    }

    /// Notes that a device has another number than recorded, for all folders above a file.
    private mutating func note(_ recorded: UInt64, isNow current: UInt64, at path: String) {
        guard recorded != current else { return }
        var folder = Self.parent(of: path)
        while renumberings.insert(Renumbering(folder: folder, recorded: recorded, current: current)).inserted,
            folder != "/"
        {
            folder = Self.parent(of: folder)
        }
    }

    private static func parent(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/"), slash != path.startIndex else { return "/" }
        return String(path[..<slash])
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

    /// Finds the missing files whose disk is not mounted. Each is below a folder that exists on another device than the
    /// file was, unless that device has another number now.
    private mutating func findAway() {
        var folders: [String: (path: String, device: UInt64)] = [:]
        var reported: Set<String> = []
        let lost = known.keys.filter { path in
            !isClosed(path) && known[path]?.contains { !$0.isFound && !$0.isReplaced } == true
        }
        for path in lost.sorted() {
            let parent = Self.parent(of: path)
            let folder = folders[parent] ?? Self.nearestFolder(parent)
            folders[parent] = folder
            // A file that an earlier scan has missed, with its disk, is missing.
            for (index, entry) in (known[path] ?? []).enumerated()
            where !entry.isFound && entry.reference.missingSince == nil {
                let device = entry.reference.identity.device
                let renumbering = Renumbering(folder: folder.path, recorded: device, current: folder.device)
                guard device != folder.device, !renumberings.contains(renumbering) else { continue }
                known[path]?[index].isAway = true
                let mountPoint = Self.mountPoint(of: path, below: folder.path)
                if reported.insert(mountPoint).inserted { report(unreadable: mountPoint) }
            }
        }
    }

    /// Returns the nearest folder of a path that exists, with its device.
    private static func nearestFolder(_ path: String) -> (path: String, device: UInt64) {
        var folder = path
        var status = stat()
        while stat(folder, &status) != 0, folder != "/" { folder = parent(of: folder) }
        return (folder, UInt64(status.st_dev))
    }

    /// Returns the mount point of a missing file: the folder that exists if it is that of the file, or else the one
    /// that is missing in it.
    private static func mountPoint(of path: String, below folder: String) -> String {
        let start = folder == "/" ? folder : folder + "/"
        let rest = Substring(path.utf8.dropFirst(start.utf8.count))
        return rest.contains("/") ? start + rest.prefix { $0 != "/" } : folder
    }

    private mutating func findMoved() throws {
        // Of the sizes of files that are not known at their paths.
        let sizes = Set(replacements.map(\.identity.size) + unknownFiles.map { $0.size })
        var candidates: [Int64: [KnownFile]] = [:]
        for (path, entries) in known where !isClosed(path) {
            for entry in entries where sizes.contains(entry.reference.identity.size) {
                candidates[entry.reference.identity.size, default: []].append(entry)
            }
        }
        for file in replacements {
            let same = candidates[file.identity.size]?.first { $0.digest == file.digest }
            if let same { try move(same, to: file.path, file.identity) }
        }
        for (path, size) in unknownFiles {
            if isStopped() { throw CancellationError() }
            let file = try? allowlist.open(path)
            if let candidates = candidates[size], let file, let identity = try? FileIdentity(of: file) {
                // Another name of a referenced file.
                if candidates.contains(where: { $0.reference.identity == identity && $0.isFound }) { continue }
                let digest = try hash(file, identity)
                if let same = candidates.first(where: { $0.digest == digest }) {
                    try move(same, to: path, identity)
                    continue
                }
            }
            if file.map(Self.isImportable) ?? true { report(new: path) }
        }
        // The files that were there have moved, and no asset has the bytes that are there now.
        for file in replacements where known[file.path]?.contains(where: { !$0.isFound }) == false {
            let isKnown = candidates[file.identity.size]?.contains { $0.digest == file.digest } == true
            if !isKnown { report(new: file.path) }
        }
    }

    private mutating func report(new path: String) {
        result.newCount += 1
        if result.new.count < RescanLibrary.maxPaths { result.new.append(path) }
    }

    /// Refers to a file at its new path, unless it was found, also at another one.
    private mutating func move(_ file: KnownFile, to path: String, _ identity: FileIdentity) throws {
        let old = file.reference.path
        guard let index = known[old]?.firstIndex(where: { $0.digest == file.digest }),
            known[old]?[index].isFound == false
        else { return }
        known[old]?[index].isFound = true
        if try set(FileReference(path: path, identity: identity), of: file) {
            result.movedCount += 1
            if result.moved.count < RescanLibrary.maxPaths { result.moved.append(.init(from: old, to: path)) }
        } else {
            result.unchanged += 1
        }
    }

    /// Returns false for a file that begins like no image and no video.
    private static func isImportable(_ file: ResourceFile) -> Bool {
        guard let head = try? file.read(offset: 0, count: VideoFileType.sniffedBytes) else { return true }
        return ImageFormat.sniff(head) != nil || VideoFileType.sniff(head) != nil
            || RawFileType.sniff(head, ending: nil) != nil
    }

    private mutating func conclude() throws {
        for (path, entries) in known.sorted(by: { $0.key < $1.key }) {
            let lost = entries.filter { !$0.isFound }
            if isClosed(path) {
                result.unknown += lost.count
                continue
            }
            if lost.contains(where: \.isReplaced) {
                result.changedCount += 1
                if result.changed.count < RescanLibrary.maxPaths { result.changed.append(path) }
            }
            result.unknown += lost.count(where: \.isAway)
            var isMissing = false
            for entry in lost where !entry.isReplaced && !entry.isAway {
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
