import Basics
import Contracts
import Foundation
import JSONValue
import Messaging
import PhotoClient
import PhotoModel
import Storage
import TestSupport
import Testing

@testable import Thumbnailer

extension ThumbnailerWorkerTests {
    @Suite(.timeLimit(.minutes(5)))
    struct ImageBytesTests {
        /// Returns the bytes of an asset, reassembled from all messages.
        private func data(
            _ fixture: ThumbnailerFixture,
            _ request: ImageData
        ) async throws -> (result: ImageData.Result, bytes: Bytes, chunks: Int) {
            var bytes: Bytes = []
            var chunks = 0
            for try await event in fixture.client.stream(request, credit: 4 << 20) {
                switch event {
                case .notification(_, let params, let attachments):
                    #expect(params["offset"]?.intValue == Int64(bytes.count))
                    bytes += attachments.flatMap { $0 }
                    chunks += 1
                case .response(let response):
                    for part in response.attachments { bytes += part }
                    return (response.result, bytes, chunks)
                }
            }
            throw ErrorCode.internalError.error("no response")
        }

        @Test(.spec("S-52", "T-46", "P-10"))
        func `image.data of an unedited asset returns the imported bytes with their orientation`() async throws {
            try await ThumbnailerFixture.open { fixture in
                for orientation in 1...8 {
                    let photo = TestImages.jpeg(width: 90, height: 60, orientation: orientation)
                    let asset = try fixture.catalog.add(photo)
                    for version in ImageVersion.allCases {
                        let (result, bytes, _) = try await data(fixture, ImageData(asset: asset.id, version: version))
                        #expect(bytes == photo)
                        #expect(result.orientation == orientation)
                        #expect(result.contentType == "public.jpeg" && result.mimeType == "image/jpeg")
                        #expect((result.pixelWidth, result.pixelHeight) == (90, 60))
                        #expect(result.digest == ResourceDigest(of: photo).text)
                    }
                }
                #expect(await fixture.rpcError(ImageData(asset: .none))?.errorCode == .identifierNotFound)
            }
        }

        @Test(.spec("S-49", "S-52")) func `an edited pair of RAW and JPEG has three versions`() async throws {
            try await ThumbnailerFixture.open { fixture in
                let files = (0..<3).map { TestImages.jpeg(width: 90, height: 60, seed: UInt64($0)) }
                let stored = try files.map { try fixture.resources.put(bytes: $0) }
                let asset = try fixture.catalog.add(files[0]) { asset in
                    for (index, type, kind) in [
                        (1, ResourceType.alternatePhoto, "com.adobe.raw-image"), (2, .fullSizePhoto, "public.jpeg"),
                    ] {
                        asset.resources.append(
                            AssetResource(
                                type: type,
                                digest: stored[index].digest.text,
                                size: stored[index].size,
                                contentType: kind
                            )
                        )
                    }
                }
                var images: Set<Bytes> = []
                for (version, index) in [(ImageVersion.current, 2), (.unadjusted, 0), (.original, 1)] {
                    #expect(try await data(fixture, ImageData(asset: asset.id, version: version)).bytes == files[index])
                    images.insert(
                        try await fixture.image(
                            ImageRequest(
                                asset: asset.id,
                                targetSize: .size(width: 60, height: 60),
                                resizeMode: .exact,
                                version: version
                            )
                        ).bytes
                    )
                }
                #expect(images.count == 3)
            }
        }

        @Test func `bytes of any size are delivered completely, also if they are not an image`() async throws {
            try await ThumbnailerFixture.open { fixture in
                var random = SeededRandom(named: "large bytes")
                for (mebibytes, isStreamed) in [(1, false), (9, false), (21, true)] {
                    var bytes = Bytes(repeating: 7, count: mebibytes << 20)
                    for position in stride(from: 0, to: bytes.count, by: 4093) {
                        bytes[position] = UInt8.random(in: 0...255, using: &random)
                    }
                    let asset = try fixture.catalog.add(bytes)
                    let (result, found, chunks) = try await data(fixture, ImageData(asset: asset.id))
                    #expect(found == bytes)
                    #expect(result.size == Int64(bytes.count))
                    #expect((chunks > 0) == isStreamed)
                }
            }
        }

