import SystemPackage
import TestSupport
import Testing

@testable import CommandLine

@Suite(.timeLimit(.minutes(1)))
struct ImportGroupsTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("groups") }

    /// Returns the sizes of the groups of files with these sizes in bytes.
    private func groups(_ sizes: [Int], maxFiles: Int = 64) throws -> [Int] {
        var items = try sizes.enumerated().map { index, size in
            ImportItem(FilePath(try folder.write([UInt8](repeating: 0, count: size), to: "\(index)")))
        }
        items.reverse()
        var groups = ImportGroups(maxFiles: maxFiles)
        var found: [Int] = []
        while true {
            let group = groups.next { items.popLast() }
            guard !group.isEmpty else { return found }
            found.append(group.count)
        }
    }

    @Test func `small files are grouped in their order, up to a maximum number and size`() throws {
        #expect(try groups([]) == [])
        #expect(try groups(Array(repeating: 10, count: 35)) == [16, 16, 3])
        #expect(try groups(Array(repeating: 10, count: 5), maxFiles: 2) == [2, 2, 1])
        #expect(try groups(Array(repeating: 3 << 20, count: 5)) == [2, 2, 1])
    }

    @Test func `large files, items of several files and missing files are imported alone`() throws {
        #expect(try groups([10, 10, (4 << 20) + 1, 10]) == [2, 1, 1])
        #expect(try groups([10, 10], maxFiles: 0) == [1, 1])
        let small = FilePath(try folder.write([1], to: "small"))
        var items = [
            ImportItem(small), ImportItem(FilePath(folder.path + "/missing")), ImportItem(small, sidecar: small),
            ImportItem(small),
        ]
        items.reverse()
        var groups = ImportGroups(maxFiles: 16)
        for _ in 0..<4 { #expect(groups.next { items.popLast() }.count == 1) }
        #expect(groups.next { items.popLast() }.isEmpty)
    }
}
