import Contracts
import Foundation
import ImageFormats
import JSONValue
import PhotoClient
import PhotoModel
import Storage
import TestSupport
import Testing

@testable import Thumbnailer

extension ThumbnailerWorkerTests {
    /// Tests of damaged videos: each is shown or refused with a named error, and the service keeps running.
    @Suite(.timeLimit(.minutes(20)))
    struct HostileVideoTests {
        private static let videos: [(name: String, options: [String])] = [
            ("a.mp4", ["-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p", "-g", "5", "-c:a", "aac"]),
            (
                "b.mov",
                ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none", "-c:a", "pcm_s16le"]
            ),
            ("c.mkv", ["-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p", "-c:a", "flac"]),
            ("d.webm", ["-c:v", "libvpx", "-deadline", "realtime", "-c:a", "libopus"]),
            ("e.avi", ["-c:v", "mpeg4", "-c:a", "mp3"]), ("f.ts", ["-c:v", "mpeg2video", "-c:a", "mp2"]),
            ("g.mpg", ["-c:v", "mpeg2video", "-c:a", "mp2"]),
            ("h.3gp", ["-c:v", "h263", "-s", "176x144", "-c:a", "aac"]),
            ("i.webm", ["-c:v", "libvpx-vp9", "-deadline", "realtime", "-cpu-used", "8", "-c:a", "libopus"]),
            ("j.mp4", ["-c:v", "libaom-av1", "-cpu-used", "8", "-usage", "realtime", "-c:a", "aac"]),
        ]

        /// The videos for all tests; creating them takes seconds.
        private static let createdVideos = Result {
            let folder = try TemporaryFolder("bad")
            return try videos.map { name, options in
                try FFmpegVideos.make(folder.file(name), size: "176x144", rate: 10, seconds: 1, options)
                return [UInt8](try Data(contentsOf: URL(fileURLWithPath: folder.file(name))))
            }
        }

        private func videos() throws -> [[UInt8]] {
            // Without the program each of the tests is skipped.
            _ = try Needed.program("ffmpeg")
            return try Self.createdVideos.get()
        }

        /// Changes bytes, sizes or names of boxes, or the length of the file.
        private func damaged(_ video: [UInt8], using random: inout SeededRandom) -> [UInt8] {
            var bytes = video
            // Headers are at both ends.
            func position() -> Int {
                let edge = min(bytes.count, 3000)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: return Int.random(in: 0..<edge, using: &random)
                case 1: return bytes.count - 1 - Int.random(in: 0..<edge, using: &random)
                default: return Int.random(in: 0..<bytes.count, using: &random)
                }
            }
            for _ in 0..<Int.random(in: 1...8, using: &random) {
                let offset = position()
                switch Int.random(in: 0..<6, using: &random) {
                case 0: bytes[offset] = UInt8.random(in: 0...255, using: &random)
                case 1: bytes[offset] ^= 1 << UInt8.random(in: 0..<8, using: &random)
                case 2: for index in offset..<min(bytes.count, offset + 4) { bytes[index] = 0xFF }
                case 3: for index in offset..<min(bytes.count, offset + 4) { bytes[index] = 0 }
                case 4 where bytes.count > 400: bytes.removeSubrange(offset..<min(bytes.count, offset + 40))
                default: bytes.insert(contentsOf: bytes[offset..<min(bytes.count, offset + 24)], at: offset)
                }
            }
            if Int.random(in: 0..<10, using: &random) == 0 { bytes = Array(bytes.prefix(max(200, position()))) }
            return bytes
        }

