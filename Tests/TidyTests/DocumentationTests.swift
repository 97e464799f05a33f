import Foundation
import TestSupport
import Testing

/// README.md and the pages in Shared/docs.
enum Documentation {
    /// Returns the paths of all pages below the root.
    static func pages(of tree: SourceTree) throws -> [String] {
        ["README.md"] + (try tree.names(in: "Shared/docs").filter { $0.hasSuffix(".md") }.map { "Shared/docs/\($0)" })
    }

    static func text(_ page: String, of tree: SourceTree) throws -> String {
        try String(contentsOf: tree.root.appending(path: page), encoding: .utf8)
    }

    /// Returns the anchors of a page's headings, in the form of GitHub.
    static func anchors(in text: String) -> Set<String> {
        var anchors: Set<String> = []
        var isCode = false
        for line in text.split(separator: "\n") {
            if line.hasPrefix("```") { isCode.toggle() }
            guard !isCode, line.hasPrefix("#") else { continue }
            let title = line.drop { $0 == "#" }.trimmingCharacters(in: .whitespaces).lowercased()
            let anchor = title.filter { $0.isLetter || $0.isNumber || $0 == "-" || $0 == "_" || $0 == " " }
            anchors.insert(anchor.replacing(" ", with: "-"))
        }
        return anchors
    }
}

/// Tests that the files that the pages name exist.
@Suite(.timeLimit(.minutes(5)))
struct DocumentationTests {
    let tree: SourceTree
    let pages: [String]

    init() throws {
        tree = try SourceTree.read()
        pages = try Documentation.pages(of: tree)
    }

    @Test func `README has at most 800 words`() throws {
        let words = try Documentation.text("README.md", of: tree).split { $0.isWhitespace }.count
        #expect(words <= 800, "README.md has \(words) words")
    }

    @Test func `every relative link refers to a file and a heading that exist`() throws {
        var count = 0
        var anchors: [String: Set<String>] = [:]
        for page in pages {
            let folder = page.split(separator: "/").dropLast().joined(separator: "/")
            for match in try Documentation.text(page, of: tree).matches(of: /\]\(([^)\s]+)\)/) {
                guard !match.1.hasPrefix("http") else { continue }
                count += 1
                let parts = match.1.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
                let target = parts[0].isEmpty ? page : folder.isEmpty ? String(parts[0]) : "\(folder)/\(parts[0])"
                guard tree.exists(target) else {
                    Issue.record("\(page) links to \(match.1), which does not exist")
                    continue
                }
                guard parts.count == 2 else { continue }
                let headings = try anchors[target] ?? Documentation.anchors(in: Documentation.text(target, of: tree))
                anchors[target] = headings
                #expect(headings.contains(String(parts[1])), "\(page) links to \(match.1): there is no such heading")
            }
        }
        #expect(count > 100)
    }

    @Test func `every file that a page names exists`() throws {
        let path = /(?:Services|Shared|Tests|compose)\/[\w+.\/-]+\.(?:swift|py|sh|yaml|json|md)\b/
        var count = 0
        for page in pages {
            for match in try Documentation.text(page, of: tree).matches(of: path) {
                count += 1
                #expect(tree.exists(String(match.output)), "\(page) names \(match.output)")
            }
        }
        #expect(count > 40)
    }

    /// The lists are "`Folder`: `Name`, `Name`" in text and "| `Folder` | `Name`, `Name` |" in tables.
    @Test func `every file exists that a page names below its folder`() throws {
        let list = /`((?:Services|Shared)\/[\w\/]+)`(?::| \|)((?:,?\s+`[\w+.\/]+`)+)/
        var count = 0
        for page in pages {
            for match in try Documentation.text(page, of: tree).matches(of: list) {
                for name in match.2.matches(of: /[\w+.\/]+/) {
                    count += 1
                    let path = "\(match.1)/\(name.output)" + (name.output.contains(".") ? "" : ".swift")
                    #expect(tree.exists(path), "\(page) names \(path)")
                }
            }
        }
        #expect(count > 100)
    }

    @Test func `every page is linked from the README`() throws {
        let readme = try Documentation.text("README.md", of: tree)
        for page in pages.dropFirst() { #expect(readme.contains("(\(page))"), "README.md does not link to \(page)") }
    }

    @Test func `no page refers to a document that is not in the repository`() throws {
        for page in pages {
            let text = try Documentation.text(page, of: tree)
            #expect(text.firstMatch(of: /\b(DESIGN|STYLE)\b|\bspec\/|\bspec [0-9]|section [0-9]/) == nil, "\(page)")
        }
    }
}
