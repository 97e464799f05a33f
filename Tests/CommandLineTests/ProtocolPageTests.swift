import Contracts
import Foundation
import Hosting
import JSONValue
import TestSupport
import Testing

@testable import CommandLine

/// The committed reference of the protocol agrees with the services' tables.
@Suite(.timeLimit(.minutes(5)))
struct ProtocolPageTests {
    private func text(_ path: String) throws -> String {
        try String(contentsOfFile: TestPaths.package + "/Shared/docs/" + path, encoding: .utf8)
    }

    private func page() throws -> String {
        ProtocolPage.markdown(examples: try JSON(parsing: text("protocol-examples.json")))
    }

    @Test func `the committed protocol page is current`() throws {
        let (page, committed) = (try page(), try text("protocol.md"))
        let lines = page.split(separator: "\n", omittingEmptySubsequences: false)
        let committedLines = committed.split(separator: "\n", omittingEmptySubsequences: false)
        let difference = zip(lines, committedLines).first { $0 != $1 }
        let text = difference.map { "\"\($0.1)\" should be \"\($0.0)\"" } ?? "their lengths differ"
        #expect(page == committed, "run `make docs` and commit Shared/docs/protocol.md: \(text)")
    }

    @Test func `the page has a section for every method and links only to its own types`() throws {
        let page = try page()
        for service in ServiceName.allCases {
            for method in service.methods { #expect(page.contains("\n### `\(method.name)`\n"), "\(method.name)") }
        }
        let anchors = Set(
            page.matches(of: /\n### Type `([^`]+)`\n/).map { match -> String in
                let name = String(match.1).lowercased()
                return "type-"
                    + name.filter { $0.isLetter || $0.isNumber || $0 == "-" || $0 == " " }
                    .replacing(" ", with: "-")
            }
        )
        let links = Set(page.matches(of: /\]\(#([^)]+)\)/).map { String($0.1) })
        #expect(links.count > 50)
        #expect(links.isSubset(of: anchors), "\(links.subtracting(anchors).sorted())")
    }

    @Test func `at least the main methods have an executed example`() throws {
        let page = try page()
        let main = [
            "changes.perform", "changes.details", "fetch.assets", "fetch.counts", "resource.read", "image.request",
            "image.data", "edits.apply", "edits.history", "editing.begin", "feed.since", "feed.head", "fetch.observe",
            "fetch.details",
        ]
        for method in main {
            let section = page.components(separatedBy: "\n### `\(method)`\n").last?.components(separatedBy: "\n### ")[0]
            #expect(section?.contains("```json") == true, "\(method)")
        }
    }
}
