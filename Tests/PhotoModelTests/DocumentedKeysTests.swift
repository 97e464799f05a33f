import Foundation
import PhotoModel
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(1)))
struct DocumentedKeysTests {
    @Test(.spec("S-20")) func `the documented keys of assets are those that exist`() throws {
        var root = URL(filePath: #filePath)
        for _ in 0..<3 { root.deleteLastPathComponent() }
        let page = try String(contentsOf: root.appending(path: "Shared/docs/fetching.md"), encoding: .utf8)
        let section = try #require(page.split(separator: "\n### ").first { $0.hasPrefix("Keys") })
        let cells = section.split(separator: "\n").filter { $0.hasPrefix("| `") }.compactMap {
            $0.split(separator: "|").first
        }
        let names = cells.flatMap { $0.matches(of: /`([^`]+)`/).map { String($0.1) } }
        #expect(Set(names) == Set(PredicateClass.asset.keys.map(\.name)) && names.count == Set(names).count)
    }
}
