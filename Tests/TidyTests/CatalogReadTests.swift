import Foundation
import TestSupport
import Testing

/// Tests that the Swift client and the Python package send the same requests to any catalog.
@Suite(.timeLimit(.minutes(1)))
struct CatalogReadTests {
    private func text(_ path: String) throws -> String {
        try String(contentsOfFile: TestPaths.package + "/" + path, encoding: .utf8)
    }

    /// Returns the methods of the request types of the protocol.
    private func methods() throws -> [String: [String]] {
        var methods = ["FetchPage": ["fetch.assets", "fetch.collections", "fetch.lists"]]
        let folder = "Shared/Contracts"
        for name in try FileManager.default.contentsOfDirectory(atPath: TestPaths.package + "/" + folder) {
            var type = ""
            for line in try text(folder + "/" + name).split(separator: "\n") {
                if let declared = line.firstMatch(of: /^public struct (\w+)/) { type = String(declared.output.1) }
                if let method = line.firstMatch(of: /static let method = "([^"]+)"/) {
                    methods[type] = [String(method.output.1)]
                }
            }
        }
        return methods
    }

    /// Returns the methods in a list of the Python package.
    private func listed(_ name: String) throws -> Set<String> {
        let source = try text("Shared/python/safelight/instances.py")
        let list = try #require(source.components(separatedBy: "\n\(name) = frozenset((").dropFirst().first)
        let words = list.prefix { $0 != ")" }.matches(of: /"([^"]+)"/)
        return Set(words.map { String($0.output.1) })
    }

    @Test func `both clients send the same reads to any catalog, and the same of them to a second one`() throws {
        let methods = try methods()
        var (twice, once) = (Set<String>(), Set<String>())
        for line in try text("Shared/Contracts/CatalogRead.swift").split(separator: "\n") {
            guard let type = line.firstMatch(of: /^extension (\w+): CatalogRead/) else { continue }
            let found = try #require(methods[String(type.output.1)], "\(line)")
            if line.contains("false") { once.formUnion(found) } else { twice.formUnion(found) }
        }
        #expect(twice.count > 20)
        #expect(try listed("CATALOG_READS") == twice)
        #expect(try listed("CATALOG_SINGLE_READS") == once)
    }
}
