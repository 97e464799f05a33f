import Glibc
import SystemPackage

/// Finds the files to import by searching folders recursively, in the byte order of their names.
///
/// Memory is bounded by the largest folder, not by the number of files. Files that belong together by their names
/// (``FileGrouping``) are returned as one item, also if the user names each of them. Symbolic links inside a folder are
/// not followed; hidden files and folders are skipped, and so are files that are clearly not images. Files that the
/// user names are always returned: the catalog decides whether they can be imported. The folders of libraries are
/// skipped and reported: their files are in a library already, and some are renders of edits.
struct ImageFileFinder {
    /// The files and folders that are still to be visited, the next one last.
    private var pending: [SearchItem] = []
    private var roots: [SearchItem] = []
    /// The files that the user named, by their folders.
    private var named: [FilePath: [FilePath]] = [:]
    private var knownFiles: Set<FilePath> = []
    private var ready: [ImportItem] = []

    /// The maximum number of unreadable files of a folder that are reported one by one.
    private static let maxReported = 100

    private enum SearchItem {
        /// The files of a folder that the user named.
        case files(in: FilePath)
        /// - Parameter isNamed: true if the user named it
        case folder(FilePath, isNamed: Bool)
    }

    /// The number of files that were skipped: files that are clearly not images, and sidecars that no item has.
    private(set) var others = 0
    /// The folders and files that cannot be read, with the reason. A folder is listed for all or many of its files.
    private(set) var unreadable: [(path: FilePath, reason: Errno)] = []
    /// The folders of libraries that were skipped.
    private(set) var libraries: [(path: FilePath, isNamed: Bool)] = []
    /// The sidecars that the user named without a photo or video to which they could belong.
    private(set) var unmatchedSidecars: [FilePath] = []

    /// Adds a path that the user named.
    ///
    /// - Parameter bytes: the argument as the system passed it; nil if it is the text
    /// - Throws: ``CommandFailure`` if there is no such file or folder
    mutating func add(_ argument: String, bytes: [CChar]? = nil) throws {
        guard let absolute = bytes.map({ realpath($0, nil) }) ?? realpath(argument, nil) else {
            throw CommandFailure(message: "\(argument) cannot be found: \(Errno(rawValue: errno))", name: "not_read")
        }
        defer { free(absolute) }
        let path = FilePath(platformString: absolute)
        let kind: mode_t
        do throws(Errno) {
            kind = try Self.kind(path)
        } catch {
            throw CommandFailure(message: "\(argument) cannot be read: \(error)", name: "not_read")
        }
        switch kind {
        case S_IFDIR: roots.append(.folder(path, isNamed: true))
        case S_IFREG: addFile(path)
        default: throw CommandFailure(message: "\(argument) is neither a file nor a folder", name: "not_read")
        }
        rewind()
    }

    /// Adds a file to those of its folder, because they may belong together: for `FOLDER/*` a shell names each of them.
    private mutating func addFile(_ path: FilePath) {
        guard knownFiles.insert(path).inserted else { return }
        let folder = path.removingLastComponent()
        if named[folder] == nil { roots.append(.files(in: folder)) }
        named[folder, default: []].append(path)
    }

    /// Starts again with the first file and resets the counters.
    mutating func rewind() {
        pending = roots.reversed()
        ready = []
        others = 0
        unreadable = []
        libraries = []
        unmatchedSidecars = []
    }

    /// Returns the next item, or nil at the end.
    mutating func next() -> ImportItem? {
        while ready.isEmpty {
            switch pending.popLast() {
            case .files(let folder): group(named[folder] ?? [], in: folder)
            case .folder(let folder, let isNamed): search(folder, isNamed)
            case nil: return nil
            }
        }
        return ready.removeLast()
    }

    /// Counts the items in a separate search that keeps none of them.
    func count() -> Int {
        var copy = self
        copy.rewind()
        var count = 0
        while copy.next() != nil { count += 1 }
        return count
    }

