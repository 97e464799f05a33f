import Foundation
import TestSupport
import Testing

@testable import Storage

/// Tests of the table of last changes, which one process writes and others map.
@Suite(.timeLimit(.minutes(1)))
struct LastChangeTests {
    private let library = String(repeating: "0a", count: 16)

    private func id(_ number: Int) -> String { "a01m81vrka52edwp5" + String(format: "%010d", number) }

    @Test func `a mapped table shows every recorded change at once, and nothing older than the start`() throws {
        let folder = try TemporaryFolder("storage")
        let path = LastChangeFile.path(in: folder.path)
        #expect(throws: StorageError.self) { try LastChangeTable(path: path) }
        let file = try LastChangeFile(path: path, library: library, sequence: 7)
        let table = try LastChangeTable(path: path)
        #expect(table.sequence(of: id(1)) == 7 && table.sequence(of: "") == 7)
        #expect(table.covers(library: library, sequence: 7) && !table.covers(library: library, sequence: 8))
        #expect(!table.covers(library: String(repeating: "1a", count: 16), sequence: 7))
        try file.record([(id(1), 8), (id(2), 9), (id(1), 9)], head: 9)
        #expect(table.sequence(of: id(1)) == 9 && table.sequence(of: id(2)) == 9)
        #expect(table.covers(library: library, sequence: 9))
        try file.record([], head: 10)
        #expect(table.covers(library: library, sequence: 10) && table.sequence(of: id(1)) == 9)
    }

    @Test func `a restart keeps the mapped file and sets every entry to the sequence of the library`() throws {
        let folder = try TemporaryFolder("storage")
        let path = LastChangeFile.path(in: folder.path)
        do { _ = try LastChangeFile(path: path, library: library, sequence: 1) }
        let table = try LastChangeTable(path: path)
        let other = String(repeating: "9f", count: 16)
        let file = try LastChangeFile(path: path, library: other, sequence: 40)
        #expect(table.sequence(of: id(3)) == 40 && table.covers(library: other, sequence: 40))
        try file.record([(id(3), 41)], head: 41)
        #expect(table.sequence(of: id(3)) == 41)
        // A file of another layout is replaced; a process that has it mapped detects that it is behind.
        try Data(repeating: 1, count: 10).write(to: URL(filePath: path))
        #expect(throws: StorageError.self) { try LastChangeTable(path: path) }
        _ = try LastChangeFile(path: path, library: library, sequence: 50)
        #expect(try LastChangeTable(path: path).covers(library: library, sequence: 50))
        #expect(throws: StorageError.self) { try LastChangeFile(path: path, library: "short", sequence: 1) }
    }

    @Test func `a change of some entities affects few others`() throws {
        let folder = try TemporaryFolder("storage")
        let path = LastChangeFile.path(in: folder.path)
        let file = try LastChangeFile(path: path, library: library, sequence: 0)
        let table = try LastChangeTable(path: path)
        try file.record((0..<100).map { (id($0), 1) }, head: 1)
        #expect((0..<100).allSatisfy { table.sequence(of: id($0)) == 1 })
        let affected = (1000..<11_000).count { table.sequence(of: id($0)) == 1 }
        #expect(affected < 300, "\(affected) of 10,000 share a slot with one of the 100 changed")
    }
}
