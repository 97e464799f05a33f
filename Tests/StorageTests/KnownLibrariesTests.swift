import Foundation
import TestSupport
import Testing

@testable import Storage

/// Tests of the record of the paths at which there were libraries.
@Suite(.timeLimit(.minutes(1)))
struct KnownLibrariesTests {
    private let folder: TemporaryFolder
    private let known: KnownLibraries

    init() throws {
        folder = try TemporaryFolder("known")
        known = KnownLibraries(folder: folder.file("state/libraries"))
    }

    @Test func `a path is known in normalized form, until it is forgotten`() throws {
        #expect(known.history(at: "/a/b") == nil)
        try known.remember("/a/b", history: "one")
        try known.remember("/a/c", history: "two")
        try known.remember("/a//b/", history: "three")
        #expect(known.history(at: "/a/./b") == "three" && known.history(at: "/a/c") == "two")
        try known.forget("/a/b/")
        try known.forget("/a/b")
        #expect(known.history(at: "/a/b") == nil && known.history(at: "/a/c") == "two")
    }

    @Test func `only a known path without its database is refused`() throws {
        let (library, database) = (folder.file("library"), folder.file("library/library.sqlite"))
        try known.requireLibrary(at: library, database: database)
        try known.remember(library, history: "one")
        let error = #expect(throws: StorageError.self) {
            try known.requireLibrary(at: library, database: database)
        }
        #expect(error?.name == "offline")
        try folder.write(Data(), to: "library/library.sqlite")
        try known.requireLibrary(at: library, database: database)
    }

    @Test func `a damaged record is ignored, and the number of paths has a limit`() throws {
        try known.remember("/a", history: "one")
        let file = try #require(try FileManager.default.contentsOfDirectory(atPath: known.folder).first)
        try Data("nonsense".utf8).write(to: URL(filePath: known.folder + "/" + file))
        #expect(known.history(at: "/a") == nil)
        for number in 0..<KnownLibraries.limit {
            try Data().write(to: URL(filePath: known.folder + "/\(number)"))
        }
        try known.remember("/b", history: "two")
        #expect(try FileManager.default.contentsOfDirectory(atPath: known.folder).count == KnownLibraries.limit)
        #expect(known.history(at: "/b") == "two")
    }
}
