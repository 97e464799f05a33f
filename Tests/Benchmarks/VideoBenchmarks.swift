import Foundation
import Imaging
import JSONValue
import PhotoModel
import TestSupport
import Video

/// Frames of 256 pixels and exports, in this process, against the programs of FFmpeg and ffmpegthumbnailer.
enum VideoBenchmarks {
    static func run(_ bench: BenchmarkContext) async throws {
        guard bench.includes(group: "video") else { return }
        guard let ffmpeg = TestPaths.program("ffmpeg") else {
            return bench.addGap("video", "ffmpeg is not installed (Debian: ffmpeg)")
        }
        let folder = try bench.paths.folder("video")
        let seconds = bench.amount(12, quick: 3)
        let full = try await encodeVideo("\(folder)/full.mp4", "1920x1080", seconds, ["-c:v", "libx264"], ffmpeg)
        let large = try await encodeVideo(
            "\(folder)/large.mp4",
            "3840x2160",
            bench.amount(4, quick: 1),
            ["-c:v", "libx265", "-x265-params", "log-level=none"],
            ffmpeg
        )
        for (name, path, text) in [("1080p", full, "1080p H.264"), ("2160p", large, "4K HEVC")] {
            try await comparePoster(bench, "video.poster-\(name)", path, text, "ffmpeg -ss", ffmpeg) { output in
                ["-v", "error", "-y", "-ss", "0.5", "-i", path, "-frames:v", "1", "-vf", "scale=256:-2", output]
            }
            try await compareWithLibav(bench, "video.libav-\(name)", path, text)
            guard let thumbnailer = TestPaths.program("ffmpegthumbnailer") else {
                bench.addGap(
                    "video.thumbnailer-\(name)",
                    "ffmpegthumbnailer is not installed (Debian: ffmpegthumbnailer)"
                )
                continue
            }
            try await comparePoster(bench, "video.thumbnailer-\(name)", path, text, "ffmpegthumbnailer", thumbnailer) {
                output in
                ["-i", path, "-o", output, "-s", "256", "-t", "00:00:00"]
            }
        }
        try await compareStrip(bench, full, folder, ffmpeg)
        try await compareExport(bench, full, folder, ffmpeg)
        try await compareEdit(bench, full, folder, ffmpeg)
    }

    /// Writes a video of a moving test image with noise, and returns its path.
    private static func encodeVideo(
        _ path: String,
        _ size: String,
        _ seconds: Int,
        _ encoder: [String],
        _ ffmpeg: String
    ) async throws -> String {
        let source = "testsrc2=size=\(size):rate=30:duration=\(seconds),noise=alls=8:allf=t"
        let options = ["-preset", "veryfast", "-g", "60", "-pix_fmt", "yuv420p", "-c:a", "aac"]
        try await runProgram(
            ffmpeg,
            ["-v", "error", "-y", "-f", "lavfi", "-i", source, "-f", "lavfi", "-i", "sine=duration=\(seconds)"]
                + encoder + options + [path]
        )
        return path
    }

    /// Compares the time of one image of a video, from file to file, with that of another program.
    private static func comparePoster(
        _ bench: BenchmarkContext,
        _ name: String,
        _ path: String,
        _ text: String,
        _ peer: String,
        _ program: String,
        _ makeArguments: (_ output: String) -> [String]
    ) async throws {
        let arguments = makeArguments(path + ".jpg")
        try await bench.compare(
            [
                Comparison(
                    name: name,
                    ours: "Video.VideoFile and Imaging in process, one frame of \(text)",
                    peer: "\(peer), one process",
                    unit: "ms",
                    smallerIsBetter: true,
                    aim: .ratio(1)
                )
            ],
            ours: { [try await blockingSeconds { try writeFrames(path) } * 1000] },
            peer: { [try await Benchmarks.seconds { try await runProgram(program, arguments) } * 1000] }
        )
    }

