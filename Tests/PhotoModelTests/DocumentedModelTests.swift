import Foundation
import PhotoModel
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(1)))
struct DocumentedModelTests {
    @Test(.spec("S-20")) func `the documented keys of assets are those that exist`() throws {
        let page = try page("Shared/docs/fetching.md")
        let section = try #require(page.split(separator: "\n### ").first { $0.hasPrefix("Keys") })
        let cells = section.split(separator: "\n").filter { $0.hasPrefix("| `") }.compactMap {
            $0.split(separator: "|").first
        }
        let names = cells.flatMap { $0.matches(of: /`([^`]+)`/).map { String($0.1) } }
        #expect(Set(names) == Set(EntityClass.asset.keys.map(\.name)) && names.count == Set(names).count)
    }

    @Test func `the documented number of operations is correct`() throws {
        for (path, pattern) in [
            ("README.md", /edits: (\d+) operations/), ("Shared/docs/editing.md", /There are (\d+) operations/),
            ("Shared/docs/comparison.md", /edits \| (\d+) operations/),
        ] {
            let counts = try page(path).matches(of: pattern).map { String($0.1) }
            #expect(counts == ["\(AdjustmentKind.allCases.count)"], "\(path)")
        }
    }

    private func page(_ path: String) throws -> String {
        var root = URL(filePath: #filePath)
        for _ in 0..<3 { root.deleteLastPathComponent() }
        return try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }
}
