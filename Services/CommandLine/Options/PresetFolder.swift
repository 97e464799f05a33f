import Glibc
import Hosting
import JSONValue
import PhotoModel
import SystemPackage

/// A named list of adjustments.
struct Preset: Equatable {
    var name: String
    var list: AdjustmentList

    /// The preset as an element of a bundle that `safelight preset export` writes.
    var json: JSON { ["name": .string(name), "adjustments": list.json] }
}

/// The folder with the user's presets: one file for each, with an adjustment list in the editor's format.
///
/// A file contains nothing else, so that any other program can create and copy it.
struct PresetFolder {
    let path: String

    static let suffix = ".json"
    static let maxNameBytes = 64
    /// The maximum number of presets in a folder or a bundle.
    static let limit = 10_000

    /// Determines the folder: the flag, `SAFELIGHT_PRESETS`, `$XDG_CONFIG_HOME/safelight/presets`, or
    /// `~/.config/safelight/presets`, in this order.
    init(flag: String?, environment: (String) -> String? = { Environment[$0] }) throws {
        if let given = flag ?? environment("SAFELIGHT_PRESETS") {
            path = given
        } else if let config = environment("XDG_CONFIG_HOME") {
            path = config + "/safelight/presets"
        } else if let home = environment("HOME") {
            path = home + "/.config/safelight/presets"
        } else {
            throw CommandFailure.usage("HOME is not set; name the preset folder with --presets")
        }
    }

    /// Checks the name of a preset, which is also the name of its file.
    static func check(_ name: String) throws {
        let isPlain = name.unicodeScalars.allSatisfy {
            $0.properties.isAlphabetic || $0.properties.numericType != nil || " -_.+".unicodeScalars.contains($0)
        }
        guard isPlain, (1...maxNameBytes).contains(name.utf8.count), name.first != ".", name.first != "-" else {
            throw CommandFailure.usage(
                "\"\(name.printable)\" is not a preset name: use 1 to \(maxNameBytes) bytes of letters, digits, spaces and -_.+"
            )
        }
    }

    /// Returns the names of all presets, sorted.
    func names() throws -> [String] {
        guard let folder = opendir(path) else {
            guard errno == ENOENT else { throw systemError("not_read") }
            return []
        }
        defer { closedir(folder) }
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = readdir(folder) else {
                // `readdir` also returns nil on a read error, which must not be treated as the end of the folder.
                guard errno == 0 else { throw systemError("not_read") }
                return names.sorted()
            }
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            guard name.hasSuffix(Self.suffix), name.first != "." else { continue }
            names.append(String(name.dropLast(Self.suffix.count)))
            guard names.count <= Self.limit else {
                throw CommandFailure(message: "\(path) has more than \(Self.limit) presets", name: "limit_exceeded")
            }
        }
    }

    func read(_ name: String) throws -> Preset {
        try require(name)
        return Preset(name: name, list: try AdjustmentOptions.read(file(of: name)))
    }

    /// - Throws: ``CommandFailure`` `identifier_not_found` if there is no preset of this name
    func require(_ name: String) throws {
        try Self.check(name)
        guard access(file(of: name), F_OK) == 0 else {
            let existing = try names()
            throw CommandFailure(
                message: "there is no preset \"\(name.printable)\" in \(path.printable)"
                    + (existing.isEmpty ? "" : "; the presets are: \(existing.joined(separator: ", ").printable)"),
                name: "identifier_not_found"
            )
        }
    }

    /// Writes a preset.
    ///
    /// - Throws: as ``check(_:replacing:)``
    func write(_ preset: Preset, replacing: Bool) throws {
        try check(preset, replacing: replacing)
        try createFolder()
        try OutputFile.write(Array((preset.list.json.prettyText + "\n").utf8), to: file(of: preset.name))
    }

    /// Checks whether a preset can be written.
    ///
    /// - Throws: ``CommandFailure`` `conflict` if the name exists and `replacing` is false
    func check(_ preset: Preset, replacing: Bool) throws {
        try Self.check(preset.name)
        guard replacing || access(file(of: preset.name), F_OK) != 0 else {
            throw CommandFailure(
                message: "there is already a preset \"\(preset.name.printable)\"; use --replace to overwrite it",
                name: "conflict"
            )
        }
    }

    func remove(_ name: String) throws {
        _ = try read(name)
        guard unlink(file(of: name)) == 0 else { throw systemError("not_written") }
    }

    /// Reads the presets of a file: one list, named after the file, or a bundle.
    static func presets(inFile file: String) throws -> [Preset] {
        let bytes = try InputFile.read(file, limit: 64 << 20)
        let json: JSON
        do throws(JSONError) { json = try JSON(parsing: bytes) } catch {
            throw CommandFailure.usage("\(file.printable) is not JSON: \(error)")
        }
        guard let bundle = json["presets"]?.arrayValue else {
            let last = file.split(separator: "/").last.map(String.init) ?? file
            let name = last.hasSuffix(suffix) ? String(last.dropLast(suffix.count)) : last
            return [Preset(name: name, list: try AdjustmentList(json: json))]
        }
        guard bundle.count <= limit else {
            throw CommandFailure(message: "\(file.printable) has more than \(limit) presets", name: "limit_exceeded")
        }
        return try bundle.map { element in
            guard let name = element["name"]?.stringValue, let list = element["adjustments"] else {
                throw CommandFailure.usage("\(file.printable): a preset must be {\"name\": …, \"adjustments\": {…}}")
            }
            return Preset(name: name, list: try AdjustmentList(json: list))
        }
    }

    private func file(of name: String) -> String { path + "/" + name + Self.suffix }

    private func createFolder() throws {
        var parent = ""
        for part in path.split(separator: "/", omittingEmptySubsequences: false) {
            parent += parent.isEmpty && part.isEmpty ? "/" : parent.isEmpty || parent == "/" ? String(part) : "/" + part
            if mkdir(parent, 0o755) != 0, errno != EEXIST { throw systemError("not_written") }
        }
    }

    private func systemError(_ name: String) -> CommandFailure {
        CommandFailure(message: "\(path.printable): \(Errno(rawValue: errno))", name: name)
    }
}
