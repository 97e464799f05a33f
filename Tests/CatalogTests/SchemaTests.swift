import Foundation
import GRDB
import Logging
import PhotoModel
import Storage
import TestSupport
import Testing

@testable import Catalog

/// Tests that libraries of earlier versions can be opened.
@Suite(.timeLimit(.minutes(1)), .onlySQLite)
struct SchemaTests {
    private func open(
        _ folder: TemporaryFolder,
        _ history: String = String(repeating: "a", count: 32)
    ) throws -> LibraryStore {
        try LibraryStore(
            folder: folder.path,
            now: 1_800_000_000_000_000,
            newHistoryID: history,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
    }

    /// Makes a library of the oldest schema, and migrates it.
    private func makeOldestLibrary(_ folder: TemporaryFolder, _ path: String) async throws {
        let old = try DatabaseQueue(path: path)
        try await old.write { try $0.execute(sql: OldestLibrary.sql) }
        try old.close()
        try open(folder).close()
    }

    @Test func `a file of the oldest schema is migrated to the newest one with all its contents`() async throws {
        let folder = try TemporaryFolder("schema")
        let path = folder.file("library.sqlite")
        let old = try DatabaseQueue(path: path)
        try await old.write { database in
            try database.execute(sql: OldestLibrary.sql)
            try database.execute(sql: "UPDATE asset SET media_type = 2, duration = 5000000 WHERE row = 3")
            try database.execute(sql: "UPDATE resource SET type = 2 WHERE asset = 3")
        }
        try old.close()

        let store = try open(folder)
        // No record has the moments that the migration adds, so a new history begins and clients fetch again.
        #expect(store.historyID == String(repeating: "a", count: 32) && store.startSequence == 2)
        let assets = try await store.read { try $0.assets.assets([1, 2, 3]) }
        #expect(assets.count == 3)
        #expect(assets[1]?.originalFilename == "DSCF0000.JPG" && assets[1]?.creationOffset == -39_600)
        #expect(assets[3]?.resources.map(\.size) == [11_883_298])
        #expect(assets[3]?.resources.map(\.duration) == [5_000_000], "the duration that a revert restores")
        #expect(assets[1]?.resources.map(\.duration) == [nil])
        #expect(assets.values.allSatisfy { $0.resources.allSatisfy { $0.offset == nil } }, "whole files")
        let counted = try await store.read { try $0.counter("visible") }
        #expect(counted == 3)
        let moments = Set(assets.values.compactMap(\.moment))
        #expect(!moments.isEmpty)
        let derived = try await store.read { reader in
            try (moments.map(\.id) + SmartAlbum.allCases.map(\.id)).map { try reader.collections.collection($0) }
        }
        #expect(derived.allSatisfy { $0 != nil })
        #expect(derived.prefix(moments.count).compactMap { $0?.estimatedAssetCount }.reduce(0, +) == 3)
        let records = try await store.read { try $0.history.records(after: 0, through: 2, count: 10, bytes: 1 << 20) }
        #expect(records.records.map(\.sequence) == [1, 2])
        try store.close()
        try DatabaseCheck.full(path: path)
        // Opening it again migrates nothing.
        try open(folder).close()
    }

    @Test(.spec("S-08")) func `smart albums that an earlier version did not have get their members and counts`()
        async throws
    {
        let folder = try TemporaryFolder("albums")
        let path = folder.file("library.sqlite")
        try await makeOldestLibrary(folder, path)
        let missing = [SmartAlbum.generic, .unableToUpload]
        let queue = try DatabaseQueue(path: path)
        try await queue.write { database in
            for album in missing {
                try database.execute(sql: "DELETE FROM collection WHERE id = ?", arguments: [album.id.text])
                try database.execute(sql: "DELETE FROM counter WHERE name = ?", arguments: ["smart.\(album.rawValue)"])
                try database.execute(sql: "UPDATE asset SET smart = smart & ~?", arguments: [album.bit])
            }
        }
        try queue.close()

        let store = try open(folder)
        let found = try await store.read { reader in
            try missing.map { album in
                let fetch = try Fetch(.assets(.smartAlbum(album)))
                return [
                    try reader.collections.collection(album.id) == nil ? 0 : 1,
                    try reader.fetches.assetRows(fetch, .init())?.count ?? -1,
                    try reader.counter("smart.\(album.rawValue)"),
                ]
            }
        }
        #expect(found == [[1, 3, 3], [1, 0, 0]])
        let others = try await store.read { try $0.counter("smart.\(SmartAlbum.userLibrary.rawValue)") }
        #expect(others == 3, "the counters of the other albums are unchanged")
        try store.close()
        try DatabaseCheck.full(path: path)
    }

    @Test(.spec("S-08")) func `smart albums whose rules have changed get their members in a new history`() async throws
    {
        let folder = try TemporaryFolder("rules")
        let path = folder.file("library.sqlite")
        try await makeOldestLibrary(folder, path)
        let queue = try DatabaseQueue(path: path)
        let lens = "iPhone 15 front TrueDepth camera 2.69mm f/1.9"
        try await queue.write { database in
            try database.execute(
                sql: "UPDATE asset SET lens_model = ?, lens_model_folded = lower(?) WHERE row = 2",
                arguments: [lens, lens]
            )
            try database.execute(sql: "DELETE FROM counter WHERE name = 'smart.rules'")
        }
        try queue.close()

        let history = String(repeating: "b", count: 32)
        let store = try open(folder, history)
        #expect(store.historyID == history)
        for (album, rows) in [(SmartAlbum.selfPortraits, [Int64(2)]), (.generic, [1, 3])] {
            let (found, counted) = try await store.read { reader in
                (
                    try reader.fetches.assetRows(try Fetch(.assets(.smartAlbum(album))), .init()).map(Array.init),
                    try reader.counter("smart.\(album.rawValue)")
                )
            }
            #expect(found?.sorted() == rows && counted == rows.count, "\(album)")
        }
        try store.close()
        try DatabaseCheck.full(path: path)
        let again = try open(folder)
        #expect(again.historyID == history, "the new history begins only once")
        try again.close()
    }

    @Test func `favorites of a library without a column for them stay favorites`() async throws {
        let folder = try TemporaryFolder("favorites")
        let path = folder.file("library.sqlite")
        try await makeOldestLibrary(folder, path)
        let queue = try DatabaseQueue(path: path)
        try await queue.write { database in
            try database.execute(
                sql: """
                    DROP INDEX asset_smart_203_added;
                    DROP INDEX asset_smart_203_created;
                    ALTER TABLE asset DROP COLUMN smart_favorites;
                    UPDATE asset SET is_favorite = row = 3, smart = smart & ~8 | (row = 3) * 8;
                    CREATE INDEX asset_smart_203_added ON asset (visible, added_date, id) WHERE (smart & 8) <> 0;
                    CREATE INDEX asset_smart_203_created ON asset (visible, creation_date DESC, id)
                    WHERE (smart & 8) <> 0;
                    DELETE FROM grdb_migrations WHERE identifier = '13 favorites';
                    """
            )
        }
        try queue.close()
        let store = try open(folder)
        let found = try await store.read { reader in
            try reader.fetches.assetRows(try Fetch(.assets(.smartAlbum(.favorites))), .init())
        }
        #expect(found.map(Array.init) == [3])
        try store.close()
        try DatabaseCheck.full(path: path)
    }

    /// SQLite deletes and inserts a row's entries in each partial index whose condition mentions a changed column.
    @Test func `a favorite writes the indexes of favorites and none of the other smart albums`() async throws {
        let folder = try TemporaryFolder("indexes")
        try open(folder).close()
        let queue = try DatabaseQueue(path: folder.file("library.sqlite"))
        let written = try await queue.read { database in
            let columns = ["revision", "modification_date", "is_favorite", "smart_favorites"]
            let bits = columns.reduce(UInt64(0)) { bits, name in
                bits | AssetRowMapping.columns.firstIndex { $0.name == name }.map { 1 << UInt64($0) }!
            }
            return try Row.fetchAll(
                database,
                sql: "EXPLAIN " + AssetRowMapping.updateStatement(of: bits),
                arguments: [1, 2, 1, 8, 4]
            )
            .count { $0["opcode"] as String == "OpenWrite" }
        }
        // The table, the times of change, the two sort keys with is_favorite, and the two orders of the album.
        #expect(written == 6)
        try queue.close()
    }

    @Test func `a file of a newer schema is refused with newer_version`() throws {
        let folder = try TemporaryFolder("newer")
        try open(folder).close()
        let queue = try DatabaseQueue(path: folder.file("library.sqlite"))
        try queue.write { try $0.execute(sql: "INSERT INTO grdb_migrations VALUES ('99 from the future')") }
        try queue.close()
        let error = #expect(throws: StorageError.self) { try open(folder) }
        #expect(error?.name == "newer_version")
    }
}
