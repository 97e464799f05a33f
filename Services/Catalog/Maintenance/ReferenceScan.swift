import Contracts
import Glibc
import ImageFormats
import PhotoModel
import Storage

/// One comparison of the referenced files below some folders with the disk; blocks the thread.
///
/// - A file with the recorded attributes is unchanged; one with another time, inode or device but the same bytes is
///   accepted again.
/// - A file with other bytes is changed: it is reported and never served.
/// - A missing or changed file is searched by size and content among the unreferenced files and among those that have
///   replaced others; if found, it has moved. So files may be renamed or swapped.
/// - A file that is not found anywhere is marked missing; its asset stays.
/// - No conclusion is drawn about files below a folder that cannot be read. A root in which no referenced file is found
///   is treated as not mounted if it is empty or on another device than the files were. So is a disk below a root, if
///   the nearest existing folder is on another device than the file was, and no file of that device is found there.
///
/// Several resources have the same path after a file was changed in place and imported again; the file has the bytes of
/// at most one of them.
///
/// Needs about 400 bytes of memory for each referenced file below the folders.
struct ReferenceScan {
    private struct KnownFile {
        let digest: ResourceDigest
        let reference: FileReference
        var isFound = false
        /// True if the file at its path has other bytes.
        var isReplaced = false
        /// True if its disk is not mounted.
        var isUnmounted = false
    }

    /// The recorded and the current device number of files that were found below a folder.
    private struct Renumbering: Hashable {
        let folder: String
        let recorded: UInt64
        let current: UInt64
    }

    /// A file that has replaced another one at its path.
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
    /// Devices that have another number than recorded, for the folders of their files and all folders above.
    private var renumberings: Set<Renumbering> = []
    /// Folders about whose files no conclusion is drawn.
    private var excluded: [String] = []
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
        findUnmounted()
        try recordMissing()
    }

    static func isBelow(_ path: String, _ root: String) -> Bool {
        root == "/" || path == root || path.hasPrefix(root + "/")
    }

    // MARK: Searching

    private mutating func search(_ root: String) throws {
        var found = 0
        var others: [(path: String, size: Int64)] = []
        var status = stat()
        let rootExists = lstat(root, &status) == 0
        var folders = rootExists ? [root] : []
        if !rootExists { exclude(root) }
        while let folder = folders.popLast() {
            if isStopped() { throw CancellationError() }
            guard let names = try? BackupFolder.names(folder) else {
                exclude(folder)
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
        if rootExists, found == 0, !expected.isEmpty, isElsewhere || others.isEmpty {
            exclude(root)
        } else {
            unknownFiles += others
        }
    }

    private mutating func exclude(_ folder: String) {
        excluded.append(folder)
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
            // The file exists, but cannot be read.
            result.unknown += entries.count
            return
        }
        let hasOtherIdentity = entries.contains { $0.reference.identity != identity }
        let digest = try hasOtherIdentity ? hash(file, identity) : nil
        var isReplacement = false
        for index in entries.indices {
            let entry = entries[index]
            let isSame = entry.reference.identity == identity
            if isSame, entry.reference.missingSince == nil {
                result.unchanged += 1
            } else if isSame || digest == entry.digest {
                let isSet = try set(FileReference(path: path, identity: identity), of: entry)
                if isSet { result.refreshed += 1 } else { result.unchanged += 1 }
                noteRenumbering(of: entry.reference.identity.device, to: identity.device, at: path)
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

    /// Records that a device has another number than recorded, for all folders above a file.
    private mutating func noteRenumbering(of recorded: UInt64, to current: UInt64, at path: String) {
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

    /// Sets a reference, unless it has been changed or removed since the scan began.
    ///
    /// - Returns: true if it was set
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

    private func isExcluded(_ path: String) -> Bool { excluded.contains { Self.isBelow(path, $0) } }

    /// Finds the missing files whose disk is not mounted: the nearest existing folder is on another device than the
    /// file was, and that device does not just have another number now.
    private mutating func findUnmounted() {
        var folders: [String: (path: String, device: UInt64)] = [:]
        var reported: Set<String> = []
        let lost = known.keys.filter { path in
            !isExcluded(path) && known[path]?.contains { !$0.isFound && !$0.isReplaced } == true
        }
        for path in lost.sorted() {
            let parent = Self.parent(of: path)
            let folder = folders[parent] ?? Self.nearestFolder(parent)
            folders[parent] = folder
            // A file that an earlier scan marked missing, while its disk was mounted, stays missing.
            for (index, entry) in (known[path] ?? []).enumerated()
            where !entry.isFound && entry.reference.missingSince == nil {
                let device = entry.reference.identity.device
                let renumbering = Renumbering(folder: folder.path, recorded: device, current: folder.device)
                guard device != folder.device, !renumberings.contains(renumbering) else { continue }
                known[path]?[index].isUnmounted = true
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

    /// Returns the probable mount point of a missing file: its folder if that exists, or else the first missing folder
    /// of the path.
    ///
    /// - Parameter folder: the nearest existing folder
    private static func mountPoint(of path: String, below folder: String) -> String {
        let start = folder == "/" ? folder : folder + "/"
        let rest = Substring(path.utf8.dropFirst(start.utf8.count))
        return rest.contains("/") ? start + rest.prefix { $0 != "/" } : folder
    }

    private mutating func findMoved() throws {
        // Only known files of these sizes can have moved to the paths of new files.
        let sizes = Set(replacements.map(\.identity.size) + unknownFiles.map { $0.size })
        var candidates: [Int64: [KnownFile]] = [:]
        for (path, entries) in known where !isExcluded(path) {
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
                // The path is another name of a referenced file.
                if candidates.contains(where: { $0.reference.identity == identity && $0.isFound }) { continue }
                let digest = try hash(file, identity)
                if let same = candidates.first(where: { $0.digest == digest }) {
                    try move(same, to: path, identity)
                    continue
                }
            }
            if file.map(Self.isImportable) ?? true { report(new: path) }
        }
        // A file is new if all files that were recorded at its path have moved, and no asset has its bytes.
        for file in replacements where known[file.path]?.contains(where: { !$0.isFound }) == false {
            let isKnown = candidates[file.identity.size]?.contains { $0.digest == file.digest } == true
            if !isKnown { report(new: file.path) }
        }
    }

    private mutating func report(new path: String) {
        result.newCount += 1
        if result.new.count < RescanLibrary.maxPaths { result.new.append(path) }
    }

    /// Changes the reference of a file to a new path, unless the file was already found.
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

    /// Returns true if the file may be an image or a video, judging by its first bytes.
    private static func isImportable(_ file: ResourceFile) -> Bool {
        guard let head = try? file.read(offset: 0, count: VideoFileType.sniffedBytes) else { return true }
        return ImageFormat.sniff(head) != nil || VideoFileType.sniff(head) != nil
            || RawFileType.sniff(head, fileExtension: nil) != nil
    }

    /// Marks the files that were not found as missing, and adds them and the changed files to the result.
    private mutating func recordMissing() throws {
        for (path, entries) in known.sorted(by: { $0.key < $1.key }) {
            let lost = entries.filter { !$0.isFound }
            if isExcluded(path) {
                result.unknown += lost.count
                continue
            }
            if lost.contains(where: \.isReplaced) {
                result.changedCount += 1
                if result.changed.count < RescanLibrary.maxPaths { result.changed.append(path) }
            }
            result.unknown += lost.count(where: \.isUnmounted)
            var isMissing = false
            for entry in lost where !entry.isReplaced && !entry.isUnmounted {
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