        @Test
        func `each damaged video is shown or refused with a named error, and the service continues`() async throws {
            let videos = try videos()
            var random = SeededRandom(named: "damaged videos")
            var files: [[UInt8]] = []
            for round in 0..<TestEnvironment.rounds(100) {
                files.append(damaged(videos[round % videos.count], using: &random))
            }
            try await ThumbnailerFixture.open { [files] fixture in
                let good = try Self.add(videos[0], to: fixture)
                _ = try await fixture.image(ImageRequest(asset: good.id, targetSize: .size(width: 64, height: 64)))
                var (shown, refused): (Int, [String: Int]) = (0, [:])
                for (index, file) in files.enumerated() {
                    let asset = try Self.add(file, to: fixture)
                    if index % 10 == 0, let name = try await Self.export(asset, fixture) {
                        refused[name, default: 0] += 1
                    }
                    var request = ImageRequest(asset: asset.id, targetSize: .size(width: 64, height: 64))
                    request.isSynchronous = true
                    if file.count % 2 == 0 { request.frameTime = 500_000 }
                    if let error = await fixture.rpcError(request) {
                        refused[error.name, default: 0] += 1
                    } else {
                        shown += 1
                    }
                    let edited = try Self.edited(file, Self.repeated(.speed, 16), fixture)
                    var errors = [
                        await fixture.rpcError(VideoPlayback(asset: asset.id)),
                        await fixture.rpcError(VideoAsset(asset: asset.id)),
                        await fixture.rpcError(VideoAsset(asset: edited.id)),
                    ]
                    if index % 4 == 0 { errors.append(await Self.strip(asset, fixture)) }
                    for error in errors.compactMap({ $0 }) { refused[error.name, default: 0] += 1 }
                }
                let names: Set = ["invalid_resource", "unsupported_format", "limit_exceeded", "worker_crashed"]
                #expect(Set(refused.keys).isSubset(of: names), "\(refused)")
                #expect(shown > files.count / 10, "\(shown) of \(files.count)")
                TestPaths.report("\(files.count) damaged videos: \(shown) shown, refused \(refused)")
                // The service still renders images.
                _ = try await fixture.image(ImageRequest(asset: good.id, targetSize: .size(width: 100, height: 100)))
            }
        }

