import Basics
import Glibc
import PhotoModel
import SystemPackage

/// The folder of an export. Files have the names of the originals; a file that is there already is never replaced.
///
/// A name that another file has becomes `name (2).jpg`, and so on. So does a name with which an import of the folder
/// would take files of two assets for one, as those of a photo and of a video that is not its own. A file of the same
/// content is found again, so that a repeated export writes what is missing. A sidecar that an earlier export of the
/// same asset has written, and that nobody has changed since, is replaced.
struct ExportFolder {
    /// A file to be exported.
    struct File {
        /// The wanted name.
        let name: String
        /// The ending that follows the name and its number, such as that of a sidecar.
        var suffix = ""
        /// The SHA-256 of the content.
        let digest: String
        let size: Int64
        /// The content, if it is a sidecar.
        var sidecar: [UInt8]?
    }

    /// Where a file is exported to.
    struct Place {
        let path: String
        /// True if the file is there already.
        let isPresent: Bool
        /// True if an earlier sidecar is there, which is replaced.
        var replaces = false
    }

    /// File names have at most 255 bytes; this leaves space for a number and the ending of a sidecar.
    static let longestName = 200
    /// A larger file is no sidecar of an export.
    private static let longestSidecar = 64 << 20

    let path: String
    /// The names of the files of this run, in lower case: some disks ignore the case.
    private var claimed: Set<String> = []
    /// For each name, in lower case, the next number to look at.
    private var next: [String: Int] = [:]
    /// The numbers before that have another file, which may be that of a later asset, with its size.
    private var others: [String: [(number: Int, size: Int64)]] = [:]
    /// The names of photos, raw files and videos in the folder, by their stems.
    private var companions: [String: [String]] = [:]

    /// Creates the folder if needed.
    init(_ path: String) throws {
        self.path = path
        if mkdir(path, 0o777) != 0 { try Self.requireFolder(path, Errno(rawValue: errno)) }
        let names = (try? ImageFileFinder.names(in: FilePath(path))) ?? []
        for name in names { insertCompanion(String(decoding: name, as: UTF8.self)) }
    }

