import Foundation
import TestSupport
import Testing
import Video

/// Tests of exports of videos.
@Suite(.timeLimit(.minutes(5)))
struct VideoExportTests {
    /// Exports a video into a file of its own.
    private static func export(
        _ video: VideoFixture,
        _ settings: VideoExportSettings,
        progress: @escaping (Int64) -> Bool = { _ in true }
    ) throws -> (VideoFixture, VideoExportResult) {
        var bytes: [UInt8] = []
        let sink = VideoExportSink(
            write: { part, position in
                let position = Int(position)
                if bytes.count < position + part.count {
                    bytes += [UInt8](repeating: 0, count: position + part.count - bytes.count)
                }
                for (index, byte) in part.enumerated() { bytes[position + index] = byte }
                return true
            },
            progress: progress
        )
        var limits = VideoLimits()
        limits.bytes = .max
        let result = try video.open(limits: limits, isThorough: true) { file in try file.export(settings, to: sink) }
        #expect(Int64(bytes.count) == result.size)
        return (try VideoFixture("out.mp4") { try Data(bytes).write(to: URL(fileURLWithPath: $0)) }, result)
    }

    private static func video(_ name: String = "f.mp4", rotation: Int = 0, _ options: [String] = []) throws
        -> VideoFixture
    {
        try VideoFixture(name) { path in
            let h264 = ["-c:v", "libx264", "-crf", "10", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-c:a", "aac"]
            guard rotation > 0 else { return try FFmpegVideos.make(path, size: "640x480", seconds: 1, h264 + options) }
            try FFmpegVideos.make(path + ".mp4", size: "640x480", seconds: 1, h264)
            try FFmpegVideos.ffmpeg(["-i", path + ".mp4", "-c", "copy", "-metadata:s:v:0", "rotate=\(rotation)", path])
        }
    }

    @Test(.spec("S-60"), arguments: [0, 90, 180, 270])
    func `the output is upright and its frames equal those of the video`(_ rotation: Int) throws {
        let video = try Self.video(rotation: rotation)
        var settings = VideoExportSettings()
        settings.box = .init(320, 240)
        settings.quality = 10
        let (exported, result) = try Self.export(video, settings)
        let isPortrait = rotation % 180 == 90
        #expect((result.pixelWidth, result.pixelHeight) == (isPortrait ? (240, 320) : (320, 240)))
        let info = try exported.info()
        #expect((info.pixelWidth, info.pixelHeight, info.orientation) == (result.pixelWidth, result.pixelHeight, 1))
        #expect(info.tracks.map(\.codec) == ["h264", "aac"] && abs(info.duration - 1_000_000) < 60_000)
        // The expected frames are rotated and scaled by ffmpeg. Only the luminance is compared, because the colours of
        // both have half of the pixels, at different positions.
        let scale = "scale=\(result.pixelWidth):\(result.pixelHeight):flags=bicubic+accurate_rnd,format=gray"
        for time in [0.0, 0.48] {
            let expected = try FFmpegVideos.frame(of: video.path, at: time, filter: scale)
            let found = try FFmpegVideos.frame(of: exported.path, at: time, filter: "format=gray")
            let psnr = VideoFixture.psnr(found, expected)
            #expect(psnr > 40, "\(rotation) degrees at \(time): \(psnr) dB")
        }
    }

    /// Returns the luminance of the frame at 0.4 seconds.
    private static func luminance(of video: VideoFixture) throws -> [UInt8] {
        let pixels = try video.frame(.at(400_000, tolerance: 0)).pixels
        return stride(from: 0, to: pixels.count, by: 3).map { index in
            let (red, green, blue) = (Int(pixels[index]), Int(pixels[index + 1]), Int(pixels[index + 2]))
            return UInt8((2126 * red + 7152 * green + 722 * blue) / 10_000)
        }
    }

    @Test(.spec("S-60")) func `high dynamic range is mapped in the same way as in frames, or kept in HEVC`() throws {
        let video = try VideoFixture("hdr.mp4") { path in
            try FFmpegVideos.make(
                path,
                audio: false,
                [
                    "-vf", "scale=out_color_matrix=bt2020,format=yuv420p10le", "-c:v", "libx265", "-x265-params",
                    "log-level=none:crf=10:colorprim=bt2020:transfer=smpte2084:colormatrix=bt2020nc", "-tag:v", "hvc1",
                ]
            )
        }
        var settings = VideoExportSettings()
        settings.quality = 8
        let (mapped, _) = try Self.export(video, settings)
        let info = try mapped.info()
        #expect((info.isHDR, info.primaries, info.transfer, info.matrix) == (false, "bt709", "bt709", "bt709"))
        let psnr = VideoFixture.psnr(try Self.luminance(of: mapped), try Self.luminance(of: video))
        #expect(psnr > 40, "\(psnr) dB")
        settings.isHEVC = true
        let unmapped = try Self.export(video, settings).0.info()
        #expect((unmapped.isHDR, unmapped.transfer, unmapped.primaries) == (true, "smpte2084", "bt2020"))
        #expect(unmapped.tracks.first?.bitDepth == 10 && unmapped.tracks.first?.tag == "hvc1")
    }

    @Test(arguments: [("480x848", "bt709"), ("848x480", "smpte170m")])
    func `a video without a matrix is exported with the matrix for its number of lines`(
        _ size: String,
        _ matrix: String
    ) throws {
        let video = try VideoFixture("f.mp4") { path in
            let h264 = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p"]
            try FFmpegVideos.make(path, size: size, seconds: 0.2, audio: false, h264)
        }
        #expect(try Self.export(video, VideoExportSettings()).0.info().matrix == matrix)
    }

    @Test func `a video that is stored as red, green and blue keeps its colours`() throws {
        let video = try VideoFixture("rgb.mkv") { path in
            try FFmpegVideos.ffmpeg([
                "-f", "lavfi", "-i", "color=0x20c040:size=1280x720:rate=25:duration=0.2", "-c:v", "ffv1", "-pix_fmt",
                "bgr0", path,
            ])
        }
        let before = try video.frame(.at(0, tolerance: 0)).pixels
        let after = try Self.export(video, VideoExportSettings()).0.frame(.at(0, tolerance: 0)).pixels
        #expect(VideoFixture.psnr(after, before) > 36)
    }

    @Test func `the progress is reported, and the export stops when the closure returns false`() throws {
        let video = try Self.video()
        var times: [Int64] = []
        _ = try Self.export(video, VideoExportSettings()) { time in
            times.append(time)
            return true
        }
        #expect(times.count > 3 && times == times.sorted() && times.allSatisfy { $0 <= 1_000_000 }, "\(times)")
        #expect(throws: VideoError.stopped) { try Self.export(video, VideoExportSettings()) { _ in false } }
        var settings = VideoExportSettings()
        settings.maxBytes = 2000
        #expect(throws: VideoError.outputTooLarge(limit: 2000)) { try Self.export(video, settings) }
    }

    @Test func `tracks are copied with their matrix, if the container can contain them`() throws {
        var settings = VideoExportSettings()
        settings.isCopied = true
        let video = try Self.video(rotation: 90)
        let (exported, result) = try Self.export(video, settings)
        #expect((result.pixelWidth, result.pixelHeight) == (480, 640))
        let info = try exported.info()
        #expect(info.tracks.map(\.codec) == ["h264", "aac"])
        let orientation = try video.info().orientation
        #expect(info.orientation == orientation && orientation >= 5)
        let webm = try VideoFixture("f.webm") { path in
            try FFmpegVideos.make(path, ["-c:v", "libvpx", "-b:v", "1M", "-deadline", "realtime", "-c:a", "libopus"])
        }
        #expect(throws: VideoError.notCopied("vp8")) { try Self.export(webm, settings) }
        // The container can contain this video codec, but not this audio codec.
        let trueHD = try Self.video("f.mkv", ["-c:a", "truehd", "-strict", "-2"])
        #expect(throws: VideoError.notEncoded) { try Self.export(trueHD, settings) }
    }

    /// Creates a HEVC video, and replaces boxes in its header.
    private static func hevc(_ boxes: [(String, String, [UInt8])]) throws -> VideoFixture {
        try VideoFixture("boxes.mp4") { path in
            let options = [
                "-c:v", "libx265", "-x265-params", "log-level=none", "-tag:v", "hvc1", "-pix_fmt", "yuv420p",
            ]
            try FFmpegVideos.make(path, seconds: 0.2, audio: false, options)
            var bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
            for (old, new, content) in boxes {
                let position = try #require(bytes.firstRange(of: Array(old.utf8))?.lowerBound)
                bytes.replaceSubrange(position..<position + 4 + content.count, with: Array(new.utf8) + content)
            }
            try Data(bytes).write(to: URL(fileURLWithPath: path))
        }
    }

    @Test func `a copied track keeps Dolby Vision, and an encoded one keeps the maximum brightness`() throws {
        let light: (String, String, [UInt8]) = ("pasp", "clli", [0x0F, 0xA0, 0x01, 0x90])
        let peak = "\"max_content\": 4000"
        var settings = VideoExportSettings()
        settings.isHEVC = true
        let (encoded, _) = try Self.export(try Self.hevc([light]), settings)
        #expect(try FFmpegVideos.probe(encoded.path).contains(peak))
        // The profile of Dolby Vision is 5.
        let vision = try Self.hevc([light, ("btrt", "dvcC", [1, 0, 0x0A, 0x0D, 0])])
        #expect(throws: VideoError.unsupportedCodec("hevc")) { try Self.export(vision, settings) }
        settings.isCopied = true
        let (copied, _) = try Self.export(vision, settings)
        #expect(try copied.info().dolbyVision == 5)
        #expect(try FFmpegVideos.probe(copied.path).contains(peak))
    }

    @Test func `an odd side is one pixel shorter`() throws {
        let video = try VideoFixture("odd.mkv") { path in
            try FFmpegVideos.make(
                path,
                size: "321x241",
                seconds: 0.2,
                audio: false,
                ["-c:v", "ffv1", "-pix_fmt", "yuv444p"]
            )
        }
        let (exported, result) = try Self.export(video, VideoExportSettings())
        #expect((result.pixelWidth, result.pixelHeight) == (320, 240))
        let info = try exported.info()
        #expect((info.pixelWidth, info.pixelHeight) == (320, 240))
    }

    @Test func `joined recordings follow each other`() throws {
        let video = try VideoFixture("joined.ts") { path in
            try FFmpegVideos.make(path, seconds: 2, ["-c:v", "mpeg2video", "-q:v", "3", "-c:a", "mp2"])
            let part = try Data(contentsOf: URL(fileURLWithPath: path))
            try (part + part).write(to: URL(fileURLWithPath: path))
        }
        let (exported, _) = try Self.export(video, VideoExportSettings())
        let tracks = try exported.info().tracks
        #expect(tracks.map(\.codec) == ["h264", "aac"])
        for track in tracks {
            #expect(abs(track.duration - 4_000_000) < 300_000, "\(track.codec): \(track.duration)")
        }
        #expect((95...101).contains(tracks.first?.frameCount ?? 0), "\(tracks.first?.frameCount ?? 0) frames")
    }

    @Test func `joined recordings with hours between their times follow each other`() throws {
        let video = try VideoFixture("hours.ts") { path in
            var joined = Data()
            for hours in [0, 2] {
                let options = ["-c:v", "mpeg2video", "-q:v", "3", "-c:a", "mp2"]
                try FFmpegVideos.make(path, seconds: 2, options + ["-output_ts_offset", "\(hours * 3600)"])
                joined += try Data(contentsOf: URL(fileURLWithPath: path))
            }
            try joined.write(to: URL(fileURLWithPath: path))
        }
        let (exported, _) = try Self.export(video, VideoExportSettings())
        for track in try exported.info().tracks {
            #expect(abs(track.duration - 4_000_000) < 300_000, "\(track.codec): \(track.duration)")
        }
    }

    /// Tests the stream identifiers of video and audio in an MPEG transport stream.
    @Test(arguments: [0xE0, 0xC0] as [UInt8])
    func `a damaged time stamp does not change the durations`(_ stream: UInt8) throws {
        let video = try VideoFixture("damaged.ts") { path in
            try FFmpegVideos.make(path, seconds: 2, ["-c:v", "mpeg2video", "-q:v", "3", "-c:a", "mp2"])
            var bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
            let header: [UInt8] = [0, 0, 1, stream]
            let position = try #require(bytes[(bytes.count / 2)...].firstRange(of: header)?.lowerBound)
            // This is the highest bit of the time, 13 hours.
            bytes[position + 9] ^= 8
            try Data(bytes).write(to: URL(fileURLWithPath: path))
        }
        let (exported, _) = try Self.export(video, VideoExportSettings())
        let tracks = try exported.info().tracks
        #expect(tracks.map(\.codec) == ["h264", "aac"])
        for track in tracks {
            #expect(abs(track.duration - 2_000_000) < 300_000, "\(track.codec): \(track.duration)")
        }
        #expect((47...50).contains(tracks.first?.frameCount ?? 0), "\(tracks.first?.frameCount ?? 0) frames")
    }

    @Test func `audio that begins late is exported`() throws {
        // More than ten thousand frames precede the audio, and its codec is not copied.
        let video = try VideoFixture("late.mkv") { path in
            try FFmpegVideos.ffmpeg([
                "-f", "lavfi", "-i", "color=gray:size=64x64:rate=500:duration=20.6", "-itsoffset", "20.4", "-f",
                "lavfi", "-i", "sine=duration=0.2", "-map", "0:v", "-map", "1:a", "-c:v", "libx264", "-preset",
                "ultrafast", "-pix_fmt", "yuv420p", "-c:a", "flac", path,
            ])
        }
        let (exported, _) = try Self.export(video, VideoExportSettings())
        #expect(try exported.info().tracks.map(\.codec) == ["h264", "aac"])
    }

    @Test func `of frames with equal times only the first is encoded`() throws {
        // The times of this container are milliseconds.
        let video = try VideoFixture("dense.mkv") { path in
            let h264 = ["-c:v", "libx264", "-preset", "ultrafast", "-bf", "0", "-pix_fmt", "yuv420p"]
            try FFmpegVideos.make(path, rate: 2000, seconds: 0.1, audio: false, h264)
        }
        let (exported, _) = try Self.export(video, VideoExportSettings())
        let frames = try exported.info().tracks.first?.frameCount ?? 0
        #expect((95...105).contains(frames), "\(frames) frames")
    }

    @Test(arguments: ["early.mp4", "early.mov", "early.mkv"], [0.5, 12])
    func `audio before the first frame is kept`(_ name: String, seconds: Double) throws {
        let video = try VideoFixture(name) { path in
            let silent = path + ".mp4"
            let h264 = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p"]
            try FFmpegVideos.make(silent, seconds: 2, audio: false, h264)
            try FFmpegVideos.ffmpeg([
                "-itsoffset", "\(seconds)", "-i", silent, "-f", "lavfi", "-i", "sine=duration=\(seconds + 2)", "-map",
                "0:v", "-map", "1:a", "-c:v", "copy", "-c:a", "aac", path,
            ])
        }
        let tracks = try Self.export(video, VideoExportSettings()).0.info().tracks
        let (videoTrack, audioTrack) = (try #require(tracks.first), try #require(tracks.last))
        let lead = Int64(seconds * 1e6)
        #expect(abs(videoTrack.start - audioTrack.start - lead) < 60_000, "\(videoTrack.start) and \(audioTrack.start)")
        #expect(abs(audioTrack.duration - lead - 2_000_000) < 60_000, "\(audioTrack.duration)")
    }

    /// Returns the fraction of values that differ clearly, and in the same direction, from those above and below them.
    private static func combing(_ pixels: some Collection<UInt8>, width: Int) -> Double {
        let (values, step) = (pixels.map { Int($0) }, 3 * width)
        let inner = step..<(values.count - step)
        let combed = inner.count { index in
            let (above, below) = (values[index - step], values[index + step])
            let (up, down) = (values[index] - above, values[index] - below)
            return (up > 0) == (down > 0) && min(abs(up), abs(down)) > 12 + abs(above - below)
        }
        return Double(combed) / Double(inner.count)
    }

    @Test func `an interlaced video becomes progressive, and its frames have no combs`() throws {
        let moving = "testsrc2=size=320x240:rate=50:duration=2"
        let video = try VideoFixture("fields.mpg") { path in
            try FFmpegVideos.ffmpeg([
                "-f", "lavfi", "-i", "\(moving),tinterlace=interleave_top", "-c:v", "mpeg2video", "-flags",
                "+ildct+ilme", "-q:v", "2", "-top", "1", path,
            ])
        }
        let fields = Self.combing(try FFmpegVideos.frame(of: video.path, at: 1), width: 320)
        #expect(Self.combing(try video.frame(.at(1_000_000, tolerance: 0)).pixels, width: 320) < fields / 2)
        let (exported, _) = try Self.export(video, VideoExportSettings())
        #expect(Self.combing(try FFmpegVideos.frame(of: exported.path, at: 1), width: 320) < fields / 2)
        #expect((48...51).contains(try exported.info().tracks.first?.frameCount ?? 0))
    }
}