        @Test func `images that are too large to be shown are delivered`() async throws {
            try await ThumbnailerFixture.open { fixture in
                let animation = TestImages.gif(frames: 1001)
                let large = TestImages.pngStart(width: 70_000, height: 60_000) + TestImages.chunk("IEND", [])
                let longest = TestImages.pngStart(width: 2_147_483_647, height: 1) + TestImages.chunk("IEND", [])
                for (image, type, width) in [
                    (animation, "image/gif", 1), (large, "image/png", 70_000), (longest, "application/octet-stream", 0),
                ] {
                    let asset = try fixture.catalog.add(image)
                    let (result, bytes, _) = try await data(fixture, ImageData(asset: asset.id))
                    #expect(bytes == image)
                    #expect((result.mimeType, result.pixelWidth) == (type, width))
                }
            }
        }

        @Test func `quarantined bytes are not opened for their description`() async throws {
            try await ThumbnailerFixture.open { fixture in
                let photo = try fixture.catalog.add(TestImages.jpeg(width: 90, height: 60))
                let video = try fixture.catalog.add(Array("a video".utf8)) { asset in
                    asset.mediaType = .video
                    asset.resources[0].type = .video
                    asset.resources[0].contentType = "public.mpeg-4"
                }
                let stream = video.resources[0].digest
                for digest in [photo.resources[0].digest, stream] { fixture.catalog.quarantine(digest) }
                for error in [
                    await fixture.rpcError(ImageData(asset: photo.id)),
                    await fixture.rpcError(VideoPlayback(asset: video.id)),
                    await fixture.rpcError(ReadVideo(asset: video.id, stream: stream)),
                ] {
                    #expect(error?.errorCode == .quarantined)
                }
            }
        }

        @Test func `an image larger than eight mebibytes is delivered in parts`() async throws {
            try await ThumbnailerFixture.open { fixture in
                var random = SeededRandom(seed: 5)
                let noise = TestImages.jpeg(width: 640, height: 480) { _, _ in
                    let bits = random.next()
                    return (
                        UInt8(truncatingIfNeeded: bits), UInt8(truncatingIfNeeded: bits >> 8),
                        UInt8(truncatingIfNeeded: bits >> 16)
                    )
                }
                let asset = try fixture.catalog.add(noise)
                let request = ImageRequest(
                    asset: asset.id,
                    targetSize: .size(width: 2800, height: 2800),
                    resizeMode: .exact,
                    deliveryMode: .highQualityFormat,
                    format: .png
                )
                let messages = try await fixture.messages(request)
                #expect(messages.count == 1)
                let bytes = try #require(messages.first?.bytes)
                #expect(bytes.count > 8 << 20)
                #expect(messages.first?.result?.size == Int64(bytes.count))
                #expect(try DeliveredPixels(bytes).width == 2800)
            }
        }

