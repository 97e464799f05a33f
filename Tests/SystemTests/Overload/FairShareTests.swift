import Basics
import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Long work of one client beside short work of another in the real catalog: short requests wait for at most one step
/// of it.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct FairShareTests {
    private static let digest = String(repeating: "ab", count: 32)

    /// Writes a video with a real container whose media data is a hole in the file: it uses no disk space until it is
    /// copied.
    private func writeVideo(_ folder: TemporaryFolder, _ name: String, mebibytes: Int, width: Int) throws -> String {
        let path = try folder.write(TestVideos.video(brand: "mp42", width: width), to: name)
        let size = UInt64(mebibytes) << 20
        let rest = size - UInt64(TestVideos.video(brand: "mp42", width: width).count)
        let file = try FileHandle(forWritingTo: URL(filePath: path))
        try file.seekToEnd()
        let length = (0..<8).map { UInt8(truncatingIfNeeded: rest >> UInt64(56 - 8 * $0)) }
        try file.write(contentsOf: Data([0, 0, 0, 1] + Array("mdat".utf8) + length))
        try file.truncate(atOffset: size)
        try file.close()
        return path
    }

    private func importAsset(_ library: PhotoLibrary, _ resource: NewResource, _ attachments: [Bytes] = []) async throws
        -> ObjectID
    {
        let result = try await library.perform(
            [.createAsset(.init(ref: "a", resources: [resource]))],
            attachments: attachments,
            deadline: .seconds(300)
        )
        return try #require(result.id("a"))
    }

    /// Returns the slowest response time of a short read that is repeated until other work has ended.
    private func slowestRead(_ library: PhotoLibrary, of asset: ObjectID, until ended: AwaitableValue<Bool>)
        async throws
        -> (
            time: Duration, count: Int
        )
    {
        var (slowest, count) = (Duration.zero, 0)
        while !ended.current {
            let start = ContinuousClock().now
            let read = ReadResource(asset: asset, type: .photo, offset: 10, length: 100)
            #expect(try await library.catalog.ask(read, deadline: .seconds(120)).attachments[0].count == 100)
            slowest = max(slowest, ContinuousClock().now - start)
            count += 1
        }
        return (slowest, count)
    }

    @Test func `a read of 100 bytes waits neither for a large import nor for a stream nor for a rescan`() async throws {
        let photos = try TemporaryFolder("large")
        let services = try SafelightFixture("share", environment: ["SAFELIGHT_IMPORT_ROOTS": photos.path])
        try services.start([.catalog])
        let (bulkClient, library) = (try services.library("bulk"), try services.library())
        let small = try await importAsset(library, NewResource(source: .attachment(0)), [TestImages.jpeg(seed: 1)])
        let size = TestEnvironment.rounds(1) > 1 ? 1536 : 512
        let large = try (0..<3).map { try writeVideo(photos, "\($0).mp4", mebibytes: size, width: 640 + 16 * $0) }

        func runBeside<Value: Sendable>(_ name: String, _ work: @escaping @Sendable () async throws -> Value)
            async throws
            -> Value
        {
            let ended = AwaitableValue(false)
            let start = ContinuousClock().now
            async let result: Value = {
                defer { ended.withLock { $0 = true } }
                return try await work()
            }()
            let (slowest, count) = try await slowestRead(library, of: small, until: ended)
            let value = try await result
            let time = ContinuousClock().now - start
            TestPaths.report("\(name) took \(time), the slowest of \(count) short reads meanwhile \(slowest)")
            // A read that waited for the whole work would take as long as the work.
            #expect(slowest < .seconds(1) && slowest * 4 < time, "\(name)")
            return value
        }
        // Two at a time, one per processor.
        let ids = try await runBeside("the import of two videos") { [self] in
            async let first = importAsset(bulkClient, NewResource(source: .path(large[0])))
            async let second = importAsset(bulkClient, NewResource(source: .path(large[1])))
            return try await [first, second]
        }
        try await runBeside("a stream of a whole video") {
            let whole = ReadResource(asset: ids[0], type: .video)
            for try await _ in bulkClient.catalog.stream(whole, credit: 4 << 20) {}
        }
        // Replaces the files with content that differs from the stored bytes.
        for path in large {
            let file = try FileHandle(forWritingTo: URL(filePath: path))
            try file.seek(toOffset: 1 << 20)
            try file.write(contentsOf: Data([1]))
            try file.close()
            _ = try await importAsset(library, NewResource(source: .path(path), isReferenced: true))
            utimes(path, nil)
        }
        let result = try await runBeside("a rescan") {
            try await bulkClient.catalog.ask(RescanLibrary(), deadline: .seconds(300)).result
        }
        #expect(result.refreshed == 3)
        await bulkClient.close()
        await library.close()
        #expect(services.stop() == [])
    }

    @Test func `a rescan reports its progress, and ends within a second when it is cancelled`() async throws {
        let photos = try TemporaryFolder("large")
        let services = try SafelightFixture("rescan", environment: ["SAFELIGHT_IMPORT_ROOTS": photos.path])
        try services.start([.catalog])
        let library = try services.library()
        let path = try writeVideo(photos, "a.mp4", mebibytes: 2048, width: 640)
        _ = try await importAsset(library, NewResource(source: .path(path), isReferenced: true))
        for number in 0..<3 {
            try photos.write(TestImages.jpeg(seed: UInt64(number)), to: "0/\(number).jpg")
            _ = try await importAsset(
                library,
                NewResource(source: .path(photos.file("0/\(number).jpg")), isReferenced: true)
            )
        }
        utimes(path, nil)
        let progress = AwaitableValue<[(Int64, Int64)]>([])
        let task = Task {
            for try await event in library.catalog.stream(RescanLibrary(), credit: 1 << 16) {
                guard case .notification(let method, let params, _) = event else { continue }
                #expect(method == BackupLibrary.notification)
                guard let done = params["done"]?.intValue, let total = params["total"]?.intValue else { continue }
                progress.withLock { $0.append((done, total)) }
            }
        }
        await progress.wait { !$0.isEmpty }
        #expect(progress.current.allSatisfy { $0.0 <= $0.1 && $0.1 == 4 }, "\(progress.current)")
        // A second rescan is refused while the first is running.
        let refused = await library.catalog.rpcError(of: RescanLibrary())
        #expect(refused?.errorCode == .busy, "\(refused as Any)")
        task.cancel()
        let start = ContinuousClock().now
        _ = await task.result
        // A new rescan is accepted: the first has really ended.
        while await library.catalog.rpcError(of: RescanLibrary(root: photos.file("0")))?.errorCode == .busy,
            !Task.isCancelled
        {
            await Task.yield()
        }
        let time = ContinuousClock().now - start
        TestPaths.report("a cancelled rescan ended after \(time)")
        #expect(time < .seconds(1))
        let result = try await library.catalog.ask(RescanLibrary(), deadline: .seconds(300)).result
        #expect(result.refreshed == 1 && result.unchanged == 3)
        await library.close()
        #expect(services.stop() == [])
    }

    /// Keeps `outstanding` transactions of a client waiting until other work has ended.
    private func write(
        _ library: PhotoLibrary,
        outstanding: Int,
        until ended: AwaitableValue<Bool>,
        _ requests: @escaping @Sendable (Int) -> [ChangeRequest]
    ) async throws -> Int {
        try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<outstanding {
                group.addTask {
                    var count = 0
                    while !ended.current {
                        let perform = PerformChanges(requests: requests(number + count), client: "bulk")
                        _ = try await library.catalog.ask(perform, deadline: .seconds(120))
                        count += 1
                    }
                    return count
                }
            }
            return try await group.reduce(0, +)
        }
    }

    @Test func `quarantine is lifted within a second while 64 transactions are always waiting`() async throws {
        let services = try SafelightFixture("lift")
        try services.start([.catalog])
        let (bulkClient, library) = (try services.library("bulk"), try services.library())
        let ids = try await importImages(library, count: 200)
        let ended = AwaitableValue(false)
        async let written = write(bulkClient, outstanding: 64, until: ended) { number in
            ids.map { .updateAsset(.init(id: .id($0), set: AssetPatch(rating: number % 6))) }
        }
        var slowest = Duration.zero
        for _ in 0..<5 {
            let fault = ReportWorkerFault(
                digest: Self.digest,
                name: "worker_crashed",
                reason: "",
                service: "editor",
                failures: 2
            )
            for isReport in [true, false] {
                let start = ContinuousClock().now
                if isReport {
                    _ = try await library.catalog.ask(fault, deadline: .seconds(20))
                } else {
                    let lift = LiftQuarantine(digest: Self.digest)
                    #expect(try await library.catalog.ask(lift, deadline: .seconds(20)).result.lifted == 1)
                }
                slowest = max(slowest, ContinuousClock().now - start)
            }
        }
        ended.withLock { $0 = true }
        let count = try await written
        TestPaths.report("during \(count) transactions the slowest of 10 changes of the quarantine took \(slowest)")
        #expect(slowest < TestPaths.bound(.seconds(1)))
        await bulkClient.close()
        await library.close()
        #expect(services.stop() == [])
    }

    @Test func `a change of one client does not wait for the many large ones that another client has queued`()
        async throws
    {
        let services = try SafelightFixture("bulk")
        try services.start([.catalog])
        let (bulkClient, library) = (try services.library("bulk"), try services.library())
        let ids = try await importImages(library, count: 200)
        let ended = AwaitableValue(false)
        // Each transaction changes all assets.
        async let written = write(bulkClient, outstanding: 64, until: ended) { number in
            ids.map { .updateAsset(.init(id: .id($0), set: AssetPatch(rating: number % 6))) }
        }
        var times: [Duration] = []
        for number in 0..<10 {
            let start = ContinuousClock().now
            let change = ChangeRequest.updateAsset(.init(id: .id(ids[0]), set: AssetPatch(isFavorite: number % 2 == 0)))
            _ = try await library.catalog.ask(
                PerformChanges(requests: [change], client: "one"),
                deadline: .seconds(120)
            )
            times.append(ContinuousClock().now - start)
        }
        ended.withLock { $0 = true }
        let count = try await written
        let slowest = times.max() ?? .zero
        TestPaths.report("during \(count) transactions of 200 changes the slowest of 10 small ones took \(slowest)")
        #expect(slowest < TestPaths.bound(.seconds(1)))
        await bulkClient.close()
        await library.close()
        #expect(services.stop() == [])
    }

    private func importImages(_ library: PhotoLibrary, count: Int) async throws -> [ObjectID] {
        var ids: [ObjectID] = []
        for start in stride(from: 0, to: count, by: 50) {
            let numbers = start..<min(count, start + 50)
            let result = try await library.perform(
                numbers.enumerated().map { index, number in
                    .createAsset(.init(ref: "p\(number)", resources: [NewResource(source: .attachment(index))]))
                },
                attachments: numbers.map { TestImages.jpeg(width: 32, height: 24, seed: UInt64($0)) }
            )
            ids += try numbers.map { try #require(result.id("p\($0)")) }
        }
        return ids
    }
}
