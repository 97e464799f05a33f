import Basics
import Glibc
import PhotoModel
import SystemPackage

/// The folder of an export. Files have the names of the originals; an existing file is never replaced.
///
/// If another file has a name, the new file is `name (2).jpg`, and so on. The same applies to a name with which an
/// import of the folder would combine files of two assets, such as a photo and the video of another photo. A file
/// that exists with the same content is not written again, so that a repeated export writes only the missing files.
/// A sidecar that an earlier export of the same asset has written, and that is unchanged since, is replaced.
struct ExportFolder {
    /// A file to be exported.
    struct File {
        /// The requested name.
        let name: String
        /// The text after the name and its number, such as `.xmp` for a sidecar.
        var suffix = ""
        /// The SHA-256 of the content.
        let digest: String
        let size: Int64
        /// The content, if it is a sidecar.
        var sidecar: [UInt8]?
    }

    /// The destination of a file.
    struct Destination {
        let path: String
        /// True if the file exists already.
        let isPresent: Bool
        /// True if an earlier sidecar exists, which is replaced.
        var replaces = false
    }

    /// File names have at most 255 bytes; this leaves space for a number and the suffix of a sidecar.
    static let maxNameBytes = 200
    /// The maximum size of a sidecar; a larger file is not one of an export.
    private static let maxSidecarBytes = 64 << 20

    let path: String
    /// The names of the files of this run, in lower case: some filesystems ignore the case.
    private var claimed: Set<String> = []
    /// For each name, in lower case, the next number to try.
    private var next: [String: Int] = [:]
    /// For each name, the numbers before that one that existing files have, with their sizes. Such a file may be that
    /// of a later asset.
    private var takenNumbers: [String: [(number: Int, size: Int64)]] = [:]
    /// The names of photos, raw files and videos in the folder, by their stems.
    private var companions: [String: [String]] = [:]

    /// Creates the folder if needed.
    init(_ path: String) throws {
        self.path = path
        if mkdir(path, 0o777) != 0 { try Self.requireFolder(path, Errno(rawValue: errno)) }
        let names = (try? ImageFileFinder.names(in: FilePath(path))) ?? []
        for name in names { insertCompanion(String(decoding: name, as: UTF8.self)) }
    }

    /// Throws unless the folder existed already.
    ///
    /// - Parameter problem: the error of creating the folder
    private static func requireFolder(_ path: String, _ problem: Errno) throws {
        guard problem == .fileExists else {
            throw CommandFailure(message: "\(path) cannot be created: \(problem)", name: "not_written")
        }
        var status = Glibc.stat()
        guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
            throw CommandFailure(message: "\(path) exists and is not a folder; name another one", name: "not_written")
        }
    }

    /// Returns the destinations of files that belong together: a photo, its video and its sidecar get the same number.
    mutating func destinations(of files: [File]) throws -> [Destination] {
        let bases = files.map { (base: Self.safe($0.name), suffix: $0.suffix) }
        let first = bases.first.map { $0.base.lowercased() + $0.suffix } ?? ""
        func names(_ number: Int) -> [String] { bases.map { Self.numbered($0.base, number) + $0.suffix } }
        for (index, other) in (takenNumbers[first] ?? []).enumerated() where other.size == files.first?.size {
            guard let destinations = try claim(names(other.number), files) else { continue }
            takenNumbers[first]?.remove(at: index)
            return destinations
        }
        while true {
            let number = next[first] ?? 1
            next[first] = number + 1
            let names = names(number)
            if let destinations = try claim(names, files) { return destinations }
            var status = stat()
            if lstat("\(path)/\(names.first ?? "")", &status) == 0 {
                takenNumbers[first, default: []].append((number, Int64(status.st_size)))
            }
        }
    }

    /// Returns the destinations with these names and reserves the names; nil if another file has one of them.
    private mutating func claim(_ names: [String], _ files: [File]) throws -> [Destination]? {
        let keys = names.map { $0.lowercased() }
        guard claimed.isDisjoint(with: keys), let destinations = try existingOrNew(names, files) else { return nil }
        // Existing files are not changed.
        let isPresent = zip(destinations, files).allSatisfy { $0.isPresent || !$1.suffix.isEmpty }
        guard isPresent || !wouldJoinOthers(names) else { return nil }
        claimed.formUnion(keys)
        for name in names { insertCompanion(name) }
        return destinations
    }

    /// The kinds of files that an import combines into one asset if they have the same stem.
    private enum Kind {
        case still, raw, video

        init?(fileExtension: String) {
            switch fileExtension {
            case _ where FileGrouping.stillExtensions.contains(fileExtension): self = .still
            case _ where FileGrouping.rawExtensions.contains(fileExtension): self = .raw
            case _ where FileGrouping.videoExtensions.contains(fileExtension): self = .video
            default: return nil
            }
        }

        func joins(_ other: Kind) -> Bool { self != other && (self == .still || other == .still) }
    }

    private mutating func insertCompanion(_ name: String) {
        let (stem, fileExtension) = FileGrouping.parts(name)
        guard Kind(fileExtension: fileExtension) != nil, companions[stem]?.contains(name) != true else { return }
        companions[stem, default: []].append(name)
    }

    /// Returns true if an import would combine one of the files with a file of another asset.
    private func wouldJoinOthers(_ names: [String]) -> Bool {
        names.contains { name in
            let (stem, fileExtension) = FileGrouping.parts(name)
            guard let kind = Kind(fileExtension: fileExtension), let others = companions[stem] else { return false }
            return others.contains { other in
                let otherKind = Kind(fileExtension: FileGrouping.parts(other).fileExtension)
                return !names.contains(other) && otherKind?.joins(kind) == true
            }
        }
    }

    /// Returns the destinations with these names, or nil if another file has one of them.
    private func existingOrNew(_ names: [String], _ files: [File]) throws -> [Destination]? {
        var destinations: [Destination] = []
        for (name, file) in zip(names, files) {
            let path = "\(path)/\(name)"
            var status = stat()
            guard lstat(path, &status) == 0 else {
                destinations.append(Destination(path: path, isPresent: false))
                continue
            }
            guard status.st_mode & S_IFMT == S_IFREG else { return nil }
            if let sidecar = file.sidecar {
                guard let existing = try? InputFile.read(path, limit: Self.maxSidecarBytes) else { return nil }
                switch XMPSidecar.relation(of: existing, to: sidecar) {
                case .same: destinations.append(Destination(path: path, isPresent: true))
                case .earlier: destinations.append(Destination(path: path, isPresent: false, replaces: true))
                case .other: return nil
                }
                continue
            }
            guard status.st_size == file.size, try digest(of: path) == file.digest else { return nil }
            destinations.append(Destination(path: path, isPresent: true))
        }
        return destinations
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

    /// Returns a name without the characters that a file name cannot have, and cut at its start if it is too long.
    static func safe(_ given: String) -> String {
        var name = ""
        for scalar in given.unicodeScalars {
            let isUnsafe =
                scalar == "/" || scalar == "\\" || scalar == "\0" || scalar.properties.generalCategory == .control
            name.unicodeScalars.append(isUnsafe ? "_" : scalar)
        }
        if name.hasPrefix(".") { name = "_" + name.dropFirst() }
        while name.utf8.count > maxNameBytes { name.removeFirst() }
        return name.isEmpty ? "file" : name
    }

    /// Returns `name (2).jpg` for `name.jpg` and 2.
    private static func numbered(_ name: String, _ number: Int) -> String {
        guard number > 1 else { return name }
        guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return "\(name) (\(number))" }
        return "\(name[..<dot]) (\(number))\(name[dot...])"
    }
}
