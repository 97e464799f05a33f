import Glibc
import SystemPackage

/// Finds the files to import by searching folders recursively, in the byte order of their names.
///
/// Memory is bounded by the largest folder, not by the number of files. Files that belong together by their names
/// (``FileGrouping``) are returned as one item. Symbolic links inside a folder are not followed; hidden files and
/// folders are skipped, and so are files that are clearly not images. Files that the user names are always returned,
/// each as an item of its own: the catalog decides whether they can be imported. The folders of libraries are skipped:
/// their files are in a library already, and some are renders of edits.
struct ImageFileFinder {
    /// The files and folders that are still to be visited, the next one last.
    private var pending: [SearchItem] = []
    private var roots: [SearchItem] = []
    private var ready: [ImportItem] = []

    /// The files of a folder that are named if they cannot be read.
    private static let mostNamed = 100

    private enum SearchItem {
        case file(FilePath)
        case folder(FilePath)
    }

    /// The number of files that were skipped because they are clearly not images.
    private(set) var others = 0
    /// The folders and files that cannot be read, with the reason. The folder stands for everything or much in it.
    private(set) var unreadable: [(path: FilePath, reason: Errno)] = []

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
        case S_IFDIR: roots.append(.folder(path))
        case S_IFREG: roots.append(.file(path))
        default: throw CommandFailure(message: "\(argument) is neither a file nor a folder", name: "not_read")
        }
        rewind()
    }

    /// Starts again with the first file and resets the counters.
    mutating func rewind() {
        pending = roots.reversed()
        ready = []
        others = 0
        unreadable = []
    }

    /// Returns the next item, or nil at the end.
    mutating func next() -> ImportItem? {
        while ready.isEmpty {
            switch pending.popLast() {
            case .file(let path): return ImportItem(path)
            case .folder(let folder): search(folder)
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

    private mutating func search(_ folder: FilePath) {
        let names: [[UInt8]]
        do throws(Errno) {
            names = try Self.names(in: folder)
        } catch {
            unreadable.append((folder, error))
            return
        }
        guard !Self.isLibrary(names, folder) else { return }
        var inside: [SearchItem] = []
        var (files, sidecars): ([FilePath], [FilePath]) = ([], [])
        var (known, hidden): (Int, [(path: FilePath, reason: Errno)]) = (0, [])
        for name in names.sorted(by: { $0.lexicographicallyPrecedes($1) }) where name.first != UInt8(ascii: ".") {
            guard let component = Self.component(name) else { continue }
            let path = folder.appending(component)
            let kind: mode_t
            do throws(Errno) {
                kind = try Self.kind(path)
            } catch {
                // A file that was removed meanwhile is none to import.
                if error != .noSuchFileOrDirectory { hidden.append((path, error)) }
                continue
            }
            known += 1
            switch kind {
            case S_IFDIR: inside.append(.folder(path))
            case S_IFREG where path.extension?.lowercased() == "xmp": sidecars.append(path)
            case S_IFREG where ImageFileNames.isClearlyOther(path): others += 1
            case S_IFREG: files.append(path)
            default: continue
            }
        }
        // In a folder that may be listed, but not entered, nothing can be read.
        let most = known == 0 ? 1 : Self.mostNamed
        if hidden.count > most, let first = hidden.first { hidden = [(folder, first.reason)] }
        unreadable += hidden
        ready = ImportItem.items(in: folder, files, sidecars: sidecars).reversed()
        let used = Set(ready.compactMap(\.sidecar))
        others += sidecars.count { !used.contains($0) }
        pending += inside.reversed()
    }

    /// Returns whether a folder is that of a library, whose database may be on a server.
    private static func isLibrary(_ names: [[UInt8]], _ folder: FilePath) -> Bool {
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

    private static func names(in folder: FilePath) throws(Errno) -> [[UInt8]] {
        guard let directory = folder.withPlatformString({ opendir($0) }) else { throw Errno(rawValue: errno) }
        defer { closedir(directory) }
        var names: [[UInt8]] = []
        while true {
            errno = 0
            guard let entry = readdir(directory) else {
                // `readdir` also returns nil on a read error, which must not look like the end of the folder.
                if errno != 0 { throw Errno(rawValue: errno) }
                return names
            }
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
            if name != [0x2E] && name != [0x2E, 0x2E] { names.append(name) }
        }
    }
}
