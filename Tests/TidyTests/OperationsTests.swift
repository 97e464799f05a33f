import Foundation
import TestSupport
import Testing

/// Tests that the tables of the page about operations agree with the source.
@Suite(.timeLimit(.minutes(5)))
struct OperationsTests {
    private let tree: SourceTree
    private let page: String
    /// The texts of all pages.
    private let pages: String

    init() throws {
        let tree = try SourceTree.read()
        self.tree = tree
        page = try Documentation.text("Shared/docs/operations.md", of: tree)
        pages = try Documentation.pages(of: tree).map { try Documentation.text($0, of: tree) }.joined()
    }

    /// Returns the rows of a table below a heading, as cells, without the table's header.
    private func rows(below heading: String) -> [[String]] {
        guard let start = page.range(of: "\n\(heading)\n") else { return [] }
        let section = page[start.upperBound...].components(separatedBy: "\n#")[0]
        let lines = section.split(separator: "\n").filter { $0.hasPrefix("|") }
        return lines.dropFirst(2).map { line in
            line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
        }
    }

    @Test func `the table of errors has every error with its meaning and remedy, and no other`() throws {
        let file = try #require(tree.files.first { $0.path == "Shared/Contracts/ErrorCode.swift" })
        let text = try String(contentsOf: tree.root.appending(path: file.path), encoding: .utf8)
        let names = text.matches(of: /case \w+ = "(\w+)"/).map { String($0.1) }
        let rows = rows(below: "## Errors")
        #expect(names.count > 30)
        #expect(Set(rows.compactMap(\.first)) == Set(names.map { "`\($0)`" }))
        #expect(rows.count == names.count)
        for row in rows { #expect(row.count == 3 && row.allSatisfy { $0.count > 3 }, "\(row)") }
    }

    @Test func `every name that only the command line prints is in its table`() throws {
        let errors = Set(rows(below: "## Errors").compactMap(\.first))
        let names = Set(rows(below: "### Names of the command line").compactMap(\.first))
        #expect(names.count > 15 && names.isDisjoint(with: errors))
        var printed: Set<String> = []
        for file in tree.files where file.path.hasPrefix("Services/CommandLine/") {
            let text = try String(contentsOf: tree.root.appending(path: file.path), encoding: .utf8)
            printed.formUnion(text.matches(of: /\bname: "([a-z]+(?:_[a-z]+)+)"/).map { "`\($0.1)`" })
        }
        #expect(printed.count > 10)
        // The other names with this label are those of metrics.
        let missing = printed.filter { !$0.hasPrefix("`safelight_") }.subtracting(errors).subtracting(names)
        #expect(missing.isEmpty, "operations.md does not name \(missing.sorted())")
        let source = tree.productFiles.map(\.source.strings).joined(separator: "\n")
        for name in names { #expect(source.contains(name.filter { $0 != "`" }), "no source prints \(name)") }
    }

    @Test func `every variable for users is documented, and every variable in the limits is read`() throws {
        let pattern = /SAFELIGHT_[A-Z_]+[A-Z]/
        func variables(_ text: String) -> Set<String> { Set(text.matches(of: pattern).map { String($0.output) }) }
        let source = tree.productFiles.reduce(into: Set<String>()) { found, file in
            found.formUnion(variables(file.source.strings))
        }
        // Variables between services and their workers, and those that `watch` passes to its commands.
        let internalVariables: Set<String> = [
            "SAFELIGHT_WORKER_LIMITS", "SAFELIGHT_SUPERVISED", "SAFELIGHT_SEQUENCE", "SAFELIGHT_TOKEN",
            "SAFELIGHT_TOPICS", "SAFELIGHT_DATE", "SAFELIGHT_ORIGIN", "SAFELIGHT_EXPIRED",
        ]
        let endpoints: Set<String> = [
            "SAFELIGHT_CATALOG", "SAFELIGHT_THUMBNAILER", "SAFELIGHT_EDITOR", "SAFELIGHT_BROKER", "SAFELIGHT_FEED",
            "SAFELIGHT_EDITS",
        ]
        let missing = source.subtracting(internalVariables).subtracting(endpoints).subtracting(variables(pages))
        #expect(missing.isEmpty, "the documentation does not name \(missing.sorted())")
        let limits = rows(below: "## Limits").reduce(into: Set<String>()) { $0.formUnion(variables($1.joined())) }
        #expect(limits.count > 8)
        #expect(limits.isSubset(of: source), "no program reads \(limits.subtracting(source).sorted())")
    }

    @Test func `a service in a container exits on its own before the kernel kills it`() throws {
        let compose = try String(contentsOf: tree.root.appending(path: "compose/compose.yaml"), encoding: .utf8)
        for name in ["catalog", "thumbnailer", "editor", "change-broker"] {
            let start = try #require(compose.range(of: "\n  \(name):\n"))
            let service = compose[start.upperBound...].components(separatedBy: "\n\n")[0]
            let own = service.firstMatch(of: /SAFELIGHT_SERVICE_MEMORY_MIB: ([0-9]+)/).flatMap { Int($0.1) }
            let container = service.firstMatch(of: /mem_limit: ([0-9]+)g/).flatMap { Int($0.1) }.map { $0 * 1024 }
            #expect(try #require(own) <= #require(container) * 3 / 4, "\(name)")
        }
    }

    @Test func `every flag in the limits table is a flag of a service`() {
        let source = tree.productFiles.map(\.source.code).joined(separator: "\n")
        let strings = tree.productFiles.map(\.source.strings).joined(separator: "\n")
        for row in rows(below: "## Limits") {
            for match in row.joined(separator: " ").matches(of: /`--([a-z-]+)`/) {
                let words = match.1.split(separator: "-").map(String.init)
                let name = (words.first ?? "") + words.dropFirst().map(\.capitalized).joined()
                #expect(source.contains("var \(name)") || strings.contains(String(match.1)), "--\(match.1)")
            }
        }
    }
}
