import Basics
import Glibc
import SystemPackage

/// The folder of an export. Files have the names of the originals; a file that is there already is never replaced.
///
/// A name that another file has becomes `name (2).jpg`, and so on. A file of the same content is found again, so that a
/// repeated export writes what is missing.
struct ExportFolder {
    /// A file to be exported.
    struct File {
        /// The wanted name.
        let name: String
        /// The SHA-256 of the content.
        let digest: String
        let size: Int64
    }

    /// Where a file is exported to.
    struct Place {
        let path: String
        /// True if the file is there already.
        let isPresent: Bool
    }

    /// File names have at most 255 bytes; this leaves room for a number and the ending of a sidecar.
    static let longestName = 200

    let path: String
    /// The names of this run and the number of the next file of that name, in lower case: some disks ignore the case.
    private var used: [String: Int] = [:]

    /// Creates the folder if needed.
    init(_ path: String) throws {
        self.path = path
        if mkdir(path, 0o777) != 0, errno != EEXIST {
            throw CommandFailure(
                message: "\(path) cannot be created: \(Errno(rawValue: errno))",
                name: "not_written"
            )
        }
    }

    /// Returns the places of files that belong together: a photo and its film get the same number.
    mutating func places(of files: [File]) throws -> [Place] {
        let names = files.map { Self.safe($0.name) }
        let first = names.first?.lowercased() ?? ""
        var number = used[first] ?? 1
        while true {
            let numbered = names.map { Self.numbered($0, number) }
            number += 1
            guard number == 2 || !numbered.contains(where: { used[$0.lowercased()] != nil }) else { continue }
            guard let places = try present(numbered, files) else { continue }
            for name in numbered { used[name.lowercased(), default: 2] += 0 }
            used[first] = number
            return places
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
            guard status.st_mode & S_IFMT == S_IFREG, status.st_size == file.size, try digest(of: path) == file.digest
            else { return nil }
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
