import Foundation

/// The source tree as files, for the Tidy tests. Files are only read; nothing is built or run.
struct SourceTree: Sendable {
    /// A Swift file, separated into code, strings and comments.
    struct File: Sendable {
        let module: String
        /// The path below the root, for messages.
        let path: String
        let source: SourceText
        let imports: Set<String>

        var name: String { String(path.split(separator: "/").last ?? "") }
    }

    let root: URL
    let manifest: Manifest
    let files: [File]

    /// Read once for all tests.
    private static let shared = Result { try SourceTree(reading: ()) }

    static func read() throws -> SourceTree { try shared.get() }

    private init(reading: Void) throws {
        root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        manifest = try Manifest(String(contentsOf: root.appending(path: "Package.swift"), encoding: .utf8))
        var files: [File] = []
        for module in manifest.modules {
            for path in try Self.swiftFiles(below: module.path, of: root) {
                let text = try String(contentsOf: root.appending(path: path), encoding: .utf8)
                let source = SourceText(text)
                files.append(File(module: module.name, path: path, source: source, imports: source.imports))
            }
        }
        self.files = files
    }

    /// The files of Services and Shared.
    var productFiles: [File] { files.filter { !$0.path.hasPrefix("Tests/") } }

    /// Returns the names directly below a folder of the root, without dotfiles.
    func names(in folder: String) throws -> [String] {
        let url = folder.isEmpty ? root : root.appending(path: folder)
        return try FileManager.default.contentsOfDirectory(atPath: url.path).filter { !$0.hasPrefix(".") }.sorted()
    }

    func exists(_ path: String) -> Bool { FileManager.default.fileExists(atPath: root.appending(path: path).path) }

    private static func swiftFiles(below folder: String, of root: URL) throws -> [String] {
        let url = root.appending(path: folder)
        guard FileManager.default.fileExists(atPath: url.path) else { return [] }
        return try FileManager.default.subpathsOfDirectory(atPath: url.path)
            .filter { $0.hasSuffix(".swift") }
            .sorted()
            .map { "\(folder)/\($0)" }
    }
}

/// The table of modules in Package.swift.
struct Manifest: Sendable {
    struct Module: Sendable {
        let layer: Int
        let name: String
        let path: String
        let dependencies: Set<String>
        let isTests: Bool
        let isC: Bool
        /// True if the module consists only of the headers of an installed library.
        let isSystemLibrary: Bool
    }

    let modules: [Module]

    init(_ text: String) {
        let source = SourceText(text).withoutComments
        let programs = Self.literals(Self.group(after: "let programs = ", in: source) ?? "")
        var modules: [Module] = []
        var rest = source[...]
        while let start = rest.range(of: "Module(") {
            rest = rest[start.upperBound...]
            guard let end = Self.closing(of: "(", ")", in: rest) else { break }
            let call = rest[..<end]
            rest = rest[end...]
            guard let module = Self.module(String(call), programs: programs) else { continue }
            modules.append(module)
        }
        self.modules = modules
    }

    func module(_ name: String) -> Module? { modules.first { $0.name == name } }

    private static func module(_ call: String, programs: [String]) -> Module? {
        let pieces = call.split(separator: ",", maxSplits: 1)
        guard let layer = pieces.first.flatMap({ Int($0.trimmingCharacters(in: .whitespacesAndNewlines)) }),
            pieces.count == 2, let name = literals(String(pieces[1])).first
        else { return nil }
        let list = call.range(of: "[").map { String(call[$0.lowerBound...]) } ?? ""
        let isTests = call.contains(".tests") || call.contains(".bench")
        let isProgram = call.contains(".program(")
        let folder =
            isProgram
            ? "Services" : isTests || call.contains(".support") || call.contains(".bench") ? "Tests" : "Shared"
        return Module(
            layer: layer,
            name: name,
            path: "\(folder)/\(name)",
            dependencies: Set(literals(list) + (list.contains("+ programs") ? programs : [])),
            isTests: isTests,
            isC: call.contains(".system(") || call.contains(".c,") || call.hasSuffix(".c"),
            isSystemLibrary: call.contains(".system(")
        )
    }

    /// Returns the text between `[` and the matching `]` after a phrase.
    private static func group(after phrase: String, in text: String) -> String? {
        guard let start = text.range(of: phrase + "[") else { return nil }
        let rest = text[start.upperBound...]
        return closing(of: "[", "]", in: rest).map { String(rest[..<$0]) }
    }

    private static func closing(of open: Character, _ close: Character, in text: Substring) -> Substring.Index? {
        var depth = 1
        for index in text.indices {
            if text[index] == open { depth += 1 }
            if text[index] == close { depth -= 1 }
            if depth == 0 { return index }
        }
        return nil
    }

    private static func literals(_ text: String) -> [String] {
        text.matches(of: /"([^"]*)"/).map { String($0.1) }
    }
}
