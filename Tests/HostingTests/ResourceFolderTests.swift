import Contracts
import Foundation
import Hosting
import JSONValue
import Storage
import TestSupport
import Testing

/// Tests of access to the files of a library whose folder is moved, replaced, or refers to files elsewhere.
@Suite(.timeLimit(.minutes(1)))
struct ResourceFolderTests {
    let folder: TestSupport.TemporaryFolder
    private var library: String { folder.file("library") }
    private var path: String { library + "/resources" }

    init() throws {
        folder = try TestSupport.TemporaryFolder("resources")
        try FileManager.default.createDirectory(atPath: folder.file("library"), withIntermediateDirectories: true)
    }

    @Test func `another library at the same path is opened, and an empty mount point is not`() throws {
        _ = try ResourceStore(root: path)
        let resources = ResourceFolder(library: library)
        try resources.check()
        func expectAbsence() {
            let error = #expect(throws: RPCError.self) { try resources.check() }
            #expect(error?.errorCode == .libraryRelinquished)
        }
        try FileManager.default.moveItem(atPath: path, toPath: folder.file("aside"))
        expectAbsence()
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        expectAbsence()
        let restored = try ResourceStore(root: path)
        try resources.check()
        let stored = try restored.put(bytes: [1, 2, 3])
        #expect(try resources.open(stored.digest.text).readAll(limit: 10) == [1, 2, 3])
    }

    @Test func `the error for a missing referenced file names its path`() throws {
        let store = try ResourceStore(root: path)
        let photo = try folder.write([1, 2, 3], to: "photo.jpg")
        let file = try PathAllowlist(roots: [folder.path]).open(photo)
        let digest = try store.refer(to: file, at: photo, limit: 10).digest.text
        let resources = ResourceFolder(library: library)
        #expect(try resources.open(digest).size == 3)
        try FileManager.default.removeItem(atPath: photo)
        let error = #expect(throws: RPCError.self) { try resources.open(digest) }
        #expect(error?.errorCode == .missingResource && error?.message.contains(photo) == true)
    }
}