    /// - Parameter problem: the error of creating the folder
    private static func requireFolder(_ path: String, _ problem: Errno) throws {
        guard problem == .fileExists else {
            throw CommandFailure(message: "\(path) cannot be created: \(problem)", name: "not_written")
        }
        var status = Glibc.stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
            throw CommandFailure(message: "\(path) is there and is not a folder; name another one", name: "not_written")
        }
    }

    /// Returns the places of files that belong together: a photo, its video and its sidecar get the same number.
    mutating func places(of files: [File]) throws -> [Place] {
        let bases = files.map { (base: Self.safe($0.name), suffix: $0.suffix) }
        let first = bases.first.map { $0.base.lowercased() + $0.suffix } ?? ""
        func names(_ number: Int) -> [String] { bases.map { Self.numbered($0.base, number) + $0.suffix } }
        for (index, other) in (others[first] ?? []).enumerated() where other.size == files.first?.size {
            guard let places = try claim(names(other.number), files) else { continue }
            others[first]?.remove(at: index)
            return places
        }
        while true {
            let number = next[first] ?? 1
            next[first] = number + 1
            let names = names(number)
            if let places = try claim(names, files) { return places }
            var status = stat()
            if lstat("\(path)/\(names.first ?? "")", &status) == 0 {
                others[first, default: []].append((number, Int64(status.st_size)))
            }
        }
    }

    /// Returns the places of the names and keeps them for these files; nil if one of them is that of another file.
    private mutating func claim(_ names: [String], _ files: [File]) throws -> [Place]? {
        let keys = names.map { $0.lowercased() }
        guard claimed.isDisjoint(with: keys), let places = try present(names, files) else { return nil }
        // Files that are there already stay as they are.
        let isPresent = zip(places, files).allSatisfy { $0.isPresent || !$1.suffix.isEmpty }
        guard isPresent || !joinsOthers(names) else { return nil }
        claimed.formUnion(keys)
        for name in names { insertCompanion(name) }
        return places
    }

    /// The kinds of files that an import takes for one asset if they have the same stem.
    private enum Kind {
        case still, raw, video

        init?(_ ending: String) {
            switch ending {
            case _ where FileGrouping.stills.contains(ending): self = .still
            case _ where FileGrouping.raws.contains(ending): self = .raw
            case _ where FileGrouping.videoExtensions.contains(ending): self = .video
            default: return nil
            }
        }

        func joins(_ other: Kind) -> Bool { self != other && (self == .still || other == .still) }
    }

    private mutating func insertCompanion(_ name: String) {
        let (stem, ending) = FileGrouping.parts(name)
        guard Kind(ending) != nil, companions[stem]?.contains(name) != true else { return }
        companions[stem, default: []].append(name)
    }

    /// True if an import would take one of the names and a file of another asset for one asset.
    private func joinsOthers(_ names: [String]) -> Bool {
        names.contains { name in
            let (stem, ending) = FileGrouping.parts(name)
            guard let kind = Kind(ending), let others = companions[stem] else { return false }
            return others.contains { other in
                !names.contains(other) && Kind(FileGrouping.parts(other).ending)?.joins(kind) == true
            }
        }
    }

    /// Returns the places of the names, or nil if one of them is that of another file.
    private func present(_ names: [String], _ files: [File]) throws -> [Place]? {
        var places: [Place] = []
        for (name, file) in zip(names, files) {
            let path = "\(path)/\(name)"
            var status = stat()
            guard lstat(path, &status) == 0 else {
                places.append(Place(path: path, isPresent: false))
                continue
            }
            guard status.st_mode & S_IFMT == S_IFREG else { return nil }
            if let sidecar = file.sidecar {
                guard let known = try? InputFile.read(path, limit: Self.longestSidecar) else { return nil }
                switch XMPSidecar.relation(of: known, to: sidecar) {
                case .same: places.append(Place(path: path, isPresent: true))
                case .earlier: places.append(Place(path: path, isPresent: false, replaces: true))
                case .other: return nil
                }
                continue
            }
            guard status.st_size == file.size, try digest(of: path) == file.digest else { return nil }
            places.append(Place(path: path, isPresent: true))
        }
        return places
    }

    private func digest(of path: String) throws -> String {
        do {
            let file = try FileDescriptor.open(path, .readOnly)
            return try file.closeAfter {
                var hash = SHA256()
                var buffer = [UInt8](repeating: 0, count: 1 << 20)
                while true {
                    let count = try buffer.withUnsafeMutableBytes { try file.read(into: $0) }
                    guard count > 0 else { return hash.finalize().hexadecimal }
                    hash.update(data: buffer[..<count])
                }
            }
        } catch {
            throw CommandFailure(message: "\(path) cannot be read: \(error)", name: "not_written")
        }
    }

    /// Returns a name without what a file name cannot have, and not too long; the ending is kept.
    static func safe(_ given: String) -> String {
        var name = ""
        for scalar in given.unicodeScalars {
            let isUnsafe =
                scalar == "/" || scalar == "\\" || scalar == "\0" || scalar.properties.generalCategory == .control
            name.unicodeScalars.append(isUnsafe ? "_" : scalar)
        }
        if name.hasPrefix(".") { name = "_" + name.dropFirst() }
        while name.utf8.count > longestName { name.removeFirst() }
        return name.isEmpty ? "file" : name
    }

    /// Returns `name (2).jpg` for `name.jpg` and 2.
    private static func numbered(_ name: String, _ number: Int) -> String {
        guard number > 1 else { return name }
        guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return "\(name) (\(number))" }
        return "\(name[..<dot]) (\(number))\(name[dot...])"
    }
}