    /// Compares the mean time of ten images of a video with that of FFmpeg's own libraries in one process.
    private static func compareWithLibav(
        _ bench: BenchmarkContext,
        _ name: String,
        _ path: String,
        _ text: String
    ) async throws {
        guard bench.includes(name) else { return }
        let peer: LibavPeer
        do { peer = try await LibavPeer(bench) } catch { return bench.addGap(name, "\(error)") }
        let count = 10
        func meanTime(_ draw: () async throws -> Void) async throws -> [Double] {
            let seconds = try await Benchmarks.seconds { for _ in 0..<count { try await draw() } }
            return [seconds / Double(count) * 1000]
        }
        try await bench.compare(
            [
                Comparison(
                    name: name,
                    ours: "Video.VideoFile and Imaging in process, one frame of \(text)",
                    peer: "libavformat, libavcodec and libswscale in process",
                    unit: "ms",
                    smallerIsBetter: true,
                    aim: .ratio(1.1)
                )
            ],
            ours: { try await meanTime { try writeFrames(path) } },
            peer: { try await meanTime { try await peer.draw(path, path + ".libav.jpg") } }
        )
    }

    /// Compares the time of fifty images at even intervals, for which the video is decoded once.
    private static func compareStrip(_ bench: BenchmarkContext, _ path: String, _ folder: String, _ ffmpeg: String)
        async throws
    {
        let seconds = bench.amount(12, quick: 3)
        let arguments = [
            "-v", "error", "-y", "-threads", "1", "-i", path, "-vf", "fps=50/\(seconds),scale=256:-2", "-frames:v",
            "50",
            "\(folder)/strip-%d.jpg",
        ]
        let times = (0..<50).map { Int64($0) * Int64(seconds) * 1_000_000 / 50 }
        try await bench.compare(
            [
                Comparison(
                    name: "video.strip",
                    ours: "Video.VideoFile and Imaging in process, 50 images of a video",
                    peer: "ffmpeg with one thread, one decode",
                    unit: "s",
                    smallerIsBetter: true,
                    aim: .ratio(1)
                )
            ],
            ours: { [try await blockingSeconds { try writeFrames(path, at: times) }] },
            peer: { [try await Benchmarks.seconds { try await runProgram(ffmpeg, arguments) }] }
        )
    }

    /// Writes a JPEG of each frame, from one pass over the file.
    private static func writeFrames(_ path: String, at times: [Int64] = [500_000]) throws {
        let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
        defer { try? handle.close() }
        let size = Int64(try handle.seekToEnd())
        let file = try VideoFile(descriptor: handle.fileDescriptor, range: 0..<size)
        let options = RenditionOptions(target: .size(width: 256, height: 256), quality: 85)
        for time in times {
            let rendition = try FrameRendition(
                width: file.storedWidth,
                height: file.storedHeight,
                orientation: file.orientation,
                [options],
                limits: PixelLimits()
            )
            let frame = try file.frame(
                .at(time, tolerance: 0),
                width: rendition.decodedWidth,
                height: rendition.decodedHeight
            )
            let images = try frame.withPixels { pixels throws(ImagingError) in try rendition.render(pixels) }
            try Data(images[0].bytes).write(to: URL(fileURLWithPath: "\(path)-\(time).jpg"))
        }
    }

    private static func compareExport(_ bench: BenchmarkContext, _ path: String, _ folder: String, _ ffmpeg: String)
        async throws
    {
        let arguments = [
            "-v", "error", "-y", "-i", path, "-vf", "scale=1280:720:flags=bicubic+accurate_rnd", "-c:v", "libx264",
            "-preset", "veryfast", "-crf", "21", "-pix_fmt", "yuv420p", "-c:a", "copy", "\(folder)/peer.mp4",
        ]
        try await bench.compare(
            [
                Comparison(
                    name: "video.export",
                    ours: "Video.VideoFile.export in process, 1080p to 720p",
                    peer: "ffmpeg with the same encoder settings",
                    unit: "s",
                    smallerIsBetter: true,
                    aim: .ratio(1.1)
                )
            ],
            ours: { [try await blockingSeconds { try export(path, "\(folder)/ours.mp4") }] },
            peer: { [try await Benchmarks.seconds { try await runProgram(ffmpeg, arguments) }] }
        )
    }

