import Contracts
import Basics
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// A backup made while the library is written to, and the library restored from it.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct BackupTests {
    /// A load that imports and changes assets until it is stopped. It records the sequence of each acknowledged
    /// transaction.
    private final class Load: Sendable {
        let acknowledged = AwaitableValue<[Int64]>([])
        let assets = AwaitableValue<[ObjectID]>([])
        private let isOver = AwaitableValue(false)
        private let work: Task<Void, any Error>

        init(_ library: PhotoLibrary, _ services: SafelightFixture, first: Int) {
            let (acknowledged, assets, isOver) = (acknowledged, assets, isOver)
            work = Task {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for lane in 0..<3 {
                        group.addTask {
                            var number = first + lane
                            while !isOver.withLock({ $0 }) {
                                let bytes = TestImages.jpeg(width: 48, height: 32, seed: UInt64(number))
                                let path = try services.folder.write(bytes, to: "photos/\(number).jpg")
                                let result = try await library.perform([
                                    .createAsset(.init(ref: "a", resources: [NewResource(source: .path(path))]))
                                ])
                                acknowledged.withLock { $0.append(result.sequence) }
                                if let id = result.id("a") { assets.withLock { $0.append(id) } }
                                number += 3
                            }
                        }
                    }
                    group.addTask {
                        var number = 0
                        while !isOver.withLock({ $0 }), !Task.isCancelled {
                            number += 1
                            guard let id = assets.withLock({ $0.isEmpty ? nil : $0[number % $0.count] }) else {
                                await Task.yield()
                                continue
                            }
                            let patch = AssetPatch(caption: .some("\(number)"))
                            let done = try await library.perform([.updateAsset(.init(id: .id(id), set: patch))])
                            acknowledged.withLock { $0.append(done.sequence) }
                        }
                    }
                    try await group.waitForAll()
                }
            }
        }

        func wait(for count: Int) async {
            await acknowledged.wait { $0.count >= count }
        }

        func stop() async throws {
            isOver.withLock { $0 = true }
            try await work.value
        }
    }

    private static func backup(_ services: SafelightFixture) throws -> BackupLibrary.Result {
        let done = try services.safelight(["backup", services.folder.file("backup"), "--json"])
        #expect(done.status == 0, "\(done.errors)")
        return try BackupLibrary.Result(json: JSON(parsing: done.output))
    }

    @Test(.spec("P-22"))
    func `a backup made during writes restores to a library with every transaction acknowledged before it`()
        async throws
    {
        let services = try SafelightFixture("backup")
        try services.start([.catalog, .changeBroker])
        let library = try services.library("load")
        let load = Load(library, services, first: 1)
        await load.wait(for: 60)
        let first = try Self.backup(services)
        #expect(first.resources > 0 && first.linked + first.copied == first.resources)
        await load.wait(for: load.acknowledged.withLock { $0.count } + 60)

        let before = load.acknowledged.withLock { $0 }
        let second = try Self.backup(services)
        #expect(second.present == first.resources)
        #expect(second.resources > first.resources)
        #expect(
            before.allSatisfy { $0 <= second.token.sequence },
            "acknowledged before the backup began but missing from it"
        )
        await load.wait(for: load.acknowledged.withLock { $0.count } + 20)
        try await load.stop()

        // The state that results from the records up to that sequence.
        var expected: [ObjectID: Asset] = [:]
        var cursor = ChangeToken(library: second.token.library, sequence: 0)
        while cursor.sequence < second.token.sequence {
            let page = try await library.changeBroker.ask(FeedSince(token: cursor, limit: 500)).result
            for record in try page.records.map({ try ChangeRecord(json: $0) })
            where record.sequence <= second.token.sequence {
                for change in record.assets { expected[change.id] = change.after }
            }
            cursor = page.token
        }
        await library.close()
        #expect(services.stop() == [])

        let target = services.folder.file("restored")
        let restored = try services.safelight(["restore", services.folder.file("backup"), "--library", target])
        #expect(restored.status == 0, "\(restored.errors)")
        try DatabaseCheck.expectIntact(target + "/library.sqlite", foreignKeys: true)
        let names = try FileManager.default.contentsOfDirectory(atPath: services.folder.file("backup"))
        let database = try #require(names.first { $0.hasPrefix("library-\(second.token.sequence)-") })
        try DatabaseCheck.expectIntact(services.folder.file("backup/" + database), foreignKeys: true)
        let again = try services.safelight(["restore", services.folder.file("backup"), "--library", target])
        #expect(again.status == 1 && again.errors.contains("not empty"), "\(again.errors)")

        let restoredServices = try SafelightFixture("restored", environment: ["SAFELIGHT_LIBRARY": target])
        try restoredServices.start([.catalog, .changeBroker])
        let new = try restoredServices.library()
        var stored: [ObjectID: Asset] = [:]
        for try await asset in new.allAssets(FetchDescription(.assets)) { stored[asset.id] = asset }
        #expect(stored == expected)
        for asset in stored.values {
            let bytes = try await new.resource(asset: asset.id).readAll(limit: 1 << 20)
            let digest = SHA256.hash(data: bytes).hexadecimal
            #expect(digest == asset.originalResource?.digest)
        }
        // Tokens of the lost library are not valid in the restored one.
        let token = try await new.currentToken().token
        #expect(token.library != second.token.library && token.sequence > second.token.sequence + 1000)
        for old in [second.token, ChangeToken(library: second.token.library, sequence: token.sequence)] {
            let catalog = await #expect(throws: RPCError.self) { try await new.catalog.ask(ChangesSince(token: old)) }
            #expect(catalog?.errorCode == .tokenExpired && catalog?.data["head"]?.stringValue == token.description)
            let broker = await #expect(throws: RPCError.self) { try await new.changeBroker.ask(FeedSince(token: old)) }
            #expect(broker?.errorCode == .tokenExpired)
        }
        // The restored library accepts writes like any other.
        if let id = stored.keys.first {
            let change = try await new.perform([.updateAsset(.init(id: .id(id), set: AssetPatch(isFavorite: true)))])
            #expect(change.sequence == token.sequence + 1)
        }
        await new.close()
        #expect(restoredServices.stop() == [])
    }

    @Test(.onlySQLite) func `a backup and a restore continue without damaged files, and name them`() throws {
        let services = try SafelightFixture("backup-damaged")
        for seed in 1...3 {
            try services.folder.write(TestImages.jpeg(width: 64, height: 48, seed: UInt64(seed)), to: "p/\(seed).jpg")
        }
        try services.start([.catalog])
        #expect(try services.safelight(["import", services.folder.file("p")]).status == 0)
        #expect(try Self.backup(services).resources == 3)
        let stored = try services.storedFiles
        let digests = stored.map { ($0 as NSString).lastPathComponent }
        let (backup, target) = (services.folder.file("backup"), services.folder.file("restored"))
        func inBackup(_ path: String) -> String {
            path.replacing(services.folder.file("library/resources"), with: backup + "/resources")
        }
        // The backup has the only copy of the first file; the second one is damaged in both.
        try FileManager.default.removeItem(atPath: stored[0])
        for path in [stored[1], inBackup(stored[1])] {
            try FileManager.default.removeItem(atPath: path)
            try Data("damaged".utf8).write(to: URL(filePath: path))
        }
        let late = try services.folder.write(TestImages.jpeg(width: 64, height: 48, seed: 4), to: "late.jpg")
        #expect(try services.safelight(["import", late]).status == 0)

        for _ in 1...2 {
            let done = try services.safelight(["backup", backup, "--json"])
            #expect(done.status == 3, "\(done.errors)")
            let result = try BackupLibrary.Result(json: JSON(parsing: done.output))
            #expect(result.resources == 4 && result.damaged == 2)
            #expect(result.damagedFiles.map(\.digest).sorted() == digests.prefix(2).sorted())
            #expect(result.damagedFiles.filter(\.isInBackup).map(\.digest) == [digests[0]])
            #expect(result.damagedFiles.allSatisfy { $0.asset != nil && $0.filename?.hasSuffix(".jpg") == true })
        }
        let text = try services.safelight(["backup", backup])
        #expect(text.status == 3 && digests.prefix(2).allSatisfy { text.output.contains($0) }, "\(text.output)")
        #expect(text.output.contains("2 files damaged or missing in the library"))
        #expect(services.stop() == [])

        let restored = try services.safelight(["restore", backup, "--library", target])
        #expect(restored.status == 3 && restored.output.contains(digests[1]), "\(restored.errors)")
        #expect(!restored.output.contains(digests[0]) && restored.output.contains("restored 3 resources"))
        // The same files complete it.
        let complete = try SafelightFixture("completed", environment: ["SAFELIGHT_LIBRARY": target])
        try complete.start([.catalog])
        #expect(try complete.safelight(["import", services.folder.file("p")]).status == 0)
        let repaired = try complete.safelight(["backup", complete.folder.file("backup"), "--json"])
        #expect(repaired.status == 0, "\(repaired.output)")
        #expect(complete.stop() == [])
    }

    @Test func `a restore that failed on a full disk can be repeated into the same folder`() throws {
        let services = try SafelightFixture("restore-full")
        let disk = try SmallDisk(services.folder.file("small disk"), mebibytes: 4)
        defer { disk.unmount() }
        for seed in 1...3 {
            try services.folder.write(TestImages.jpeg(width: 64, height: 48, seed: UInt64(seed)), to: "p/\(seed).jpg")
        }
        try services.start([.catalog])
        #expect(try services.safelight(["import", services.folder.file("p")]).status == 0)
        _ = try Self.backup(services)
        #expect(services.stop() == [])
        let (backup, target) = (services.folder.file("backup"), disk.path + "/library")
        try Data(count: 4_000_000).write(to: URL(filePath: disk.path + "/filler"))
        let full = try services.safelight(["restore", backup, "--library", target])
        #expect(full.status == 1 && full.errors.contains("not_enough_space"), "\(full)")
        try FileManager.default.removeItem(atPath: disk.path + "/filler")
        let restored = try services.safelight(["restore", backup, "--library", target])
        #expect(restored.status == 0, "\(restored.errors)")
        // The line can be copied into a shell.
        #expect(restored.output.contains("--library '\(target)'"), "\(restored.output)")
        let names = try FileManager.default.contentsOfDirectory(atPath: target).sorted()
        #expect(names == ["head", "library.sqlite", "lock", "resources"], "\(names)")
        try DatabaseCheck.expectIntact(target + "/library.sqlite", foreignKeys: true)
        let again = try services.safelight(["restore", backup, "--library", target])
        #expect(again.status == 1 && again.errors.contains("not empty"), "\(again.errors)")
    }

    @Test(.onlySQLite)
    func `a backup for which the library's disk has no space fails, and changes continue`() async throws {
        let services = try SafelightFixture("backup-full")
        let disk = try SmallDisk(services.folder.file("disk"), mebibytes: 64)
        defer { disk.unmount() }
        let small = try SafelightFixture("backup-small", environment: ["SAFELIGHT_LIBRARY": disk.path + "/library"])
        try small.start([.catalog])
        let library = try small.library()
        let create = ChangeRequest.createAsset(.init(ref: "p", resources: [NewResource(source: .attachment(0))]))
        let bytes = TestImages.jpeg(width: 64, height: 48, seed: 1)
        let id = try #require(try await library.perform([create], attachments: [bytes]).id("p"))
        func change(_ text: String) async throws {
            let patch = AssetPatch(caption: .some(String(repeating: text, count: 20_000)))
            _ = try await library.perform([.updateAsset(.init(id: .id(id), set: patch))])
        }
        // The records are several MiB.
        for number in 10..<90 { try await change("\(number) ") }
        try Data(count: disk.freeBytes - (3 << 20)).write(to: URL(filePath: disk.path + "/filler"))
        let before = disk.freeBytes
        let backup = BackupLibrary(target: disk.path + "/backup")
        let full = await #expect(throws: RPCError.self) { try await library.catalog.ask(backup) }
        #expect(full?.errorCode == .notEnoughSpace)
        #expect(disk.freeBytes > before - (1 << 20), "the backup has left a file")
        try await change("99 ")

        unlink(disk.path + "/filler")
        #expect(try await library.catalog.ask(backup).result.resources == 1)
        await library.close()
        #expect(small.stop() == [])
    }

    @Test func `a backup interrupted by a kill leaves the previous one intact, and the next one is complete`()
        async throws
    {
        var random = SeededRandom(named: "backup kill")
        let services = try SafelightFixture("backup-kill")
        try services.start([.catalog])
        let library = try services.library("load")
        var requests: [ChangeRequest] = []
        for number in 0..<40 {
            let bytes = TestImages.jpeg(width: 48, height: 32, seed: UInt64(number))
            let path = try services.folder.write(bytes, to: "photos/\(number).jpg")
            requests.append(.createAsset(.init(ref: "a\(number)", resources: [NewResource(source: .path(path))])))
        }
        _ = try await library.perform(Array(requests.prefix(20)), deadline: .seconds(60))
        let first = try Self.backup(services)
        _ = try await library.perform(Array(requests.suffix(20)), deadline: .seconds(60))
        for _ in 0..<TestEnvironment.rounds(3) {
            let running = try RunningProgram(
                "safelight",
                ["backup", services.folder.file("backup")],
                environment: services.environment
            )
            try await Task.sleep(for: .milliseconds(Int.random(in: 0...120, using: &random)))
            try services.restart(.catalog)
            running.killHard()
            _ = running.wait(seconds: 10)
            // However far the backup came, the manifest names a complete library.
            let target = services.folder.file("from-\(UInt32.random(in: 0 ... .max, using: &random))")
            let restored = try services.safelight([
                "restore", services.folder.file("backup"), "--library", target, "--json",
            ])
            #expect(restored.status == 0, "\(restored.errors)")
            let resources = try JSON(parsing: restored.output)["resources"]?.intValue
            #expect(resources == 20 || resources == 40)
        }
        let last = try Self.backup(services)
        #expect(first.resources == 20 && last.resources == 40)
        await library.close()
        #expect(services.stop() == [])
    }
}
