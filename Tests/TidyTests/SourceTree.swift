import Foundation
import TestSupport

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

    /// The tree, which is read once for all tests.
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
        let lists = Self.namedLists(in: source)
        var modules: [Module] = []
        var rest = source[...]
        while let start = rest.range(of: "Module(") {
            rest = rest[start.upperBound...]
            guard let end = Self.closing(of: "(", ")", in: rest) else { break }
            let call = rest[..<end]
            rest = rest[end...]
            guard let module = Self.module(String(call), lists: lists) else { continue }
            modules.append(module)
        }
        self.modules = modules
    }

    func module(_ name: String) -> Module? { modules.first { $0.name == name } }

    private static func module(_ call: String, lists: [String: [String]]) -> Module? {
        guard let layer = call.firstMatch(of: /layer: (\d+)/).flatMap({ Int($0.1) }),
            let name = call.firstMatch(of: /name: "(\w+)"/).map({ String($0.1) })
        else { return nil }
        let dependencies = call.range(of: "dependencies: ").map { String(call[$0.upperBound...]) } ?? ""
        let sample = call.firstMatch(of: /\.sample\(folder: "([^"]+)"\)/).map { String($0.1) }
        let isTests = call.contains(".tests") || call.contains(".bench") || sample != nil
        let isProgram = call.contains(".program(")
        let folder = isProgram ? "Services" : isTests || call.contains(".support") ? "Tests" : "Shared"
        return Module(
            layer: layer,
            name: name,
            path: sample.map { $0 + "/Sources" } ?? "\(folder)/\(name)",
            dependencies: Set(names(in: dependencies, lists)),
            isTests: isTests,
            isC: call.contains(".system(") || call.contains(/kind: \.c\b/),
            isSystemLibrary: call.contains(".system(")
        )
    }

    /// Returns the lists of names that the manifest declares, by the names of their constants.
    private static func namedLists(in text: String) -> [String: [String]] {
        var lists: [String: [String]] = [:]
        for match in text.matches(of: /let (\w+) = ((?:\w+ \+ )?\["[^\]]*\])/) {
            lists[String(match.1)] = names(in: String(match.2), lists)
        }
        return lists
    }

    /// Returns the names in an expression of literals and named lists.
    private static func names(in expression: String, _ lists: [String: [String]]) -> [String] {
        literals(expression)
            + expression.matches(of: /(?:^|[^"\w])([a-z]\w*)/).flatMap { lists[String($0.1)] ?? [] }
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
