import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Faults of the disk and of the database under a running catalog. `SAFELIGHT_SOAK` selects the long forms.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct FaultTests {
    private static func expectIntact(_ services: SafelightFixture) throws {
        try DatabaseCheck.expectIntact(services.folder.file("library/library.sqlite"))
    }

    private static func importImages(_ count: Int, _ services: SafelightFixture, _ library: PhotoLibrary) async throws
        -> [ObjectID]
    {
        var ids: [ObjectID] = []
        for start in stride(from: 0, to: count, by: 50) {
            let numbers = start..<min(count, start + 50)
            let requests = try numbers.map { number in
                let bytes = TestImages.jpeg(width: 32, height: 24, seed: UInt64(number))
                let path = try services.folder.write(bytes, to: "photos/\(number).jpg")
                return ChangeRequest.createAsset(
                    .init(ref: "a\(number)", resources: [NewResource(source: .path(path))])
                )
            }
            let result = try await library.perform(requests, deadline: .seconds(60))
            ids += try numbers.map { try #require(result.id("a\($0)")) }
        }
        return ids
    }

    @Test func `after a kill at any point an edit of many rows is applied completely or not at all`() async throws {
        var random = SeededRandom(named: "kills during an edit")
        let services = try SafelightFixture("kill-edit")
        try services.start([.catalog])
        let library = try services.library()
        let ids = try await Self.importImages(100, services, library)
        var confirmed = ""
        var sequence = try await library.currentToken().token.sequence
        for round in 1...TestEnvironment.rounds(4) * 2 {
            let caption = "round \(round)"
            let requests = ids.map {
                ChangeRequest.updateAsset(.init(id: .id($0), set: AssetPatch(caption: .some(caption))))
            }
            let name = "edit-\(round)"
            // The request is sent once: its outcome is checked before any client repeats it.
            let edit = PerformChanges(requests: requests, client: "test", transaction: name)
            async let answer = library.catalog.ask(edit, deadline: .seconds(20)).result
            try await Task.sleep(for: .milliseconds(Int.random(in: 0...80, using: &random)))
            try services.restart(.catalog)
            let acknowledged = try? await answer

            let captions = try await Set(library.assets(FetchDescription(.assets), count: 200).assets.map(\.caption))
            #expect(captions.count == 1, "round \(round): the edit was applied in part")
            let head = try await library.currentToken().token.sequence
            let isThere = captions == [caption]
            #expect(isThere || captions == [confirmed.isEmpty ? nil : confirmed])
            #expect(acknowledged == nil || isThere, "round \(round): acknowledged but lost")
            #expect(head == sequence + (isThere ? 1 : 0), "round \(round): the feed and the tables disagree")
            let repeated = try await library.catalog.ask(edit, deadline: .seconds(20)).result
            #expect(repeated.sequence == sequence + 1)
            if let acknowledged { #expect(repeated.json == acknowledged.json) }
            sequence += 1
            confirmed = caption
            if round % 10 == 0 { try Self.expectIntact(services) }
        }
        await library.close()
        #expect(services.stop() == [])
        try Self.expectIntact(services)
    }

    @Test(.onlySQLite)
    func `on a full disk changes are refused with a named error, reads continue, and freed space resumes writes`()
        async throws
    {
        let services = try SafelightFixture("full-disk")
        let disk = try SmallDisk(services.folder.file("disk"), mebibytes: 6)
        defer { disk.unmount() }
        let small = try SafelightFixture("small-disk", environment: ["SAFELIGHT_LIBRARY": disk.path + "/library"])
        try small.start([.catalog, .changeBroker])
        let library = try small.library()
        let ids = try await Self.importImages(3, small, library)
        func change(_ text: String) -> [ChangeRequest] {
            [.updateAsset(.init(id: .id(ids[0]), set: AssetPatch(caption: .some(text))))]
        }
        let before = try await library.perform(change("before"))
        let filler = disk.path + "/filler"
        let file = open(filler, O_WRONLY | O_CREAT, 0o600)
        let bytes = [UInt8](repeating: 1, count: 4096)
        while write(file, bytes, bytes.count) > 0 {}
        close(file)

        // Free space inside the database and its WAL may still serve a few changes.
        var refusal: RPCError?
        var accepted = before.sequence
        for number in 0..<2000 where refusal == nil {
            do {
                let text = String(repeating: "full \(number) ", count: 100)
                accepted = try await library.catalog.ask(
                    PerformChanges(requests: change(text), client: "test", transaction: "full-\(number)")
                ).result.sequence
            } catch {
                refusal = error
            }
        }
        #expect(refusal?.errorCode == .notEnoughSpace, "\(String(describing: refusal))")
        let picture = try small.folder.write(TestImages.jpeg(width: 640, height: 480, seed: 99), to: "big.jpg")
        let create = [ChangeRequest.createAsset(.init(resources: [NewResource(source: .path(picture))]))]
        let refused = await #expect(throws: RPCError.self) {
            try await library.catalog.ask(PerformChanges(requests: create))
        }
        #expect(refused?.errorCode == .notEnoughSpace)
        #expect(try await library.currentToken().token.sequence == accepted)
        #expect(try await library.assets(FetchDescription(.assets)).count == 3)
        let since = ChangeToken(library: before.token.library, sequence: before.sequence - 1)
        let feed = try await library.changeBroker.ask(FeedSince(token: since)).result
        #expect(feed.records.count > 0)

        unlink(filler)
        let after = try await library.perform(change("after"))
        #expect(after.sequence == accepted + 1)
        await library.close()
        #expect(small.stop() == [])
        try DatabaseCheck.expectIntact(disk.path + "/library/library.sqlite")
    }

    @Test(.onlySQLite) func `a database that is replaced by an old copy begins a new history`() async throws {
        let services = try SafelightFixture("old-copy")
        try services.start([.catalog, .changeBroker])
        var library = try services.library()
        let ids = try await Self.importImages(2, services, library)
        await library.close()
        #expect(services.stop() == [])
        let database = services.folder.file("library") + "/library.sqlite"
        try FileManager.default.copyItem(atPath: database, toPath: services.folder.file("old"))

        try services.start([.catalog, .changeBroker])
        library = try services.library()
        var tokens = [try await library.currentToken().token]
        for number in 0..<5 {
            let patch = AssetPatch(caption: .some("\(number)"))
            tokens.append(try await library.perform([.updateAsset(.init(id: .id(ids[0]), set: patch))]).token)
        }
        await library.close()
        #expect(services.stop() == [])
        try FileManager.default.removeItem(atPath: database)
        for ending in ["-wal", "-shm"] { unlink(database + ending) }
        try FileManager.default.copyItem(atPath: services.folder.file("old"), toPath: database)

        try services.start([.catalog, .changeBroker])
        library = try services.library()
        let head = try await library.currentToken().token
        #expect(head.library != tokens[0].library)
        // No sequence is assigned twice.
        #expect(head.sequence >= tokens.last?.sequence ?? 0)
        for token in tokens {
            let error = await #expect(throws: RPCError.self) {
                try await library.changeBroker.ask(FeedSince(token: token))
            }
            #expect(error?.errorCode == .tokenExpired)
        }
        #expect(try await library.asset(ids[0]).caption == nil)
        await library.close()
        #expect(services.stop() == [])
        try Self.expectIntact(services)
    }

    @Test func `concurrent commits, checkpoints and readers leave the database intact`() async throws {
        let services = try SafelightFixture("concurrent")
        try services.start([.catalog])
        let library = try services.library()
        let ids = try await Self.importImages(50, services, library)
        let seconds = 4.0 * Double(TestEnvironment.rounds(1))
        let end = Date().addingTimeInterval(min(seconds, 600))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for lane in 0..<4 {
                group.addTask {
                    var number = lane
                    while Date() < end {
                        number += 4
                        let text = String(repeating: "\(number) ", count: 200)
                        let patch = AssetPatch(caption: .some(text))
                        _ = try await library.perform([
                            .updateAsset(.init(id: .id(ids[number % ids.count]), set: patch))
                        ])
                    }
                }
                group.addTask {
                    while Date() < end { _ = try await library.assets(FetchDescription(.assets), count: 200) }
                }
            }
            group.addTask {
                // Another process that only reads, such as a backup tool.
                while Date() < end {
                    try Self.expectIntact(services)
                    try await Task.sleep(for: .milliseconds(500))
                }
            }
            try await group.waitForAll()
        }
        await library.close()
        #expect(services.stop() == [])
        try Self.expectIntact(services)
    }
}