        @Test func `absurd sizes, loops of edits and endless tables end within the limits`() async throws {
            let video = try videos()[0]
            var files: [[UInt8]] = []
            /// Replaces the bytes at a distance after each occurrence of a box's name.
            func changed(_ box: String, _ distance: Int, _ value: [UInt8]) -> [UInt8] {
                var bytes = video
                let name = Array(box.utf8)
                for offset in 0..<(bytes.count - name.count) where Array(bytes[offset..<offset + name.count]) == name {
                    for (index, byte) in value.enumerated() where offset + distance + index < bytes.count {
                        bytes[offset + distance + index] = byte
                    }
                }
                return bytes
            }
            let huge: [UInt8] = [0x7F, 0xFF, 0xFF, 0xFF]
            files.append(changed("avc1", 28, [0xFF, 0xFF, 0xFF, 0xFF]))
            files.append(changed("tkhd", 80, [0xFF, 0xFF, 0, 0, 0xFF, 0xFF, 0, 0]))
            for table in ["stts", "stsz", "stsc", "stco", "elst", "ctts"] { files.append(changed(table, 8, huge)) }
            files.append(changed("stsz", 12, huge))
            files.append(changed("stts", 12, huge + huge))
            files.append(changed("mvhd", 16, [0, 0, 0, 0]))
            files.append(changed("mdhd", 16, [0, 0, 0, 1]))
            files.append(changed("mdhd", 20, huge))
            try await ThumbnailerFixture.open { [files] fixture in
                for (index, file) in files.enumerated() {
                    let asset = try Self.add(file, to: fixture)
                    if let error = await fixture.rpcError(VideoAsset(asset: asset.id)) {
                        let names: Set = ["invalid_resource", "unsupported_format", "limit_exceeded"]
                        #expect(names.contains(error.name), "file \(index): \(error)")
                    }
                    for time: Int64? in [nil, 0, 900_000] {
                        var request = ImageRequest(asset: asset.id, targetSize: .size(width: 64, height: 64))
                        request.isSynchronous = true
                        request.frameTime = time
                        let start = ContinuousClock.now
                        let error = await fixture.rpcError(request)
                        #expect(ContinuousClock.now - start < .seconds(25), "file \(index)")
                        let names: Set = ["invalid_resource", "unsupported_format", "limit_exceeded"]
                        if let error { #expect(names.contains(error.name), "file \(index): \(error)") }
                    }
                }
            }
        }

        @Test func `the export of a video with an unknown codec is refused as unsupported_format`() async throws {
            var video = try videos()[0]
            let table = try #require(video.indices.first { video[$0...].starts(with: "stsd".utf8) })
            let name = try #require(video.indices[table...].first { video[$0...].starts(with: "avc1".utf8) })
            video.replaceSubrange(name..<name + 4, with: Array("avc5".utf8))
            try await ThumbnailerFixture.open { [video] fixture in
                let asset = try Self.add(video, to: fixture)
                let refused = try await Self.export(asset, fixture)
                #expect(refused == "unsupported_format")
            }
        }

        @Test func `the product of many speeds and volumes stays within the limits`() async throws {
            let video = try videos()[0]
            try await ThumbnailerFixture.open { fixture in
                for (kind, value) in [(AdjustmentKind.speed, 16.0), (.speed, 0.1), (.volume, 4)] {
                    let asset = try Self.edited(video, Self.repeated(kind, value), fixture)
                    let result = try await fixture.client.ask(VideoAsset(asset: asset.id)).result
                    #expect(result.timeMap.allSatisfy { (0.01...100).contains($0.rate) }, "\(result.timeMap)")
                    #expect(result.audioCurve.allSatisfy { (0...1000).contains($0.volume) }, "\(result.audioCurve)")
                }
            }
        }

        @Test func `a video of three hundred thousand years is shown within the limits`() async throws {
            let video = Self.endless(try videos()[0])
            try await ThumbnailerFixture.open { fixture in
                for value in [16, 0.1] {
                    let asset = try Self.edited(video, Self.repeated(.speed, value), fixture)
                    let result = try await fixture.client.ask(VideoAsset(asset: asset.id)).result
                    #expect(result.duration <= 1 << 50, "\(result.duration)")
                    for track in result.tracks {
                        #expect(track.duration <= 1 << 50 && abs(track.start) <= 1 << 51, "\(track)")
                    }
                    let error = await Self.strip(asset, fixture)
                    #expect(error == nil, "\(String(describing: error))")
                }
            }
        }

        @Test func `a long edit list that repeats all frames ends within the limits`() async throws {
            let folder = try TemporaryFolder("loop")
            let path = folder.file("loop.mp4")
            let options = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-an"]
            try FFmpegVideos.make(path, size: "64x64", rate: 100, seconds: 10, options)
            let video = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
            let looped = Self.looped(video, count: 60_000)
            try #require(looped.count > video.count)
            try await ThumbnailerFixture.open { fixture in
                let asset = try Self.add(looped, to: fixture)
                let start = ContinuousClock.now
                let error = await fixture.rpcError(VideoAsset(asset: asset.id))
                let names: Set = ["invalid_resource", "unsupported_format", "limit_exceeded"]
                if let error { #expect(names.contains(error.name), "\(error)") }
                if let error = await Self.strip(asset, fixture) { #expect(names.contains(error.name), "\(error)") }
                #expect(ContinuousClock.now - start < .seconds(60))
                let good = try Self.add(video, to: fixture)
                #expect(await fixture.rpcError(VideoAsset(asset: good.id)) == nil)
            }
        }

        @Test func `frames that do not fit into a response are refused before all are rendered`() async throws {
            let folder = try TemporaryFolder("strip")
            let path = folder.file("noise.mp4")
            let options = ["-vf", "noise=alls=100:allf=t", "-c:v", "libx264", "-preset", "ultrafast"]
            try FFmpegVideos.make(path, rate: 30, seconds: 2, audio: false, options + ["-pix_fmt", "yuv420p"])
            let video = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
            try await ThumbnailerFixture.open { fixture in
                let asset = try Self.add(video, to: fixture)
                let request = ImageFrames(
                    asset: asset.id,
                    count: 60,
                    targetSize: .size(width: 1280, height: 960),
                    resizeMode: .exact,
                    format: .png
                )
                let error = await #expect(throws: RPCError.self) {
                    _ = try await fixture.client.ask(request, deadline: .seconds(120))
                }
                #expect(error?.errorCode == .limitExceeded)
                #expect(fixture.renders < 60, "\(fixture.renders)")
            }
        }

        @Test func `frames that were rendered before are returned without the video`() async throws {
            let video = try videos()[0]
            try await ThumbnailerFixture.open { fixture in
                let asset = try Self.add(video, to: fixture)
                let first = await Self.strip(asset, fixture)
                #expect(first == nil, "\(String(describing: first))")
                let digest = try #require(ResourceDigest(asset.resources[0].digest))
                try FileManager.default.removeItem(atPath: fixture.resources.path(of: digest))
                let refusal = ErrorCode.networkAccessRequired.error("the video is in the object store")
                fixture.catalog.fail(DownloadResource.method, refusal)
                let again = await Self.strip(asset, fixture)
                #expect(again == nil, "\(String(describing: again))")
                let other = ImageFrames(asset: asset.id, times: [500_000], targetSize: .size(width: 64, height: 64))
                let refused = await fixture.rpcError(other)
                #expect(refused?.errorCode == .networkAccessRequired, "\(String(describing: refused))")
            }
        }

        @Test func `an export whose file was removed for a newer one fails with limit_exceeded`() async throws {
            let video = try videos()[0]
            try await ThumbnailerFixture.open {
                $0.exportBytes = Int64(video.count) * 3 / 2
            } _: { fixture in
                var exports: [VideoExportStatus] = []
                // An empty `free` box at the end makes another file of the same video.
                for bytes in [video, video + [0, 0, 0, 8] + Array("free".utf8)] {
                    let asset = try Self.add(bytes, to: fixture)
                    let export = ExportVideo(asset: asset.id, preset: .passthrough)
                    var status = try await fixture.client.ask(export).result
                    while !status.state.isFinal {
                        let wait = WaitForVideoExport(export: status.export, wait: 5000)
                        status = try await fixture.client.ask(wait).result
                    }
                    #expect(status.state == .done, "\(status)")
                    exports.append(status)
                }
                let now = try await fixture.client.ask(WaitForVideoExport(export: exports[0].export)).result
                #expect(now.state == .failed && now.error?["name"] == "limit_exceeded", "\(now)")
                let read = ReadVideo(asset: now.asset, stream: now.export)
                #expect(await fixture.rpcError(read)?.errorCode == .limitExceeded)
                let other = try await fixture.client.ask(WaitForVideoExport(export: exports[1].export)).result
                #expect(other.state == .done)
            }
        }

        /// Writes headers of version 1 with the longest duration into a video whose index is at its end.
        private static func endless(_ video: [UInt8]) -> [UInt8] {
            var bytes = video
            for (name, before) in [("mvhd", ["moov"]), ("mdhd", ["moov", "trak", "mdia"])] {
                guard let offset = bytes.firstRange(of: Array(name.utf8))?.lowerBound, bytes.count > offset + 24 else {
                    continue
                }
                let scale = bytes[offset + 16..<offset + 20]
                let times: [UInt8] = [1, 0, 0, 0] + [UInt8](repeating: 0, count: 16) + scale
                // In microseconds this fits in 64 bits if a second has 1000 units or more.
                let length: [UInt8] = [0, 0x1F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]
                bytes.replaceSubrange(offset + 4..<offset + 24, with: times + length)
                grow([name] + before, by: 12, in: &bytes)
            }
            return bytes
        }

        /// Replaces the edit list of a video whose index is at its end by one of many equal entries.
        private static func looped(_ video: [UInt8], count: Int) -> [UInt8] {
            var bytes = video
            guard let offset = bytes.firstRange(of: Array("elst".utf8))?.lowerBound, bytes.count > offset + 24 else {
                return video
            }
            let entry = bytes[offset + 12..<offset + 24]
            let more = Array(repeatElement(entry, count: count).joined())
            bytes.insert(contentsOf: more, at: offset + 24)
            let total = UInt32(count + 1)
            for index in 0..<4 { bytes[offset + 8 + index] = UInt8(truncatingIfNeeded: total >> (24 - 8 * index)) }
            grow(["elst", "edts", "trak", "moov"], by: more.count, in: &bytes)
            return bytes
        }

        /// Adds to the sizes of the first boxes with these names.
        private static func grow(_ names: [String], by count: Int, in bytes: inout [UInt8]) {
            for name in names {
                guard let offset = bytes.firstRange(of: Array(name.utf8))?.lowerBound, offset >= 4 else { continue }
                let size = bytes[offset - 4..<offset].reduce(0) { $0 << 8 | Int($1) } + count
                for index in 0..<4 { bytes[offset - 4 + index] = UInt8(truncatingIfNeeded: size >> (24 - 8 * index)) }
            }
        }

        /// Requests a strip of four frames; returns the error of the request.
        private static func strip(_ asset: Asset, _ fixture: ThumbnailerFixture) async -> RPCError? {
            await fixture.rpcError(ImageFrames(asset: asset.id, count: 4, targetSize: .size(width: 64, height: 64)))
        }

        /// Returns the data of an edit that repeats one operation as often as a list may have it.
        private static func repeated(_ kind: AdjustmentKind, _ value: Double) -> [UInt8] {
            let operation = #"{"operation":"\#(kind.rawValue)","value":\#(value)}"#
            let operations = [String](repeating: operation, count: AdjustmentList.maximumCount).joined(separator: ",")
            return Array(#"{"version":1,"operations":[\#(operations)]}"#.utf8)
        }

        /// Adds a video as the render of an edit, with the edit's data.
        private static func edited(_ video: [UInt8], _ data: [UInt8], _ fixture: ThumbnailerFixture) throws -> Asset {
            var list = try fixture.catalog.add(data).resources[0]
            list.type = .adjustmentData
            return try fixture.catalog.add(video) { [list] asset in
                asset.mediaType = .video
                asset.resources[0].type = .fullSizeVideo
                asset.resources[0].contentType = VideoFileType.sniff(video)?.contentType ?? "public.mpeg-4"
                asset.resources.append(list)
            }
        }

        /// Exports a video in the smallest size; returns the name of the error if that fails.
        private static func export(_ asset: Asset, _ fixture: ThumbnailerFixture) async throws -> String? {
            var status: VideoExportStatus
            do throws(RPCError) {
                status = try await fixture.client.ask(ExportVideo(asset: asset.id, preset: .low)).result
                while !status.state.isFinal {
                    let wait = WaitForVideoExport(export: status.export, wait: 5000)
                    status = try await fixture.client.ask(wait).result
                }
                _ = try await fixture.client.ask(CancelVideoExport(export: status.export))
            } catch {
                return error.name
            }
            return status.error?["name"]?.stringValue
        }

        private static func add(_ bytes: [UInt8], to fixture: ThumbnailerFixture) throws -> Asset {
            try fixture.catalog.add(bytes) { asset in
                asset.mediaType = .video
                asset.resources[0].type = .video
                asset.resources[0].contentType = VideoFileType.sniff(bytes)?.contentType ?? "public.mpeg-4"
            }
        }
    }
}