        @Test func `a REQ client gets an error for an image that exceeds one message`() async throws {
            let context = RequestContext(acceptsNotifications: false)
            let fits = try await ImageReplyBuilder.reply([:], delivering: Bytes(repeating: 1, count: 14 << 20), context)
            #expect(fits.attachments.map(\.count) == [8 << 20, 6 << 20])
            await #expect(throws: RPCError.self) {
                try await ImageReplyBuilder.reply([:], delivering: Bytes(repeating: 1, count: 16 << 20), context)
            }
        }
    }

    @Suite(.timeLimit(.minutes(TestEnvironment.rounds(5))))
    struct CancelTests {
        private func request(_ asset: Asset, _ side: Int) -> ImageRequest {
            ImageRequest(
                asset: asset.id,
                targetSize: .size(width: side, height: side),
                resizeMode: .exact,
                deliveryMode: .highQualityFormat,
                format: .png
            )
        }

        private func waitUntil(_ condition: () async throws -> Bool) async throws {
            while try await !condition() { try await Task.sleep(for: .milliseconds(5)) }
        }

        @Test(.spec("S-41", "D3", "P-26")) func `a request can be cancelled at every stage and is answered once`()
            async throws
        {
            try await ThumbnailerFixture.open {
                $0.workers = 1
            } _: { fixture in
                let asset = try fixture.catalog.add(try LargeImageFixtures.large(width: 1500, seed: 1, preview: false))
                // The request waits for the catalog.
                let gate = TaskBarrier(2)
                fixture.catalog.callBeforeResponse { _, _ in await gate.pass() }
                var pending = Task { await fixture.rpcError(request(asset, 100)) }
                try await waitUntil { fixture.catalog.count(FetchAssets.method) == 1 }
                pending.cancel()
                #expect(await pending.value?.errorCode == .userCancelled)
                fixture.catalog.callBeforeResponse(nil)
                await gate.pass()
                #expect(fixture.renders == 0)
                // A worker renders the image: the worker is killed and replaced.
                pending = Task { await fixture.rpcError(request(asset, 9000)) }
                try await waitUntil { try await fixture.client.metrics()["workers"]?["busy"] == 1 }
                // The request waits for a worker.
                let waiting = Task { await fixture.rpcError(request(asset, 8999)) }
                try await waitUntil { try await fixture.client.metrics()["cache"]?["due"] == 1 }
                waiting.cancel()
                #expect(await waiting.value?.errorCode == .userCancelled)
                try await waitUntil { try await fixture.client.metrics()["cache"]?["due"] == 0 }
                pending.cancel()
                #expect(await pending.value?.errorCode == .userCancelled)
                try await waitUntil { try await fixture.client.metrics()["cache"]?["underWay"] == 0 }
                #expect(fixture.renders == 0)
                // Afterwards new requests succeed.
                #expect(try await fixture.image(request(asset, 50)).result.pixelWidth == 50)
                #expect(fixture.renders == 1)
                // The bytes are being sent.
                let large = try fixture.catalog.add(Bytes(repeating: 3, count: 24 << 20))
                var chunks = 0
                for try await _ in fixture.client.stream(ImageData(asset: large.id), credit: 1 << 20) {
                    chunks += 1
                    if chunks == 2 { break }
                }
                #expect(try await fixture.image(request(asset, 50)).result.isCacheHit)
            }
        }

        @Test(arguments: [false, true])
        func `an original that is removed while its request waits is downloaded again`(inSheet: Bool) async throws {
            try await ThumbnailerFixture.open {
                $0.workers = 1
            } _: { fixture in
                let large = try fixture.catalog.add(try LargeImageFixtures.large(width: 1500, seed: 1, preview: false))
                let asset = try fixture.catalog.add(TestImages.jpeg(width: 90, height: 60, seed: 1))
                let digest = try #require(ResourceDigest(asset.resources[0].digest))
                let (localPath, removedPath) = (fixture.resources.path(of: digest), fixture.folder.file("away"))
                let rendering = Task { await fixture.rpcError(request(large, 9000)) }
                try await waitUntil { try await fixture.client.metrics()["workers"]?["busy"] == 1 }
                let waiting = Task {
                    guard inSheet else { return await fixture.rpcError(request(asset, 50)) }
                    return await fixture.rpcError(ImageSheet(assets: [asset.id]))
                }
                try await waitUntil { try await fixture.client.metrics()["cache"]?["due"] == 1 }
                try FileManager.default.moveItem(atPath: localPath, toPath: removedPath)
                fixture.catalog.callBeforeResponse { _, method in
                    guard method == DownloadResource.method else { return }
                    try? FileManager.default.moveItem(atPath: removedPath, toPath: localPath)
                }
                rendering.cancel()
                #expect(await rendering.value?.errorCode == .userCancelled)
                let error = await waiting.value
                #expect(error == nil, "\(String(describing: error))")
                #expect(fixture.catalog.count(DownloadResource.method) == 1)
            }
        }

        @Test(.spec("S-46")) func `an expired deadline ends in an error response`() async throws {
            try await ThumbnailerFixture.open {
                $0.workers = 1
            } _: { fixture in
                let asset = try fixture.catalog.add(try LargeImageFixtures.large(width: 1500, seed: 2, preview: false))
                var slow = request(asset, 9000)
                slow.isSynchronous = true
                do throws(RPCError) {
                    _ = try await fixture.client.ask(slow, deadline: .milliseconds(60))
                    Issue.record("rendering nine thousand pixels took less than 60 ms")
                } catch {
                    #expect(error.errorCode == .deadlineExceeded)
                }
                try await waitUntil { try await fixture.client.metrics()["cache"]?["underWay"] == 0 }
                #expect(try await fixture.image(request(asset, 50)).result.pixelWidth == 50)
            }
        }

        /// Runs ten clients; long runs have a hundred.
        @Test(.spec("P-25", "S-50")) func `many concurrent requests get one response each, without leaks`() async throws
        {
            try await ThumbnailerFixture.open { fixture in
                var random = SeededRandom(named: "a storm of requests")
                let good = try (0..<6).map {
                    try fixture.catalog.add(
                        try LargeImageFixtures.large(width: 400, seed: UInt64($0), preview: $0 % 2 == 0)
                    )
                }
                let broken = try fixture.catalog.add(Array("no picture".utf8))
                let clients = min(100, TestEnvironment.rounds(10))
                let descriptors = try Self.descriptors()
                let seeds = (0..<clients).map { _ in random.next() }
                let outcomes = await withTaskGroup(of: [String].self) { group in
                    for seed in seeds {
                        group.addTask { await Self.client(fixture, good, broken, seed: seed) }
                    }
                    return await group.reduce(into: []) { $0 += $1 }
                }
                #expect(outcomes.count == 20 * clients)
                #expect(outcomes.filter { $0 == "F" }.count > 5 * clients)
                #expect(
                    Set(outcomes).isSubset(of: [
                        "F", "unsupported_format", "identifier_not_found", "user_cancelled", "busy",
                    ])
                )
                try await waitUntil { try await fixture.client.metrics()["cache"]?["underWay"] == 0 }
                try await waitUntil { try Self.descriptors() <= descriptors + 4 }
            }
        }

        private static func client(_ fixture: ThumbnailerFixture, _ good: [Asset], _ broken: Asset, seed: UInt64) async
            -> [String]
        {
            var random = SeededRandom(seed: seed)
            var outcomes: [String] = []
            for _ in 0..<20 {
                let kind = Int.random(in: 0..<10, using: &random)
                let asset = kind == 0 ? broken.id : kind == 1 ? .none : good[Int.random(in: 0..<6, using: &random)].id
                let side = [32, 64, 100, 333][Int.random(in: 0..<4, using: &random)]
                let image = ImageRequest(asset: asset, targetSize: .size(width: side, height: side), resizeMode: .exact)
                let pause = Duration.milliseconds(Int.random(in: 0..<20, using: &random))
                let pending = Task { await Self.outcome(fixture, image) }
                if kind == 2 {
                    try? await Task.sleep(for: pause)
                    pending.cancel()
                }
                outcomes.append(await pending.value)
            }
            return outcomes
        }

        private static func outcome(_ fixture: ThumbnailerFixture, _ image: ImageRequest) async -> String {
            do throws(RPCError) {
                let messages = try await fixture.messages(image)
                let finals = messages.filter { $0.result?.isFinal == true }
                return finals.count == 1 && messages.last?.result?.isFinal == true ? "F" : "\(messages)"
            } catch {
                return error.name
            }
        }

        private static func descriptors() throws -> Int {
            try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
        }
    }
}
