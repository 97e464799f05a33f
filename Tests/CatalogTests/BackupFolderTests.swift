import Contracts
import Foundation
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Catalog

/// A backup replaces only an earlier state of the same library: the backup of another library may be its last copy.
@Suite(.timeLimit(.minutes(5)), .onlySQLite)
struct BackupFolderTests {
    let folder: TemporaryFolder
    private var target: String { folder.file("backup") }

    init() throws { folder = try TemporaryFolder("backup") }

    /// Expects a backup to be refused without a change of its folder.
    private func expectRefusal(_ catalog: CatalogFixture, _ text: String) async throws {
        func content() throws -> [String: Data] {
            let names = try FileManager.default.subpathsOfDirectory(atPath: target)
            return try Dictionary(
                uniqueKeysWithValues: names.map { name in
                    var isFolder: ObjCBool = false
                    _ = FileManager.default.fileExists(atPath: target + "/" + name, isDirectory: &isFolder)
                    let bytes = try isFolder.boolValue ? Data() : Data(contentsOf: URL(filePath: target + "/" + name))
                    return (name, bytes)
                }
            )
        }
        let before = try content()
        let error = await rpcError { try await catalog.call(BackupLibrary(target: target)) }
        #expect(error?.errorCode == .invalidOptions)
        #expect(error?.message.contains(text) == true, "\(error?.message ?? "it was not refused")")
        #expect(error?.message.contains("Name a new folder") == true)
        #expect(try content() == before)
    }

    @Test func `a backup of another library is not overwritten, and can be restored`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            _ = try await catalog.importImages([image(1)])
            _ = try await catalog.call(BackupLibrary(target: target))
        }
        let other = try TemporaryFolder("backup")
        try await CatalogFixture.with(other) { catalog in
            try await expectRefusal(catalog, "another history")
            let restore = LibraryRestore(
                backup: BackupFolder(path: target),
                library: other.file("restored"),
                newHistoryID: String(repeating: "b", count: 32)
            )
            #expect(try restore.run { _, _ in }.resources == 1)
            // After the step that the refusal names, the same command succeeds.
            try FileManager.default.moveItem(atPath: target, toPath: folder.file("backup-old"))
            #expect(try await catalog.call(BackupLibrary(target: target)).resources == 0)
            #expect(try await catalog.call(BackupLibrary(target: target)).resources == 0)
        }
    }

    @Test func `a backup is not overwritten if it is newer than the library or its manifest cannot be read`()
        async throws
    {
        try await CatalogFixture.with(folder) { catalog in
            _ = try await catalog.importImages([image(1)])
            _ = try await catalog.call(BackupLibrary(target: target))
            let backup = BackupFolder(path: target)
            var manifest = try backup.manifest()
            // The library is older than its backup after its whole disk was reset to a snapshot.
            let token = manifest.token
            manifest.token = ChangeToken(library: token.library, sequence: token.sequence + 5)
            try backup.write(manifest)
            try await expectRefusal(catalog, "or a newer one")
            try folder.write(Array("{}".utf8), to: "backup/manifest.json")
            try await expectRefusal(catalog, "cannot be read")
            manifest.token = token
            try backup.write(manifest)
            #expect(try await catalog.call(BackupLibrary(target: target)).present == 1)
        }
    }
}
