import Foundation
import TestSupport
import Testing

/// Rules that allow certain code in certain files only.
enum SourceRules {
    /// Returns true if the file may contain SQL.
    static func mayContainSQL(_ file: SourceTree.File) -> Bool {
        file.module == "Storage" || file.name.contains("Store") || file.name.contains("Schema")
            || file.path.contains("/Store/")
    }

    /// Returns true if the file may sleep: the named delays, and the shutdown of libzmq, which runs outside of tasks.
    static func maySleep(_ file: SourceTree.File) -> Bool {
        ["TaskDelay.swift", "MessagingContext.swift"].contains(file.name)
    }

    static let maxLines = 450
}

/// Tests of rules that the compiler does not check.
@Suite(.timeLimit(.minutes(5)))
struct SourceRuleTests {
    let tree: SourceTree

    init() throws { tree = try SourceTree.read() }

    /// Records an issue for each line of a part of the files that matches the pattern.
    private func expectNone(
        _ pattern: some RegexComponent,
        in part: (SourceText) -> String,
        of files: [SourceTree.File],
        _ message: String
    ) {
        for file in files {
            for line in SourceText.lines(of: part(file.source), holding: pattern) {
                Issue.record("\(file.path):\(line): \(message)")
            }
        }
    }

    @Test func `no TODO or FIXME is left in the source`() throws {
        let files = tree.files.filter { $0.module != "TidyTests" }
        expectNone(/\b(TODO|FIXME|XXX|HACK)\b/, in: \.comments, of: files, "a note is left in the source")
    }

    @Test func `no sentence of a comment begins with a relative clause`() throws {
        expectNone(
            /(^[\s\/*]*|\. )(What|Who|Whether|Whatever|Whoever|So many) [^?]*$/,
            in: \.comments,
            of: tree.files,
            "name the subject: \"The facts of a file\" rather than \"What a file says\""
        )
    }

    @Test func `nothing traps where an error could be thrown`() throws {
        expectNone(/\btry!/, in: \.code, of: tree.files, "try! traps")
        expectNone(/\bas!/, in: \.code, of: tree.files, "as! traps")
    }

    @Test func `only the error mapping of the catalog uses the errors of the protocol`() throws {
        let catalog = tree.files.filter { $0.path.hasPrefix("Services/Catalog/") }
        #expect(!catalog.isEmpty)
        expectNone(
            /\bErrorCode\b/,
            in: \.code,
            of: catalog.filter { !$0.name.hasPrefix("CatalogErrorMapping") },
            "an error of the protocol is created outside of CatalogErrorMapping"
        )
    }

    @Test func `each other service creates its errors in one file`() throws {
        for service in ["ChangeBroker", "Thumbnailer", "Editor"] {
            let files = tree.files.filter { $0.path.hasPrefix("Services/\(service)/") }
            #expect(!files.isEmpty)
            expectNone(
                /\bErrorCode\.\w+\.(error|rawValue)\b/,
                in: \.code,
                of: files.filter { $0.name != "RPCError+\(service).swift" },
                "an error of the protocol is created outside of RPCError+\(service).swift"
            )
        }
    }

    @Test func `nothing sleeps instead of waiting for an event`() throws {
        expectNone(
            /(^|[^.\w])(u|nano)?sleep\(|Glibc\.sleep|Thread\.sleep/,
            in: \.code,
            of: tree.productFiles,
            "it blocks the thread"
        )
        expectNone(
            /\.sleep\(|\basyncAfter\(/,
            in: \.code,
            of: tree.productFiles.filter { !SourceRules.maySleep($0) },
            "it sleeps: wait for an event, or use one of the named delays"
        )
    }

    @Test func `libraries do not print`() throws {
        let shared = tree.files.filter { $0.path.hasPrefix("Shared/") }
        expectNone(/(^|[^.\w])(debugPrint|print|dump)\(/, in: \.code, of: shared, "a library prints")
    }

    @Test func `SQL appears only in Store and Schema files`() throws {
        let others = tree.productFiles.filter { !SourceRules.mayContainSQL($0) }
        let words =
            /\b(SELECT\s+\S+.*\bFROM|INSERT\s+(OR\s+\w+\s+)?INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|CREATE\s+(TABLE|INDEX)|PRAGMA\s)/
        expectNone(words, in: \.strings, of: others, "SQL outside a Store or Schema file")
    }

    @Test func `only the store uses the library's database directly`() throws {
        let others = tree.productFiles.filter { !SourceRules.mayContainSQL($0) }
        expectNone(
            /\b(reader|store)\.database\b/,
            in: \.code,
            of: others,
            "it bypasses the store: add a method to the type in Store"
        )
    }

    @Test func `no file is longer than the limit`() throws {
        for file in tree.files {
            #expect(file.source.lineCount <= SourceRules.maxLines, "\(file.path) is too long")
        }
    }

    @Test func `every public target of the Makefile is documented`() throws {
        let text = try String(contentsOf: tree.root.appending(path: "Makefile"), encoding: .utf8)
        let phony = text.matches(of: /(?m)^\.PHONY:(.*)$/).flatMap { $0.1.split(separator: " ").map(String.init) }
        let documented = Set(text.matches(of: /(?m)^([a-z-]+):.*##/).map { String($0.1) })
        #expect(!documented.isEmpty)
        for target in phony where !target.hasPrefix("_") { #expect(documented.contains(target), "make \(target)") }
    }
}
