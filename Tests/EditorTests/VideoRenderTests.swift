import Foundation
import Hosting
import ImageFormats
import Imaging
import JSONValue
import PhotoModel
import TestSupport
import Testing
import Video

@testable import Editor

/// Compares lists of operations on videos with the same lists on photos of their frames.
@Suite(.timeLimit(.minutes(5)))
struct VideoRenderTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("videos") }

    private static let encoding = [
        "-c:v", "libx264", "-crf", "4", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-c:a", "aac",
    ]

    /// Creates a video of blurred shapes of all colours, because a video has one colour value for four pixels.
    private func makeVideo(
        _ name: String = "f.mp4",
        size: String = "640x480",
        seconds: Double = 1,
        _ options: [String] = []
    ) throws -> String {
        let path = folder.file(name)
        try FFmpegVideos.make(path, size: size, seconds: seconds, ["-vf", "gblur=sigma=5"] + Self.encoding + options)
        return path
    }

    private func list(_ operations: [(AdjustmentKind, JSONObject)]) throws -> AdjustmentList {
        AdjustmentList(operations: try operations.map { try Adjustment($0.0, $0.1) })
    }

    /// Renders a video as the worker does, and returns the path of the result.
    private func render(_ path: String, _ list: AdjustmentList, quality: Int = VideoEditWorker.renderQuality) throws
        -> String
    {
        let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
        let size = Int64(try handle.seekToEnd())
        var limits = VideoLimits()
        limits.bytes = .max
        let file = try VideoFile(
            descriptor: handle.fileDescriptor,
            range: 0..<size,
            limits: limits,
            isThorough: true
        )
        var settings = VideoExportSettings()
        settings.quality = quality
        let edit = try VideoEdit(list, file.info)
        var bytes: [UInt8] = []
        let sink = VideoExportSink(
            write: { part, position in
                let position = Int(position)
                if bytes.count < position + part.count {
                    bytes += [UInt8](repeating: 0, count: position + part.count - bytes.count)
                }
                bytes.replaceSubrange(position..<position + part.count, with: part)
                return true
            },
            progress: { _ in true }
        )
        _ = try file.export(settings, edit, to: sink)
        try? handle.close()
        let output = folder.file("out-\(UUID().uuidString).mp4")
        try Data(bytes).write(to: URL(fileURLWithPath: output))
        return output
    }

    /// Returns the frame at 0.4 seconds as rows of red, green and blue, and its size.
    private func frame(_ path: String, at time: Int64 = 400_000) throws -> (pixels: [UInt8], width: Int, height: Int) {
        let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
        defer { try? handle.close() }
        let file = try VideoFile(descriptor: handle.fileDescriptor, range: 0..<Int64(try handle.seekToEnd()))
        let (width, height) = (file.storedWidth, file.storedHeight)
        let frame = try file.frame(.at(time, tolerance: 0), width: width, height: height)
        return (frame.withPixels { Array(UnsafeRawBufferPointer(start: $0, count: 3 * width * height)) }, width, height)
    }

    private func psnr(_ first: [UInt8], _ second: [UInt8]) -> Double {
        first.isEmpty ? 0 : PixelDistance.psnr(first, second)
    }

    /// Compares the frame of an edited video with the edited frame.
    private func distance(_ list: AdjustmentList, of path: String) throws -> Double {
        let before = try frame(path)
        let head = Array("P6\n\(before.width) \(before.height)\n255\n".utf8)
        let still = try AdjustmentRendering.render(head + before.pixels, list, format: .png)
        let stillPath = folder.file("still.png")
        try Data(still.bytes).write(to: URL(fileURLWithPath: stillPath))
        let expected = [UInt8](try FFmpegVideos.frame(of: stillPath, at: 0))
        let found = try frame(try render(path, list))
        #expect((found.width, found.height) == (still.pixelWidth & ~1, still.pixelHeight & ~1))
        // An odd side of the video is one pixel shorter.
        let rows = (0..<found.height).flatMap { row in
            expected[3 * still.pixelWidth * row..<3 * (still.pixelWidth * row + found.width)]
        }
        return psnr(found.pixels, Array(rows))
    }

    private static let colours: [[(AdjustmentKind, JSONObject)]] = [
        [(.exposure, ["value": 0.7])], [(.temperature, ["value": 0.5]), (.tint, ["value": -0.3])],
        [(.contrast, ["value": 0.5]), (.saturation, ["value": 0.4])], [(.blackAndWhite, [:])], [(.sepia, [:])],
        [(.curve, ["master": [[0, 0.05], [0.4, 0.6], [1, 0.97]], "blue": [[0, 0.1], [1, 0.9]]])],
        [(.hsl, ["redHue": 0.5, "greenSaturation": -0.6, "blueLuminance": 0.4])],
        [(.splitToning, ["shadowSaturation": 0.4, "highlightSaturation": 0.5])],
        [
            (.exposure, ["value": 0.3]), (.temperature, ["value": 0.2]), (.contrast, ["value": 0.2]),
            (.highlights, ["value": -0.4]), (.shadows, ["value": 0.4]), (.whites, ["value": 0.2]),
            (.blacks, ["value": -0.2]), (.vibrance, ["value": 0.3]), (.hsl, ["orangeSaturation": 0.3]),
            (.levels, ["black": 0.03, "white": 0.97, "gamma": 1.1]),
            (.crop, ["x": 0.1, "y": 0.1, "width": 0.8, "height": 0.8]),
        ],
    ]

    @Test(arguments: colours.indices)
    func `colours of a video are those of a photo of its frame`(_ index: Int) throws {
        let distance = try distance(list(Self.colours[index]), of: makeVideo())
        print("video: \(Self.colours[index].map(\.0.rawValue).joined(separator: "+")) \(distance) dB")
        #expect(distance > 38, "\(Self.colours[index].map(\.0.rawValue)): \(distance) dB")
    }

    private static let geometries: [[(AdjustmentKind, JSONObject)]] = [
        [(.crop, ["x": 0.25, "y": 0.125, "width": 0.5, "height": 0.5])], [(.rotate, ["value": 90])],
        [(.rotate, ["value": 270]), (.flip, ["value": "horizontal"])], [(.flip, ["value": "vertical"])],
        [(.resize, ["width": 320])], [(.straighten, ["value": 6])],
        [(.perspective, ["topLeftX": 0.1, "topRightY": 0.08, "bottomRightX": 0.94])],
        [(.textWatermark, ["text": "Safelight", "opacity": 0.8, "colour": "#ffcc00"])],
    ]

    @Test(arguments: geometries.indices)
    func `geometry and watermarks of a video are those of a photo of its frame`(_ index: Int) throws {
        let distance = try distance(list(Self.geometries[index]), of: makeVideo())
        print("video: \(Self.geometries[index].map(\.0.rawValue).joined(separator: "+")) \(distance) dB")
        #expect(distance > 34, "\(Self.geometries[index].map(\.0)): \(distance) dB")
    }

    @Test func `a rotated video is edited as it is displayed`() throws {
        let stored = try makeVideo()
        let path = folder.file("turned.mp4")
        try FFmpegVideos.ffmpeg(["-i", stored, "-c", "copy", "-metadata:s:v:0", "rotate=90", path])
        let rendered = try frame(try render(path, try list([(.crop, ["x": 0, "y": 0, "width": 1, "height": 0.5])])))
        #expect((rendered.width, rendered.height) == (480, 320))
        let upright = folder.file("upright.mp4")
        try FFmpegVideos.ffmpeg(["-i", path] + Self.encoding + [upright])
        let whole = try frame(upright)
        #expect((whole.width, whole.height) == (480, 640))
        let distance = psnr(rendered.pixels, Array(whole.pixels.prefix(rendered.pixels.count)))
        #expect(distance > 34, "\(distance) dB")
    }

    /// Returns the digest of each track's packets.
    private func packets(_ path: String) throws -> String {
        let output = folder.file("hash")
        try FFmpegVideos.ffmpeg(["-i", path, "-map", "0", "-c", "copy", "-f", "streamhash", "-hash", "md5", output])
        return try String(contentsOfFile: output, encoding: .utf8)
    }

    @Test func `a neutral list does not change the tracks`() throws {
        let path = try makeVideo()
        let neutral = try render(path, try list([(.exposure, ["value": 0]), (.speed, [:]), (.volume, [:])]))
        #expect(try packets(neutral) == packets(path))
        // Only the audio track is encoded again, or removed.
        let video = try packets(path).split(separator: "\n").first { $0.contains(",v,") }
        let quiet = try packets(try render(path, try list([(.volume, ["value": 0.5])])))
        #expect(video != nil && quiet.split(separator: "\n").first { $0.contains(",v,") } == video)
        #expect(try quiet != packets(path) && quiet.contains(",a,"))
        let mute = try packets(try render(path, try list([(.volume, ["value": 0])])))
        #expect(mute.split(separator: "\n").first { $0.contains(",v,") } == video && !mute.contains(",a,"))
        let ofLivePhoto = AdjustmentList(livePhoto: LivePhotoAdjustment(audioVolume: 0, keyFrame: 1)).ofPairedVideo
        #expect(try packets(try render(path, ofLivePhoto)) == mute)
    }

    @Test func `a part of a video is cut out, faster or slower, with its audio`() throws {
        let path = try makeVideo(seconds: 3)
        for (start, end, speed) in [(0.5, 2.0, 1.0), (1.0, 3.0, 2.0), (0.0, 1.0, 0.4), (2.0, 10.0, 1.0)] {
            let rendered = try render(
                path,
                try list([
                    (.timeRange, ["start": .double(start), "end": .double(end)]), (.speed, ["value": .double(speed)]),
                ])
            )
            let info = try FFmpegVideos.probe(rendered)
            let json = try JSON(parsing: Array(info.utf8))
            let streams = json["streams"]?.arrayValue ?? []
            #expect(streams.count == 2)
            for stream in streams {
                let duration = Double(stream["duration"]?.stringValue ?? "") ?? 0
                let expected = (min(3, end) - start) / speed
                #expect(abs(duration - expected) < 0.15, "\(start)...\(end) x \(speed): \(duration)")
            }
            // The first frame is the frame at the start of the part.
            let first = try frame(rendered, at: 0)
            let expected = try frame(path, at: Int64(start * 1e6))
            #expect(psnr(first.pixels, expected.pixels) > 34)
        }
        #expect(throws: (any Error).self) {
            try render(path, try list([(.timeRange, ["start": 5, "end": 6])]))
        }
    }

    @Test func `a part in which no frame begins is refused, also by a preview`() throws {
        let path = try makeVideo()
        let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
        defer { try? handle.close() }
        /// Renders a frame as the worker does.
        func preview(_ list: AdjustmentList, at time: Int64? = nil) throws {
            let video = AssetResource(type: .video, digest: "", size: 0, contentType: "public.mpeg-4")
            let plan = VideoRenderPlan(video, list, frameTime: time, maximumSide: 160)
            let job = WorkerJob(
                method: VideoEditWorker.frameMethod,
                params: plan.json,
                files: [handle.fileDescriptor]
            )
            _ = try VideoEditWorker.frame(job)
        }
        for (start, end) in [(0.97, 0.99), (0.921, 0.959), (0.001, 0.03)] {
            let part = try list([(.timeRange, ["start": .double(start), "end": .double(end)])])
            #expect(throws: VideoError.emptyPart) { try render(path, part) }
            for time in [nil, Int64(400_000)] {
                let error = #expect(throws: WorkerJobError.self) { try preview(part, at: time) }
                #expect(error?.name == "invalid_params", "\(start) to \(end): \(error?.message ?? "")")
            }
        }
        let behind = try list([(.timeRange, ["start": 5, "end": 6])])
        let error = #expect(throws: WorkerJobError.self) { try preview(behind) }
        #expect(error?.name == "invalid_params" && error?.message.contains("timeRange") == true)
        let part = try list([(.timeRange, ["start": 0.9, "end": 0.93])])
        #expect(throws: Never.self) { try preview(part) }
        #expect(throws: Never.self) { try preview(part, at: 400_000) }
    }

    @Test func `audio that begins after the video does so at every speed`() throws {
        let path = folder.file("late.mp4")
        try FFmpegVideos.ffmpeg(
            [
                "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25:duration=3", "-itsoffset", "1", "-f", "lavfi",
                "-i", "sine=frequency=440:duration=2", "-map", "0:v", "-map", "1:a",
            ] + Self.encoding + [path]
        )
        for speed in [0.5, 1, 2] {
            let edits = try list([(.timeRange, ["start": 0, "end": 2.9]), (.speed, ["value": .double(speed)])])
            let rendered = try render(path, edits)
            let json = try JSON(parsing: Array(try FFmpegVideos.probe(rendered).utf8))
            let audio = json["streams"]?.arrayValue?.first { $0["codec_type"]?.stringValue == "audio" }
            let start = Double(audio?["start_time"]?.stringValue ?? "") ?? -1
            #expect(abs(start - 1 / speed) < 0.1, "x \(speed): \(start)")
        }
    }

    @Test func `frames whose size changes in the video are scaled to that of the first`() throws {
        let encoding = ["-c:v", "libvpx", "-b:v", "1M", "-deadline", "realtime"]
        try FFmpegVideos.make(folder.file("a.webm"), size: "640x480", seconds: 0.4, audio: false, encoding)
        let small = "color=0x20c040:size=64x64:rate=25:duration=0.8"
        try FFmpegVideos.ffmpeg(["-f", "lavfi", "-i", small] + encoding + [folder.file("b.webm")])
        let (parts, path) = (folder.file("parts.txt"), folder.file("both.webm"))
        try Data("file 'a.webm'\nfile 'b.webm'\n".utf8).write(to: URL(fileURLWithPath: parts))
        try FFmpegVideos.ffmpeg(["-f", "concat", "-safe", "0", "-i", parts, "-c", "copy", path])
        let edits: [[(AdjustmentKind, JSONObject)]] = [
            [(.crop, ["x": 0.5, "y": 0.5, "width": 0.5, "height": 0.5])], [(.rotate, ["value": 90])],
        ]
        for edit in edits {
            let (pixels, width, height) = try frame(try render(path, try list(edit)), at: 800_000)
            let expected = [[UInt8]](repeating: [0x20, 0xC0, 0x40], count: width * height).flatMap { $0 }
            let distance = psnr(pixels, expected)
            #expect(distance > 30, "\(edit): \(distance) dB")
        }
    }

    @Test func `a video whose codec the file cannot contain is encoded, also if only its audio changes`() throws {
        let path = folder.file("v.webm")
        try FFmpegVideos.make(path, ["-c:v", "libvpx", "-b:v", "2M", "-deadline", "realtime", "-c:a", "libopus"])
        let edits: [[(AdjustmentKind, JSONObject)]] = [[], [(.volume, ["value": 0.5])]]
        for edit in edits {
            let rendered = try render(path, try list(edit))
            #expect(try packets(rendered).contains(",a,"))
            let distance = psnr(try frame(rendered).pixels, try frame(path).pixels)
            #expect(distance > 34, "\(edit): \(distance) dB")
        }
    }

    @Test func `a part may begin among the frames that are displayed before a key frame`() throws {
        let path = folder.file("open.mp4")
        let groups = "log-level=none:open-gop=1:keyint=12:min-keyint=12:bframes=3:b-adapt=0:scenecut=0"
        let hevc = ["-c:v", "libx265", "-x265-params", groups, "-tag:v", "hvc1", "-pix_fmt", "yuv420p"]
        try FFmpegVideos.make(path, audio: false, hevc)
        let rendered = try render(path, try list([(.timeRange, ["start": 0.36, "end": 0.8])]))
        let json = try JSON(parsing: Array(try FFmpegVideos.probe(rendered).utf8))
        #expect(json["streams"]?.arrayValue?.first?["nb_frames"]?.stringValue == "11")
    }

    @Test func `audio whose format changes is encoded to its end`() throws {
        let encoding = ["-c:v", "mpeg2video", "-q:v", "3", "-c:a", "mp2"]
        try FFmpegVideos.make(folder.file("a.ts"), seconds: 2, encoding + ["-ac", "2"])
        let later = ["-ac", "1", "-output_ts_offset", "2"]
        try FFmpegVideos.make(folder.file("b.ts"), seconds: 2, encoding + later)
        let parts = try ["a.ts", "b.ts"].map { try Data(contentsOf: URL(fileURLWithPath: folder.file($0))) }
        let path = folder.file("both.ts")
        try (parts[0] + parts[1]).write(to: URL(fileURLWithPath: path))
        let crop: JSONObject = ["x": 0, "y": 0, "width": 0.5, "height": 0.5]
        let rendered = try render(path, try list([(.volume, ["value": 0.5]), (.crop, crop)]))
        let json = try JSON(parsing: Array(try FFmpegVideos.probe(rendered).utf8))
        let audio = json["streams"]?.arrayValue?.first { $0["codec_type"]?.stringValue == "audio" }
        let duration = Double(audio?["duration"]?.stringValue ?? "") ?? 0
        #expect(abs(duration - 4) < 0.3, "\(duration)")
    }

    @Test func `operations that videos do not have are refused`() throws {
        let path = try makeVideo()
        for kind in AdjustmentKind.all where ![.geometry, .colour, .overlay, .video].contains(kind.stage) {
            var members: JSONObject = [:]
            if let first = kind.parameters.first(where: { !$0.isModifier }), try Adjustment(kind).isNeutral {
                members[first.name] = 0.5
            }
            guard let operation = try? Adjustment(kind, members), !operation.isNeutral else { continue }
            let list = AdjustmentList(operations: [operation])
            #expect(VideoAdjustments.unsupported(list) == kind)
            #expect(throws: (any Error).self) { try render(path, list) }
        }
    }
}