    /// Groups the named files of a folder into the next items.
    private mutating func group(_ files: [FilePath], in folder: FilePath) {
        let sidecars = files.filter(Self.isSidecar)
        let others = files.filter { !Self.isSidecar($0) }
        ready = ImportItem.items(in: folder, others, sidecars: sidecars).reversed()
        let names = Set(others.flatMap { [$0.lastComponent?.string, $0.stem].compactMap { $0 } })
        for sidecar in unused(sidecars) {
            // A photo with two sidecars has the one named after its whole name.
            if let stem = sidecar.stem, names.contains(stem) {
                self.others += 1
            } else {
                unmatchedSidecars.append(sidecar)
            }
        }
    }

    /// Returns the sidecars that none of the next items has.
    private func unused(_ sidecars: [FilePath]) -> [FilePath] {
        let used = Set(ready.flatMap(\.sidecars))
        return sidecars.filter { !used.contains($0) }
    }

    private static func isSidecar(_ path: FilePath) -> Bool { path.extension?.lowercased() == "xmp" }

    private mutating func search(_ folder: FilePath, _ isNamed: Bool) {
        let names: [[UInt8]]
        do throws(Errno) {
            names = try Self.names(in: folder)
        } catch {
            unreadable.append((folder, error))
            return
        }
        guard !Self.isLibrary(names, folder) else {
            libraries.append((folder, isNamed))
            return
        }
        var subfolders: [SearchItem] = []
        var (files, sidecars): ([FilePath], [FilePath]) = ([], [])
        var (readable, failed): (Int, [(path: FilePath, reason: Errno)]) = (0, [])
        for name in names.sorted(by: { $0.lexicographicallyPrecedes($1) }) where name.first != UInt8(ascii: ".") {
            guard let component = Self.component(name) else { continue }
            let path = folder.appending(component)
            let kind: mode_t
            do throws(Errno) {
                kind = try Self.kind(path)
            } catch {
                // A file that was removed meanwhile is not reported.
                if error != .noSuchFileOrDirectory { failed.append((path, error)) }
                continue
            }
            readable += 1
            switch kind {
            case S_IFDIR: subfolders.append(.folder(path, isNamed: false))
            case S_IFREG where Self.isSidecar(path): sidecars.append(path)
            case S_IFREG where ImageFileNames.isClearlyOther(path): others += 1
            case S_IFREG: files.append(path)
            default: continue
            }
        }
        // In a folder that may be listed, but not entered, nothing can be read.
        let maxReported = readable == 0 ? 1 : Self.maxReported
        if failed.count > maxReported, let first = failed.first { failed = [(folder, first.reason)] }
        unreadable += failed
        ready = ImportItem.items(in: folder, files, sidecars: sidecars).reversed()
        others += unused(sidecars).count
        pending += subfolders.reversed()
    }

    /// Returns true if a folder is that of a library, whose database may be on a server.
    static func isLibrary(_ names: [[UInt8]], _ folder: FilePath) -> Bool {
        names.contains(Array("resources".utf8)) && (try? kind(folder.appending("resources"))) == S_IFDIR
            && ["library.sqlite", "head"].contains { name in
                names.contains(Array(name.utf8)) && (try? kind(folder.appending(name))) == S_IFREG
            }
    }

    private static func component(_ name: [UInt8]) -> FilePath.Component? {
        name.withUnsafeBufferPointer { _ in
            (name + [0]).withUnsafeBytes { bytes in
                bytes.assumingMemoryBound(to: CChar.self).baseAddress.flatMap { FilePath.Component(platformString: $0) }
            }
        }
    }

    /// Returns `S_IFDIR`, `S_IFREG` or another kind without following links.
    private static func kind(_ path: FilePath) throws(Errno) -> mode_t {
        var status = stat()
        guard path.withPlatformString({ lstat($0, &status) }) == 0 else { throw Errno(rawValue: errno) }
        return status.st_mode & S_IFMT
    }

    /// Returns the names in a folder.
    static func names(in folder: FilePath) throws(Errno) -> [[UInt8]] {
        guard let directory = folder.withPlatformString({ opendir($0) }) else { throw Errno(rawValue: errno) }
        defer { closedir(directory) }
        var names: [[UInt8]] = []
        while true {
            errno = 0
            guard let entry = readdir(directory) else {
                // `readdir` also returns nil on a read error, which must not be treated as the end of the folder.
                if errno != 0 { throw Errno(rawValue: errno) }
                return names
            }
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
            if name != [0x2E] && name != [0x2E, 0x2E] { names.append(name) }
        }
    }
}
