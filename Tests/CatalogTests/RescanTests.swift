import Messaging
import Basics
import Contracts
import Foundation
import JSONValue
import PhotoModel
import Storage
import TestSupport
import Testing

@testable import Catalog

/// Tests of referenced files, and of changes to them on disk.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct RescanTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("rescan") }

    private func with(_ body: (CatalogFixture) async throws -> Void) async throws {
        try FileManager.default.createDirectory(atPath: folder.file("photos"), withIntermediateDirectories: true)
        let root = folder.file("photos")
        try await CatalogFixture.with(folder, { $0.importRoots = [root] }, body)
    }

    /// Imports a photo that the library references at its path.
    private func importReference(_ catalog: CatalogFixture, _ name: String, seed: UInt64) async throws -> ObjectID {
        let path = try folder.write(image(seed), to: "photos/" + name)
        let resource = NewResource(source: .path(path), isReferenced: true)
        let result = try await catalog.perform([.createAsset(.init(ref: "a", resources: [resource]))])
        return try #require(result.id("a"))
    }

    private func read(_ catalog: CatalogFixture, _ id: ObjectID) async throws -> Bytes {
        try await catalog.client.call(ReadResource.method, ReadResource(asset: id, type: .photo).json).attachments[0]
    }

    private func move(_ name: String, to other: String) throws {
        let target = folder.file("photos/" + other)
        try FileManager.default.createDirectory(
            at: URL(filePath: target).deletingLastPathComponent(),
            withIntermediateDirectories: true
        )
        try FileManager.default.moveItem(atPath: folder.file("photos/" + name), toPath: target)
    }

    @Test
    func `a referenced file is served from its path, and the library's folder has no copy`() async throws {
        try await with { catalog in
            let id = try await importReference(catalog, "a.jpg", seed: 1)
            #expect(try await read(catalog, id) == image(1))
            let asset = try await catalog.asset(id)
            let digest = try #require(asset.originalResource.flatMap { ResourceDigest($0.digest) })
            #expect(!catalog.service.resources.contains(digest))
            #expect(asset.originalFilename == "a.jpg" && asset.pixelWidth == 32)
            // Importing the same bytes again, copied or referenced, yields the same asset.
            let again = try await catalog.perform(
                [.createAsset(.init(ref: "a", resources: [NewResource(source: .attachment(0))]))],
                attachments: [image(1)]
            )
            #expect(again.id("a") == id && again.duplicates == ["a"])
        }
    }

    @Test
    func `changed files are never served, moved files are found again, missing files keep their assets`()
        async throws
    {
        try await with { catalog in
            let ids = try await [
                importReference(catalog, "same.jpg", seed: 1), importReference(catalog, "changed.jpg", seed: 2),
                importReference(catalog, "moved.jpg", seed: 3), importReference(catalog, "gone.jpg", seed: 4),
                importReference(catalog, "touched.jpg", seed: 5),
            ]
            try folder.write(image(20), to: "photos/changed.jpg")
            try move("moved.jpg", to: "deep/er/renamed.jpg")
            try FileManager.default.removeItem(atPath: folder.file("photos/gone.jpg"))
            try folder.write(image(5), to: "photos/touched.jpg")
            try folder.write(image(6), to: "photos/new.jpg")

            let changed = await rpcError { try await read(catalog, ids[1]) }
            #expect(changed?.errorCode == .resourceChanged)
            let missing = await rpcError { try await read(catalog, ids[3]) }
            #expect(missing?.errorCode == .missingResource)

            let result = try await catalog.call(RescanLibrary())
            #expect(result.unchanged == 1 && result.refreshed == 1)
            #expect(result.changed == [folder.file("photos/changed.jpg")])
            let (from, to) = (folder.file("photos/moved.jpg"), folder.file("photos/deep/er/renamed.jpg"))
            #expect(result.moved == [.init(from: from, to: to)])
            #expect(result.missing == [folder.file("photos/gone.jpg")])
            #expect(result.new == [folder.file("photos/new.jpg")])
            #expect(result.unreadable.isEmpty && result.unknown == 0)

            #expect(try await read(catalog, ids[0]) == image(1))
            #expect(try await read(catalog, ids[2]) == image(3))
            #expect(try await read(catalog, ids[4]) == image(5))
            #expect(await rpcError { try await read(catalog, ids[1]) }?.errorCode == .resourceChanged)
            #expect(try await catalog.assets().count == 5)

            // A file that reappears can be served again.
            try folder.write(image(4), to: "photos/gone.jpg")
            let second = try await catalog.call(RescanLibrary(root: folder.file("photos")))
            #expect(second.missingCount == 0 && second.refreshed == 1 && second.movedCount == 0)
            #expect(try await read(catalog, ids[3]) == image(4))
        }
    }

    @Test
    func `all assets of a path whose file was changed and imported again are compared with the file`() async throws {
        try await with { catalog in
            var ids: [ObjectID] = []
            for seed: UInt64 in 1...4 { ids.append(try await importReference(catalog, "a.jpg", seed: seed)) }
            let path = folder.file("photos/a.jpg")
            let first = try await catalog.call(RescanLibrary())
            #expect(first.unchanged == 1 && first.changed == [path] && first.changedCount == 1)
            try folder.write(image(4), to: "photos/a.jpg")
            let touched = try await catalog.call(RescanLibrary())
            #expect(touched.refreshed == 1 && touched.changed == [path])
            #expect(try await read(catalog, ids[3]) == image(4))
            // The result does not depend on which of the files the folder has now.
            try folder.write(image(2), to: "photos/a.jpg")
            #expect(try await catalog.call(RescanLibrary()).refreshed == 1)
            #expect(try await read(catalog, ids[1]) == image(2))
            #expect(await rpcError { try await read(catalog, ids[3]) }?.errorCode == .resourceChanged)
            try move("a.jpg", to: "b.jpg")
            let moved = try await catalog.call(RescanLibrary())
            #expect(moved.moved == [.init(from: path, to: folder.file("photos/b.jpg"))] && moved.missing == [path])
            #expect(try await read(catalog, ids[1]) == image(2))
        }
    }

    @Test func `an unmounted disk is reported, and its files are not treated as deleted`() async throws {
        try await with { catalog in
            let id = try await importReference(catalog, "a.jpg", seed: 1)
            let root = folder.file("photos")
            // The mount point remains when the disk is unmounted.
            try FileManager.default.moveItem(atPath: root, toPath: folder.file("elsewhere"))
            for exists in [false, true] {
                if exists { try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true) }
                let result = try await catalog.call(RescanLibrary())
                #expect(result.unreadable == [root])
                #expect(result.unknown == 1 && result.missingCount == 0)
                #expect(await rpcError { try await read(catalog, id) }?.errorCode == .missingResource)
            }
            try FileManager.default.removeItem(atPath: root)
            try FileManager.default.moveItem(atPath: folder.file("elsewhere"), toPath: root)
            #expect(try await catalog.call(RescanLibrary()).unchanged == 1)
            #expect(try await read(catalog, id) == image(1))
        }
    }

    @Test
    func `files that were renumbered or swapped are found again, and so is a file whose path has another file now`()
        async throws
    {
        try await with { catalog in
            var ids: [ObjectID] = []
            for number in 1...6 {
                ids.append(try await importReference(catalog, "\(number).jpg", seed: UInt64(number)))
            }
            for number in [4, 3, 2, 1] { try move("\(number).jpg", to: "\(number + 10).jpg") }
            for number in [4, 3, 2, 1] { try move("\(number + 10).jpg", to: "\(number + 1).jpg.new") }
            // Files 1 to 3 become 2 to 4, file 4 becomes 7, and files 5 and 6 are swapped.
            for number in 2...4 { try move("\(number).jpg.new", to: "\(number).jpg") }
            try move("5.jpg", to: "spare")
            try move("6.jpg", to: "5.jpg")
            try move("spare", to: "6.jpg")
            try move("5.jpg.new", to: "7.jpg")
            let result = try await catalog.call(RescanLibrary())
            #expect(result.movedCount == 6 && result.changedCount == 0 && result.missingCount == 0)
            #expect(result.new == [])
            for (number, id) in ids.enumerated() {
                #expect(try await read(catalog, id) == image(UInt64(number + 1)))
            }

            try move("2.jpg", to: "2.original.jpg")
            try folder.write(image(20), to: "photos/2.jpg")
            let edited = try await catalog.call(RescanLibrary())
            #expect(edited.movedCount == 1 && edited.changedCount == 0)
            #expect(edited.new == [folder.file("photos/2.jpg")])
        }
    }

    @Test
    func `files without an image or video, and other names of known files, are not reported as new`() async throws {
        try await with { catalog in
            _ = try await importReference(catalog, "a.jpg", seed: 1)
            try folder.write(image(1), to: "photos/copy.jpg")
            #expect(link(folder.file("photos/a.jpg"), folder.file("photos/link.jpg")) == 0)
            for name in ["notes.txt", "Thumbs.db"] { try folder.write(Array("text".utf8), to: "photos/" + name) }
            try folder.write(image(2), to: "photos/new.jpg")
            let result = try await catalog.call(RescanLibrary())
            #expect(result.unchanged == 1 && result.new == [folder.file("photos/new.jpg")] && result.newCount == 1)
        }
    }

    @Test func `the files of a disk below a root that is not mounted are not missing`() async throws {
        try await with { catalog in
            let disk = try SmallDisk(folder.file("photos/disk"), mebibytes: 4)
            defer { disk.unmount() }
            _ = try await importReference(catalog, "disk/on-disk.jpg", seed: 1)
            _ = try await importReference(catalog, "kept.jpg", seed: 2)
            _ = try await importReference(catalog, "deleted.jpg", seed: 3)
            disk.unmount()
            try FileManager.default.removeItem(atPath: folder.file("photos/deleted.jpg"))
            // Two rounds, because the first one records the deleted file as missing.
            for exists in [true, false] {
                if !exists { try FileManager.default.removeItem(atPath: disk.path) }
                let result = try await catalog.call(RescanLibrary())
                #expect(result.missing == [folder.file("photos/deleted.jpg")] && result.unchanged == 1)
                #expect(result.unknown == 1 && result.unreadable == [disk.path], "\(result)")
            }
        }
    }

    @Test func `the check of a library counts referenced files apart from stored ones`() async throws {
        try await with { catalog in
            for (number, name) in ["gone.jpg", "changed.jpg", "good.jpg"].enumerated() {
                _ = try await importReference(catalog, name, seed: UInt64(number))
            }
            _ = try await catalog.importImages([image(9)])
            try FileManager.default.removeItem(atPath: folder.file("photos/gone.jpg"))
            try folder.write(image(20), to: "photos/changed.jpg")
            let library = folder.file("library")
            let check = ConsistencyCheck(
                folder: library,
                server: try TestStore.address(library: library),
                isDeep: true,
                now: 0
            )
            let found = try check.run { _, _ in }
            #expect(found["missing"]?["count"] == 0 && found["damaged"]?["count"] == 0)
            let paths = found["references"]?["first"]?.arrayValue?.compactMap(\.stringValue) ?? []
            #expect(paths.sorted() == [folder.file("photos/changed.jpg"), folder.file("photos/gone.jpg")])
        }
    }

    @Test func `files can be referenced below configured folders only`() async throws {
        try await with { catalog in
            let outside = try folder.write(image(1), to: "outside.jpg")
            let resource = NewResource(source: .path(outside), isReferenced: true)
            let error = await rpcError { try await catalog.perform([.createAsset(.init(resources: [resource]))]) }
            #expect(error?.errorCode == .accessDenied)
            #expect(await rpcError { try await catalog.call(RescanLibrary(root: "/etc")) }?.errorCode == .accessDenied)
            let up = RescanLibrary(root: folder.file("photos") + "/..")
            #expect(await rpcError { try await catalog.call(up) }?.errorCode == .accessDenied)
            let attached = NewResource(source: .attachment(0), isReferenced: true)
            let wrong = await rpcError {
                try await catalog.perform([.createAsset(.init(resources: [attached]))], attachments: [image(1)])
            }
            #expect(wrong?.errorCode == .invalidParams)
        }
        let other = try TemporaryFolder("unconfigured")
        let path = try other.write(image(1), to: "a.jpg")
        try await CatalogFixture.with(other) { catalog in
            let resource = NewResource(source: .path(path), isReferenced: true)
            let error = await rpcError { try await catalog.perform([.createAsset(.init(resources: [resource]))]) }
            #expect(error?.errorCode == .accessDenied && error?.message.contains("--import-root") == true)
            #expect(await rpcError { try await catalog.call(RescanLibrary()) }?.errorCode == .accessDenied)
        }
    }

    @Test(.onlySQLite)
    func `a failed backup of an unchanged library leaves the previous backup complete`() async throws {
        try await CatalogFixture.with(folder) { catalog in
            let request = BackupLibrary(target: folder.file("backup"))
            _ = try await catalog.call(request)
            let backup = BackupFolder(path: request.target)
            let before = try backup.manifest()
            // Counters change without a transaction.
            try await catalog.service.store.onWriter { database in
                try database.inImmediateTransaction { try CounterChanges.set(1, as: "test", database) }
            }
            // The manifest cannot be written.
            try FileManager.default.createDirectory(
                atPath: backup.manifestPath + ".part",
                withIntermediateDirectories: false
            )
            #expect(await rpcError { try await catalog.call(request) } != nil)
            #expect(try backup.manifest() == before)
            let databases = try BackupFolder.names(backup.path).filter { $0.hasPrefix("library-") }
            #expect(databases == [before.database], "the copy of the failed backup is removed")
            let stored = try DurableFile.open(backup.databasePath(before.database)).hash()
            #expect(stored.text == before.databaseDigest)
        }
    }

    @Test(.onlySQLite)
    func `a backup into the library or over other files is refused, and others have referenced files`()
        async throws
    {
        try await with { catalog in
            _ = try await catalog.importImages([image(1)])
            let library = folder.file("library")
            for target in ["relative", library, library + "/backup", folder.path] {
                let error = await rpcError { try await catalog.call(BackupLibrary(target: target)) }
                #expect(error?.errorCode == .invalidOptions || error?.errorCode == .invalidParams, "\(target)")
            }
            let referenced = try await importReference(catalog, "a.jpg", seed: 2)
            // The root of a new ext4 filesystem counts as an empty folder.
            let (backup, restored) = (folder.file("backup"), folder.file("restored"))
            for root in [backup, restored] {
                try FileManager.default.createDirectory(
                    atPath: root + "/lost+found",
                    withIntermediateDirectories: true
                )
            }
            let result = try await catalog.call(BackupLibrary(target: backup))
            #expect(result.resources == 2 && result.referenced == 1)
            let restore = LibraryRestore(
                backup: BackupFolder(path: backup),
                library: restored,
                newHistoryID: String(repeating: "b", count: 32)
            )
            #expect(try restore.run { _, _ in }.resources == 2)
            // The next backup removes the files that the library no longer has.
            try await catalog.perform([.deleteAssets(.init(ids: [referenced]))])
            let second = try await catalog.call(BackupLibrary(target: folder.file("backup"), verifies: true))
            #expect(second.resources == 1 && second.present == 1 && second.removed == 1)
        }
    }
}
