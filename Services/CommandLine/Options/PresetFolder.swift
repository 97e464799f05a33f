import Glibc
import Hosting
import JSONValue
import PhotoModel
import SystemPackage

/// A named list of adjustments.
struct Preset: Equatable {
    var name: String
    var list: AdjustmentList

    /// In a bundle of several, as `safelight preset export` writes it.
    var json: JSON { ["name": .string(name), "adjustments": list.json] }
}

/// The presets of whoever calls: a file for each, which holds its list as the editor's own format has it.
///
/// Nothing else is in such a file, so that it can be made, copied and kept by any other program.
struct PresetFolder {
    let path: String

    static let ending = ".json"
    static let maxNameBytes = 64
    /// The most presets of a folder or a bundle.
    static let limit = 10_000

    /// The folder by flag, then `SAFELIGHT_PRESETS`, then `$XDG_CONFIG_HOME/safelight/presets`, else
    /// `~/.config/safelight/presets`.
    init(flag: String?, environment: (String) -> String? = { Environment[$0] }) throws {
        if let given = flag ?? environment("SAFELIGHT_PRESETS") {
            path = given
        } else if let config = environment("XDG_CONFIG_HOME") {
            path = config + "/safelight/presets"
        } else if let home = environment("HOME") {
            path = home + "/.config/safelight/presets"
        } else {
            throw CommandFailure.usage("there is no home folder; name the folder of presets with --presets")
        }
    }

    /// Checks a name: it is that of a file, too.
    static func check(_ name: String) throws {
        let isPlain = name.unicodeScalars.allSatisfy {
            $0.properties.isAlphabetic || $0.properties.numericType != nil || " -_.+".unicodeScalars.contains($0)
        }
        guard isPlain, (1...maxNameBytes).contains(name.utf8.count), name.first != ".", name.first != "-" else {
            throw CommandFailure.usage(
                "\"\(name.printable)\" is no name of a preset: 1 to \(maxNameBytes) bytes of letters, digits, spaces and -_.+"
            )
        }
    }

    /// All, by name.
    func names() throws -> [String] {
        guard let folder = opendir(path) else {
            guard errno == ENOENT else { throw unreadable() }
            return []
        }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            guard name.hasSuffix(Self.ending), name.first != "." else { continue }
            names.append(String(name.dropLast(Self.ending.count)))
            guard names.count <= Self.limit else {
                throw CommandFailure(message: "\(path) holds more than \(Self.limit) presets", name: "limit_exceeded")
            }
        }
        return names.sorted()
    }

    func read(_ name: String) throws -> Preset {
        try Self.check(name)
        let file = path + "/" + name + Self.ending
        guard access(file, F_OK) == 0 else {
            let known = try names()
            throw CommandFailure(
                message: "there is no preset \"\(name.printable)\" in \(path.printable)"
                    + (known.isEmpty ? "" : "; there are: \(known.joined(separator: ", ").printable)"),
                name: "identifier_not_found"
            )
        }
        return Preset(name: name, list: try AdjustmentOptions.read(file))
    }

    /// Writes one, in place of another of its name where that may be.
    func write(_ preset: Preset, replacing: Bool) throws {
        try Self.check(preset.name)
        let file = path + "/" + preset.name + Self.ending
        guard replacing || access(file, F_OK) != 0 else {
            throw CommandFailure(
                message: "there is a preset \"\(preset.name.printable)\" already; --replace takes its place",
                name: "conflict"
            )
        }
        try make()
        try OutputFile.write(Array((preset.list.json.prettyText + "\n").utf8), to: file)
    }

    func remove(_ name: String) throws {
        _ = try read(name)
        guard unlink(path + "/" + name + Self.ending) == 0 else { throw unreadable() }
    }

    /// The presets of a file: a list, named after the file, or a bundle of several.
    static func presets(inFile file: String) throws -> [Preset] {
        let bytes = try InputFile.read(file, limit: 64 << 20)
        let json: JSON
        do throws(JSONError) { json = try JSON(parsing: bytes) } catch {
            throw CommandFailure.usage("\(file.printable) is not JSON: \(error)")
        }
        guard let bundle = json["presets"]?.arrayValue else {
            let last = file.split(separator: "/").last.map(String.init) ?? file
            let name = last.hasSuffix(ending) ? String(last.dropLast(ending.count)) : last
            return [Preset(name: name, list: try AdjustmentList(json: json))]
        }
        guard bundle.count <= limit else {
            throw CommandFailure(message: "\(file.printable) holds more than \(limit) presets", name: "limit_exceeded")
        }
        return try bundle.map { element in
            guard let name = element["name"]?.stringValue, let list = element["adjustments"] else {
                throw CommandFailure.usage("\(file.printable): a preset is {\"name\": …, \"adjustments\": {…}}")
            }
            return Preset(name: name, list: try AdjustmentList(json: list))
        }
    }

    private func make() throws {
        var made = ""
        for part in path.split(separator: "/", omittingEmptySubsequences: false) {
            made += made.isEmpty && part.isEmpty ? "/" : made.isEmpty || made == "/" ? String(part) : "/" + part
            if mkdir(made, 0o755) != 0, errno != EEXIST { throw unreadable() }
        }
    }

    private func unreadable() -> CommandFailure {
        CommandFailure(message: "\(path.printable): \(Errno(rawValue: errno))", name: "not_written")
    }
}
