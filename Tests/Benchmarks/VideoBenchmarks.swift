import Foundation
import Imaging
import TestSupport
import Video

/// Frames of 256 pixels and exports, in this process, beside the programs of FFmpeg and ffmpegthumbnailer.
enum VideoBenchmarks {
    static func run(_ bench: BenchmarkContext) async throws {
        guard bench.wants("video") else { return }
        guard let ffmpeg = TestPaths.program("ffmpeg") else {
            return bench.gap("video", "ffmpeg is not installed (Debian: ffmpeg)")
        }
        let folder = try bench.place.folder("video")
        let seconds = bench.amount(12, quick: 3)
        let full = try await film("\(folder)/full.mp4", "1920x1080", seconds, ["-c:v", "libx264"], ffmpeg)
        let large = try await film(
            "\(folder)/large.mp4",
            "3840x2160",
            bench.amount(4, quick: 1),
            ["-c:v", "libx265", "-x265-params", "log-level=none"],
            ffmpeg
        )
        for (name, path, what) in [("1080p", full, "1080p H.264"), ("2160p", large, "4K HEVC")] {
            try await poster(bench, "video.poster-\(name)", path, what, "ffmpeg -ss", ffmpeg) { output in
                ["-v", "error", "-y", "-ss", "0.5", "-i", path, "-frames:v", "1", "-vf", "scale=256:-2", output]
            }
            guard let thumbnailer = TestPaths.program("ffmpegthumbnailer") else {
                bench.gap("video.thumbnailer-\(name)", "ffmpegthumbnailer is not installed (Debian: ffmpegthumbnailer)")
                continue
            }
            try await poster(bench, "video.thumbnailer-\(name)", path, what, "ffmpegthumbnailer", thumbnailer) {
                output in
                ["-i", path, "-o", output, "-s", "256", "-t", "00:00:00"]
            }
        }
        try await export(bench, full, folder, ffmpeg)
    }

    private static func film(
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

    /// Compares one image of a film, from file to file, with that of a program.
    private static func poster(
        _ bench: BenchmarkContext,
        _ name: String,
        _ path: String,
        _ what: String,
        _ peer: String,
        _ program: String,
        _ words: (_ output: String) -> [String]
    ) async throws {
        let arguments = words(path + ".jpg")
        try await bench.compare(
            [
                Comparison(
                    name: name,
                    ours: "Video.VideoFile and Imaging in process, one frame of \(what)",
                    peer: "\(peer), one process",
                    unit: "ms",
                    smallerIsBetter: true,
                    aim: .ratio(1)
                )
            ],
            ours: { [try await blockingSeconds { try draw(path) } * 1000] },
            peer: { [try await Benchmarks.seconds { try await runProgram(program, arguments) } * 1000] }
        )
    }

    private static func draw(_ path: String) throws {
        let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
        defer { try? handle.close() }
        let size = Int64(try handle.seekToEnd())
        let file = try VideoFile(descriptor: handle.fileDescriptor, range: 0..<size)
        let options = RenditionOptions(target: .size(width: 256, height: 256), quality: 85)
        let rendition = try FrameRendition(
            width: file.storedWidth,
            height: file.storedHeight,
            orientation: file.orientation,
            [options],
            limits: PixelLimits()
        )
        let frame = try file.frame(
            .at(500_000, tolerance: 0),
            width: rendition.decodedWidth,
            height: rendition.decodedHeight
        )
        let images = try frame.withPixels { pixels throws(ImagingError) in try rendition.render(pixels) }
        try Data(images[0].bytes).write(to: URL(fileURLWithPath: path + ".ours.jpg"))
    }

    private static func export(_ bench: BenchmarkContext, _ path: String, _ folder: String, _ ffmpeg: String)
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
            ours: { [try await blockingSeconds { try write(path, "\(folder)/ours.mp4") }] },
            peer: { [try await Benchmarks.seconds { try await runProgram(ffmpeg, arguments) }] }
        )
    }

    private static func write(_ path: String, _ output: String) throws {
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
        settings.box = .init(1280, 720)
        settings.threads = ProcessInfo.processInfo.activeProcessorCount
        let sink = VideoExportSink(
            write: { bytes, position in
                pwrite(descriptor, bytes.baseAddress, bytes.count, off_t(position)) == bytes.count
            },
            progress: { _ in true }
        )
        _ = try file.export(settings, to: sink)
    }
}
