import Contracts
import Foundation
import ImageFormats
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

@testable import Thumbnailer

extension ThumbnailerWorkerTests {
    /// Damaged videos: each is shown or refused by name, and the service goes on.
    @Suite(.timeLimit(.minutes(20)))
    struct HostileVideoTests {
        private static let films: [(name: String, options: [String])] = [
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

        private func films() throws -> [[UInt8]] {
            let folder = try TemporaryFolder("bad")
            return try Self.films.map { name, options in
                try TestFilms.make(folder.file(name), size: "176x144", rate: 10, seconds: 1, options)
                return [UInt8](try Data(contentsOf: URL(fileURLWithPath: folder.file(name))))
            }
        }

        /// Changes bytes, sizes or names of boxes, or the length of the file.
        private func damaged(_ film: [UInt8], using random: inout SeededRandom) -> [UInt8] {
            var bytes = film
            // Headers are at both ends.
            func place() -> Int {
                let edge = min(bytes.count, 3000)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: return Int.random(in: 0..<edge, using: &random)
                case 1: return bytes.count - 1 - Int.random(in: 0..<edge, using: &random)
                default: return Int.random(in: 0..<bytes.count, using: &random)
                }
            }
            for _ in 0..<Int.random(in: 1...8, using: &random) {
                let at = place()
                switch Int.random(in: 0..<6, using: &random) {
                case 0: bytes[at] = UInt8.random(in: 0...255, using: &random)
                case 1: bytes[at] ^= 1 << UInt8.random(in: 0..<8, using: &random)
                case 2: for index in at..<min(bytes.count, at + 4) { bytes[index] = 0xFF }
                case 3: for index in at..<min(bytes.count, at + 4) { bytes[index] = 0 }
                case 4 where bytes.count > 400: bytes.removeSubrange(at..<min(bytes.count, at + 40))
                default: bytes.insert(contentsOf: bytes[at..<min(bytes.count, at + 24)], at: at)
                }
            }
            if Int.random(in: 0..<10, using: &random) == 0 { bytes = Array(bytes.prefix(max(200, place()))) }
            return bytes
        }

        @Test func `each damaged video is shown or refused by name, and the service goes on`() async throws {
            let films = try films()
            var random = SeededRandom(named: "damaged videos")
            var files: [[UInt8]] = []
            for round in 0..<TestEnvironment.rounds(200) {
                files.append(damaged(films[round % films.count], using: &random))
            }
            try await ThumbnailerFixture.open { [files] fixture in
                let good = try Self.add(films[0], to: fixture)
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
                    for error in [
                        await fixture.rpcError(VideoPlayback(asset: asset.id)),
                        await fixture.rpcError(VideoAsset(asset: asset.id)),
                    ] {
                        if let error { refused[error.name, default: 0] += 1 }
                    }
                }
                let names: Set = ["invalid_resource", "unsupported_format", "limit_exceeded", "worker_crashed"]
                #expect(Set(refused.keys).isSubset(of: names), "\(refused)")
                #expect(shown > files.count / 10, "\(shown) of \(files.count)")
                TestPaths.report("\(files.count) damaged videos: \(shown) shown, refused \(refused)")
                // The service still makes images.
                _ = try await fixture.image(ImageRequest(asset: good.id, targetSize: .size(width: 100, height: 100)))
            }
        }

        @Test func `absurd sizes, loops of edits and endless tables end within the limits`() async throws {
            let film = try films()[0]
            var files: [[UInt8]] = []
            /// Replaces the bytes at a distance after each occurrence of a box's name.
            func changed(_ box: String, _ distance: Int, _ value: [UInt8]) -> [UInt8] {
                var bytes = film
                let name = Array(box.utf8)
                for at in 0..<(bytes.count - name.count) where Array(bytes[at..<at + name.count]) == name {
                    for (index, byte) in value.enumerated() where at + distance + index < bytes.count {
                        bytes[at + distance + index] = byte
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

        @Test func `a film of an unknown codec is refused an export by name`() async throws {
            var film = try films()[0]
            let table = try #require(film.indices.first { film[$0...].starts(with: "stsd".utf8) })
            let name = try #require(film.indices[table...].first { film[$0...].starts(with: "avc1".utf8) })
            film.replaceSubrange(name..<name + 4, with: Array("avc5".utf8))
            try await ThumbnailerFixture.open { [film] fixture in
                let asset = try Self.add(film, to: fixture)
                let refused = try await Self.export(asset, fixture)
                #expect(refused == "unsupported_format")
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
