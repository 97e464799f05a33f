import Basics
import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

@testable import Thumbnailer

/// The thumbnailer with the other services: its images after changes, and its cache after `kill -9`.
///
/// The short form kills four times; `SAFELIGHT_SOAK=50` kills two hundred times.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct ThumbnailerSystemTests {
    private static func photo(_ seed: UInt64) -> Bytes { TestImages.jpeg(width: 240, height: 160, seed: seed) }

    /// Starts the services with some photos, and returns a client and the assets' identifiers.
    private static func services(_ name: String, photos: Int) async throws -> (
        SafelightFixture, PhotoLibrary, [ObjectID]
    ) {
        let services = try SafelightFixture(name)
        try services.start()
        let library = try services.library("image-test")
        var ids: [ObjectID] = []
        for index in 0..<photos {
            let path = try services.folder.write(photo(UInt64(index)), to: "photos/\(index).jpg")
            let result = try await library.perform(
                [.createAsset(.init(ref: "a", resources: [NewResource(source: .path(path))]))],
                transaction: "photo-\(index)"
            )
            ids.append(try #require(result.id("a")))
        }
        return (services, library, ids)
    }

    private static func image(_ id: ObjectID, _ side: Int) -> ImageRequest {
        ImageRequest(
            asset: id,
            targetSize: .size(width: side, height: side),
            resizeMode: .exact,
            deliveryMode: .highQualityFormat
        )
    }

    private static func metric(_ library: PhotoLibrary, _ names: String...) async throws -> JSON? {
        var value: JSON = .object(try await library.thumbnailer.metrics())
        for name in names { value = value[name] ?? .null }
        return value
    }

    private static func answersAtOnce(_ library: PhotoLibrary) async throws -> Int64 {
        try await metric(library, "requests", "answersAtOnce")?.intValue ?? 0
    }

    private static func poll(_ condition: () async throws -> Bool) async throws {
        while try await !condition() { try await Task.sleep(for: .milliseconds(20)) }
    }

    @Test func `a cached response equals the rendered one, and errors keep their names`() async throws {
        let (services, library, ids) = try await Self.services("at-once", photos: 2)
        try await Self.poll { try await Self.metric(library, "assets", "isFollowing") == true }
        let cache = try await library.thumbnailer.ask(OpenCache()).result.cache
        var images = [Self.image(ids[0], 60), Self.image(ids[1], 90)]
        images[0].format = .png
        images[1].cache = cache
        images.append(Self.image(ids[0], 33))
        images[2].version = .original
        images.append(ImageRequest(asset: ids[1], targetSize: .maximum))
        images.append(ImageRequest(asset: ids[1], targetSize: .size(width: 50, height: 50), deliveryMode: .fastFormat))
        let image = images
        for request in image {
            var (first, bytes) = try await library.image(request)
            while first.isDegraded { (first, bytes) = try await library.image(request) }
            first.isCacheHit = true
            first.cacheReason = .memory
            let before = try await Self.answersAtOnce(library)
            try await Self.poll {
                let (again, same) = try await library.image(request)
                #expect(again.json == first.json && same == bytes)
                return try await Self.answersAtOnce(library) > before
            }
        }
        var wrong = image[0]
        wrong.targetSize = .size(width: 0, height: 60)
        await Self.expectError(library, wrong, .invalidOptions)
        wrong = image[1]
        wrong.cache = "of nobody"
        await Self.expectError(library, wrong, .handleExpired)
        wrong = image[1]
        var random = SystemRandomNumberGenerator()
        wrong.asset = ObjectID(.asset, milliseconds: 1, using: &random)
        await Self.expectError(library, wrong, .identifierNotFound)
        await library.close()
        #expect(services.stop() == [])
    }

    private static func expectError(_ library: PhotoLibrary, _ image: ImageRequest, _ refusal: ErrorCode) async {
        let error = await #expect(throws: RPCError.self) { try await library.image(image) }
        #expect(error?.errorCode == refusal)
    }

    @Test func `the catalog is asked once per asset, and later changes arrive by the feed`() async throws {
        let (services, library, ids) = try await Self.services("fresh", photos: 2)
        try await Self.poll { try await Self.metric(library, "assets", "isFollowing") == true }
        let first = try await library.image(Self.image(ids[0], 60)).result
        // The feed confirms what is cached once a second and after each change. After a change of another asset the
        // confirmation is recent, so that the requests below do not depend on the next one, which may be late.
        let other = ChangeRequest.updateAsset(.init(id: .id(ids[1]), set: AssetPatch(isFavorite: true)))
        var confirmed = Self.image(ids[0], 60)
        confirmed.atLeast = try await library.perform([other]).token
        try await Self.poll {
            let before = try await Self.answersAtOnce(library)
            _ = try await library.image(confirmed)
            return try await Self.answersAtOnce(library) > before
        }
        let askedBefore = try await Self.metric(library, "assetsAsked")?.intValue ?? 0
        let answered = try await Self.answersAtOnce(library)
        for _ in 0..<50 { _ = try await library.image(Self.image(ids[0], 60)) }
        let atOnce = try await Self.answersAtOnce(library) - answered
        #expect(atOnce >= 45, "\(atOnce) of 50: answered from memory, without a task")
        let askedLater = try await Self.metric(library, "assetsAsked")?.intValue ?? 0
        let asked = askedLater - askedBefore
        #expect(asked <= 5, "\(asked) of 50: only a late confirmation asks the catalog again")

        let edit = try await library.editor.ask(
            ApplyEdit(asset: ids[0], adjustments: AdjustmentList(operations: [.rotate(.quarter)]))
        ).result
        let turned = try await library.image(
            {
                var image = Self.image(ids[0], 60)
                image.atLeast = edit.token
                return image
            }()
        ).result
        #expect(turned.pixelWidth == 40 && turned.pixelHeight == 60, "current at once with the token")
        #expect(turned.contentRevision != first.contentRevision)
        try await Self.poll { try await library.image(Self.image(ids[0], 60)).result.pixelWidth == 40 }
        _ = try await library.perform([.deleteAssets(.init(ids: [ids[1]]))], transaction: "gone")
        try await Self.poll {
            do throws(RPCError) {
                _ = try await library.image(Self.image(ids[1], 60))
                return false
            } catch { return error.errorCode == .identifierNotFound }
        }
        services.killHard(.changeBroker)
        #expect(
            try await library.image(Self.image(ids[0], 50)).result.pixelHeight == 50,
            "images are served without the feed"
        )
        try await Self.poll { try await Self.metric(library, "assets", "isFollowing") == false }
        #expect(try await library.image(Self.image(ids[0], 60)).result.isCacheHit)
        await library.close()
        #expect(services.stop() == [])
    }

    @Test func `killing the thumbnailer and its workers leaves only cache entries that match their names`()
        async throws
    {
        var random = SeededRandom(named: "kill -9 of the thumbnailer")
        let (services, library, ids) = try await Self.services("cache", photos: 8)
        let cache = services.folder.file("cache/safelight")
        let rounds = TestEnvironment.rounds(4)
        var workerKills = 0
        for _ in 0..<rounds {
            let seeds = (0..<4).map { _ in random.next() }
            let load = seeds.map { seed in
                Task {
                    var random = SeededRandom(seed: seed)
                    while !Task.isCancelled {
                        let id = ids[Int.random(in: 0..<ids.count, using: &random)]
                        _ = try? await library.image(Self.image(id, Int.random(in: 16...600, using: &random)))
                    }
                }
            }
            try await Task.sleep(for: .milliseconds(Int.random(in: 50...400, using: &random)))
            if let pid = try? await Self.metric(library, "workers", "pids")?.arrayValue?.first?.intValue, pid > 1 {
                kill(Int32(pid), SIGKILL)
                workerKills += 1
            }
            try await Task.sleep(for: .milliseconds(Int.random(in: 0...100, using: &random)))
            services.killHard(.thumbnailer)
            for task in load { task.cancel() }
            for task in load { await task.value }
            let auditAfterKill = CacheAudit(root: cache, allowsPartial: true)
            #expect(auditAfterKill.problems == [])
            try services.start([.thumbnailer])
            try await Self.poll { try await library.thumbnailer.health().isHealthy }
            let auditAfterStart = CacheAudit(root: cache)
            #expect(auditAfterStart.problems == [], "the start removes leftover files")
            #expect(auditAfterStart.entries == auditAfterKill.entries)
            #expect(try await Self.metric(library, "cache", "diskEntries")?.intValue == Int64(auditAfterStart.entries))
            #expect(try await Self.metric(library, "cache", "diskBytes")?.intValue == auditAfterStart.bytes)
        }
        TestPaths.report("\(rounds) kills of the thumbnailer, \(workerKills) of workers")
        #expect(CacheAudit(root: cache).entries > 0)
        await library.close()
        #expect(services.stop() == [])
        let verified = try RunningProgram.run("thumbnailer", ["--verify-cache"], environment: services.environment)
        #expect(verified.status == 0 && verified.output.contains("renditions"), "\(verified.output) \(verified.errors)")
    }
}