    /// Compares the time of ten operations on colours and a crop with that of the same crop alone.
    private static func compareEdit(_ bench: BenchmarkContext, _ path: String, _ folder: String, _ ffmpeg: String)
        async throws
    {
        let arguments = [
            "-v", "error", "-y", "-i", path, "-vf", "crop=1728:972:96:54", "-c:v", "libx264", "-preset", "veryfast",
            "-crf", "21", "-pix_fmt", "yuv420p", "-c:a", "copy", "\(folder)/plain.mp4",
        ]
        try await bench.compare(
            [
                Comparison(
                    name: "video.edit",
                    ours: "Video.VideoFile.export in process, ten operations on colours and a crop, 1080p",
                    peer: "ffmpeg with the same encoder settings, the crop alone",
                    unit: "s",
                    smallerIsBetter: true,
                    aim: .ratio(1.3)
                )
            ],
            ours: {
                [try await blockingSeconds { try export(path, "\(folder)/edited.mp4", try tenColourOperations()) }]
            },
            peer: { [try await Benchmarks.seconds { try await runProgram(ffmpeg, arguments) }] }
        )
    }

    /// Returns ten operations on colours and a crop, for a video of 1920 by 1080 pixels.
    private static func tenColourOperations() throws -> VideoEdit {
        let values: [(AdjustmentKind, Double)] = [
            (.exposure, 0.3), (.brightness, 0.05), (.contrast, 0.1), (.highlights, -0.2), (.shadows, 0.2),
            (.whites, 0.1), (.blacks, -0.1), (.temperature, 0.1), (.saturation, 0.2), (.vibrance, 0.2),
        ]
        var list = AdjustmentList(operations: try values.map { try Adjustment($0, ["value": .double($1)]) })
        list.operations.append(
            try Adjustment(
                .crop,
                ["x": .double(0.05), "y": .double(0.05), "width": .double(0.9), "height": .double(0.9)]
            )
        )
        let adjustments = try VideoAdjustments(list, width: 1920, height: 1080)
        var edit = VideoEdit()
        if case .part(let x, let y, let width, let height, let orientation) = adjustments.geometry {
            edit.frameChanges = VideoEdit.FrameChanges(
                geometry: .part(x: x, y: y, width: width, height: height, orientation: orientation),
                width: adjustments.width,
                height: adjustments.height
            )
        }
        edit.frameChanges?.recolour = { colours in try? adjustments.recolour(&colours) }
        return edit
    }

    private static func export(_ path: String, _ output: String, _ edit: VideoEdit? = nil) throws {
        let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
        defer { try? handle.close() }
        let size = Int64(try handle.seekToEnd())
        try Data().write(to: URL(fileURLWithPath: output))
        let target = try FileHandle(forWritingTo: URL(fileURLWithPath: output))
        defer { try? target.close() }
        let descriptor = target.fileDescriptor
        var limits = VideoLimits()
        (limits.bytes, limits.totalSeconds) = (.max, 3600)
        let file = try VideoFile(descriptor: handle.fileDescriptor, range: 0..<size, limits: limits, isThorough: true)
        var settings = VideoExportSettings()
        if edit == nil { settings.box = .init(1280, 720) }
        settings.threads = ProcessInfo.processInfo.activeProcessorCount
        let sink = VideoExportSink(
            write: { bytes, position in
                pwrite(descriptor, bytes.baseAddress, bytes.count, off_t(position)) == bytes.count
            },
            progress: { _ in true }
        )
        _ = try file.export(settings, edit, to: sink)
    }
}
