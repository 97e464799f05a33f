import Foundation
import TestSupport
import Testing
import Video

/// Compares frames with those that the ffmpeg program decodes.
@Suite(.timeLimit(.minutes(5)))
struct VideoFrameTests {
    /// The name of a file of each container and codec, and the options of its encoders.
    static let videos: [(name: String, options: [String])] = [
        ("h264.mp4", ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-g", "12", "-c:a", "aac"]),
        ("h264.mov", ["-c:v", "libx264", "-pix_fmt", "yuv422p", "-g", "12", "-c:a", "pcm_s16le"]),
        ("hevc.mp4", ["-c:v", "libx265", "-x265-params", "log-level=none", "-pix_fmt", "yuv420p", "-c:a", "aac"]),
        ("h264.m4v", ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-c:a", "aac"]),
        ("h263.3gp", ["-c:v", "h263", "-s", "352x288", "-c:a", "aac"]),
        ("mpeg4.avi", ["-c:v", "mpeg4", "-q:v", "3", "-c:a", "mp3"]),
        ("mjpeg.avi", ["-c:v", "mjpeg", "-q:v", "3", "-c:a", "pcm_s16le"]),
        ("h264.mkv", ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-c:a", "flac"]),
        ("vp8.webm", ["-c:v", "libvpx", "-b:v", "1M", "-deadline", "realtime", "-c:a", "libopus"]),
        ("vp9.webm", ["-c:v", "libvpx-vp9", "-b:v", "1M", "-deadline", "realtime", "-c:a", "libopus"]),
        ("av1.mp4", ["-c:v", "libaom-av1", "-cpu-used", "8", "-usage", "realtime", "-c:a", "aac"]),
        ("mpeg2.mpg", ["-c:v", "mpeg2video", "-q:v", "3", "-c:a", "mp2"]),
        ("mpeg2.ts", ["-c:v", "mpeg2video", "-q:v", "3", "-c:a", "mp2"]),
        ("h264.m2ts", ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-c:a", "ac3", "-mpegts_m2ts_mode", "1"]),
        ("prores.mov", ["-c:v", "prores_ks", "-c:a", "pcm_s16le"]),
        ("dv.avi", ["-c:v", "dvvideo", "-s", "720x576", "-pix_fmt", "yuv420p", "-c:a", "pcm_s16le", "-ar", "48000"]),
    ]

    @Test(arguments: videos.map(\.name))
    func `frames of each container and codec equal those of ffmpeg, at any time`(_ name: String) throws {
        let options = try #require(Self.videos.first { $0.name == name }).options
        let video = try VideoFixture(name) { path in try FFmpegVideos.make(path, seconds: 1.6, options) }
        try video.open { file in
            let times = [0, 0.2, 0.4, 0.48, 1.2]
            let size = "\(file.storedWidth):\(file.storedHeight)"
            let expected = try FFmpegVideos.frames(
                of: video.path,
                at: times,
                duration: 0.04,
                filter: "scale=\(size):flags=bicubic+accurate_rnd+full_chroma_int+full_chroma_inp"
            )
            // The order is forwards, and then backwards.
            for index in [0, 2, 3, 4, 1] {
                let seconds = times[index]
                let (pixels, time) = try VideoFixture.frame(.at(Int64(seconds * 1_000_000), tolerance: 0), file)
                let psnr = VideoFixture.psnr(pixels, expected[index])
                #expect(psnr > 35, "\(name) at \(seconds) s: \(psnr) dB")
                #expect(abs(Double(time) / 1_000_000 - seconds) < 0.041, "\(name) at \(seconds) s: \(time)")
            }
        }
    }

    @Test func `the frame at a time is the first one at or after it, or the last one of the video`() throws {
        let video = try VideoFixture("f.mp4") { path in
            try FFmpegVideos.make(path, seconds: 2, ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-g", "25", "-bf", "3"])
        }
        try video.open { file in
            for (requested, expected) in [
                (0, 0), (1, 40_000), (40_000, 40_000), (40_001, 80_000), (960_000, 960_000), (999_999, 1_000_000),
                (1_000_000, 1_000_000), (1_920_000, 1_920_000),
            ] {
                let (_, time) = try VideoFixture.frame(.at(Int64(requested), tolerance: 0), file)
                #expect(time == expected, "\(requested)")
            }
            #expect(try VideoFixture.frame(.at(5_000_000, tolerance: 0), file).time >= 1_840_000)
            // The key frames are at 0 and 1 second.
            #expect(try VideoFixture.frame(.at(1_700_000, tolerance: .max), file).time == 1_000_000)
            #expect(try VideoFixture.frame(.at(1_700_000, tolerance: 600_000), file).time == 1_720_000)
            #expect(try VideoFixture.frame(.at(900_000, tolerance: 950_000), file).time == 0)
        }
    }

    @Test func `the last frame is found even if no other frame refers to it`() throws {
        // No frame refers to the second of the two layers, which has every other frame, also the last of 24.
        let layers = [
            "ts_number_layers=2", "ts_target_bitrate=180,300", "ts_rate_decimator=2,1", "ts_periodicity=2",
            "ts_layer_id=0,1", "ts_layering_mode=2",
        ]
        let video = try VideoFixture("layers.webm") { path in
            try FFmpegVideos.make(
                path,
                seconds: 0.96,
                audio: false,
                [
                    "-c:v", "libvpx", "-b:v", "300k", "-deadline", "realtime", "-auto-alt-ref", "0", "-lag-in-frames",
                    "0", "-ts-parameters", layers.joined(separator: ":"),
                ]
            )
        }
        try video.open { file in
            for (requested, expected): (Int64, Int64) in [
                (5_000_000, 920_000), (880_000, 880_000), (950_000, 920_000), (920_000, 920_000),
            ] {
                let time = try VideoFixture.frame(.at(requested, tolerance: 0), file).time
                #expect(time == expected, "\(requested)")
            }
        }
        // Each of two passes reads 24 packets. Without the second one, the result is the last frame of the first one.
        var limits = VideoLimits()
        limits.packets = 30
        try video.open(limits: limits) { file in
            let time = try VideoFixture.frame(.at(5_000_000, tolerance: 0), file).time
            #expect(time >= 840_000)
        }
    }

    @Test func `times count from the first moment of the video, independently of the times in the container`() throws {
        let h264 = ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-g", "12"]
        let late = try VideoFixture("late.mkv") { path in
            try FFmpegVideos.make(path, seconds: 2, audio: false, h264 + ["-output_ts_offset", "3600"])
        }
        #expect(try late.frame(.automatic).time == 0)
        try late.open { file in
            for time: Int64 in [0, 1_200_000, 40_000] {
                let found = try VideoFixture.frame(.at(time, tolerance: 0), file).time
                #expect(found == time)
            }
        }
        #expect(try late.frame(.at(1_200_000, tolerance: 0)).time == 1_200_000)
        // The first moment is the start of the audio if the frames begin later.
        let video = try VideoFixture("sound.mkv") { path in
            try FFmpegVideos.ffmpeg(
                [
                    "-itsoffset", "3", "-f", "lavfi", "-i", "testsrc2=size=160x120:rate=25:duration=2", "-f", "lavfi",
                    "-i", "sine=duration=5", "-map", "0:v", "-map", "1:a", "-c:a", "pcm_s16le",
                ] + h264 + [path]
            )
        }
        for isThorough in [false, true] {
            let time = try video.open(isThorough: isThorough) { file in
                try VideoFixture.frame(.at(4_000_000, tolerance: 0), file).time
            }
            #expect(time == 4_000_000)
        }
    }

    @Test func `without a time, the frame is the first of three seconds that is not nearly one colour`() throws {
        func video(black seconds: Double) throws -> VideoFixture {
            try VideoFixture("fade.mp4") { path in
                try FFmpegVideos.ffmpeg([
                    "-f", "lavfi", "-i", "color=black:size=160x120:rate=25:duration=\(seconds)", "-f", "lavfi", "-i",
                    "testsrc2=size=160x120:rate=25:duration=1", "-filter_complex", "[0][1]concat=n=2", "-c:v",
                    "libx264",
                    "-pix_fmt", "yuv420p", path,
                ])
            }
        }
        #expect(try video(black: 0.04).frame(.automatic).time == 40_000)
        #expect(try video(black: 2).frame(.automatic).time == 2_000_000)
        #expect(try video(black: 4).frame(.automatic).time == 0)
        // The first frames of a fade are dark, so a frame at its end is chosen.
        let fading = try VideoFixture("fading.mp4") { path in
            try FFmpegVideos.ffmpeg([
                "-f", "lavfi", "-i", "testsrc2=size=160x120:rate=25:duration=2", "-vf", "fade=in:0:12", "-c:v",
                "libx264", "-pix_fmt", "yuv420p", path,
            ])
        }
        let chosen = try fading.frame(.automatic)
        #expect((400_000...640_000).contains(chosen.time), "\(chosen.time)")
        let plain = try VideoFixture("plain.mp4") { path in
            try FFmpegVideos.make(path, ["-c:v", "libx264", "-pix_fmt", "yuv420p"])
        }
        #expect(try plain.frame(.automatic).time == 0)
    }

    @Test(arguments: [
        ("bt709", "tv"), ("bt709", "pc"), ("smpte170m", "tv"), ("smpte170m", "pc"), ("bt2020nc", "tv"),
    ])
    func `the matrix and the range of the file are used`(_ matrix: String, _ range: String) throws {
        let filterMatrix = matrix == "bt2020nc" ? "bt2020" : matrix
        let video = try VideoFixture("c.mp4") { path in
            try FFmpegVideos.make(
                path,
                size: "320x240",
                seconds: 0.2,
                [
                    "-vf", "format=rgb24,scale=out_color_matrix=\(filterMatrix):out_range=\(range)",
                    "-c:v", "libx264", "-qp", "4", "-pix_fmt", "yuv444p", "-colorspace", matrix, "-color_range", range,
                ]
            )
        }
        let info = try video.info()
        #expect((info.matrix, info.range) == (matrix, range))
        let source = try VideoFixture("s.avi") { path in
            try FFmpegVideos.make(
                path,
                size: "320x240",
                seconds: 0.2,
                audio: false,
                ["-c:v", "rawvideo", "-pix_fmt", "bgr24"]
            )
        }
        let expected = try FFmpegVideos.frame(of: source.path, at: 0)
        // A wrong matrix gives about 25 dB, a wrong range less.
        #expect(VideoFixture.psnr(try video.frame(.at(0, tolerance: 0)).pixels, expected) > 38)
    }

    @Test func `untagged videos have the matrix of their size, as players assume it`() throws {
        for (size, matrix) in [("320x240", "smpte170m"), ("1280x720", "bt709")] {
            let video = try VideoFixture("u.mp4") { path in
                try FFmpegVideos.make(
                    path,
                    size: size,
                    seconds: 0.1,
                    audio: false,
                    [
                        "-vf", "format=rgb24,scale=out_color_matrix=\(matrix)", "-c:v", "libx264", "-qp", "4",
                        "-pix_fmt", "yuv444p",
                    ]
                )
            }
            let source = try VideoFixture("s.avi") { path in
                try FFmpegVideos.make(
                    path,
                    size: size,
                    seconds: 0.1,
                    audio: false,
                    ["-c:v", "rawvideo", "-pix_fmt", "bgr24"]
                )
            }
            let expected = try FFmpegVideos.frame(of: source.path, at: 0)
            #expect(VideoFixture.psnr(try video.frame(.at(0, tolerance: 0)).pixels, expected) > 38, "\(size)")
        }
    }

    @Test func `the sample aspect ratio and the rotation are applied to the size`() throws {
        let video = try VideoFixture("wide.mp4") { path in
            try FFmpegVideos.make(
                path,
                size: "360x288",
                ["-vf", "setsar=16/15", "-c:v", "libx264", "-pix_fmt", "yuv420p"]
            )
        }
        #expect(try video.open { ($0.storedWidth, $0.storedHeight) } == (384, 288))
        for (degrees, orientation, rotation) in [(90, 6, 90.0), (180, 3, 180), (270, 8, 270)] {
            let rotated = try VideoFixture("turned.mp4") { path in
                try FFmpegVideos.ffmpeg([
                    "-i", video.path, "-c", "copy", "-metadata:s:v:0", "rotate=\(360 - degrees)", path,
                ])
            }
            let info = try rotated.info()
            #expect((info.orientation, info.rotation) == (orientation, rotation), "\(degrees)")
            let expected = degrees == 180 ? (384, 288) : (288, 384)
            #expect((info.pixelWidth, info.pixelHeight) == expected)
        }
    }

    @Test func `frames may be scaled, also to odd sizes`() throws {
        let video = try VideoFixture("f.mp4") { path in
            try FFmpegVideos.make(path, size: "640x480", seconds: 0.2, ["-c:v", "libx264", "-pix_fmt", "yuv420p"])
        }
        for (width, height) in [(1, 1), (37, 21), (320, 240), (333, 250)] {
            let pixels = try video.open { try VideoFixture.frame(.automatic, $0, width: width, height: height).pixels }
            #expect(pixels.count == 3 * width * height)
            guard width > 36 else { continue }
            let expected = try FFmpegVideos.frame(
                of: video.path,
                at: 0,
                filter: "scale=\(width):\(height):flags=bicubic+accurate_rnd+full_chroma_int+full_chroma_inp"
            )
            #expect(VideoFixture.psnr(pixels, expected) > 35, "\(width)x\(height)")
        }
    }

    @Test func `exceeded limits of pixels, packets and bytes, and unsupported codecs, have their errors`() throws {
        let video = try VideoFixture("f.mp4") { path in
            try FFmpegVideos.make(path, seconds: 2, ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-g", "1000"])
        }
        var limits = VideoLimits()
        limits.pixels = 1000
        #expect(throws: VideoError.tooLarge(limit: 1000)) { try video.open(limits: limits) { _ in } }
        limits = VideoLimits()
        limits.packets = 10
        #expect(throws: VideoError.tooMuchWork) {
            try video.open(limits: limits) { _ = try VideoFixture.frame(.at(1_500_000, tolerance: 0), $0) }
        }
        limits = VideoLimits()
        limits.bytes = 1000
        #expect(throws: VideoError.tooMuchWork) { try video.open(limits: limits) { _ in } }
        let unsupported = try VideoFixture("a.mkv") { path in
            try FFmpegVideos.make(path, audio: false, ["-c:v", "snow", "-strict", "-2"])
        }
        #expect(throws: VideoError.unsupportedCodec("snow")) { try unsupported.frame(.automatic) }
    }

    @Test func `a video whose decoder cannot be opened is refused for each frame`() throws {
        let video = try VideoFixture("depth.mov") { path in
            try FFmpegVideos.make(path, seconds: 0.2, audio: false, ["-c:v", "qtrle"])
            var bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
            let header = try #require(bytes.firstRange(of: Array("stsd".utf8))?.lowerBound)
            let name = try #require(bytes[header...].firstRange(of: Array("rle ".utf8))?.lowerBound)
            // The codec does not support this number of bits of a pixel.
            bytes[name + 79] = 7
            try Data(bytes).write(to: URL(fileURLWithPath: path))
        }
        let errors: [VideoError?] = try video.open { file in
            var errors: [VideoError?] = []
            for position in [FramePosition.automatic, .automatic, .at(80_000, tolerance: 0)] {
                do {
                    _ = try VideoFixture.frame(position, file)
                    errors.append(nil)
                } catch {
                    errors.append(error as? VideoError)
                }
            }
            return errors
        }
        #expect(errors == [.unreadable, .unreadable, .unreadable])
    }

    @Test func `audio without frames, images and truncated files are refused`() throws {
        let audioOnly = try VideoFixture("s.mp4") { path in
            try FFmpegVideos.ffmpeg(["-f", "lavfi", "-i", "sine=duration=1", "-c:a", "aac", path])
        }
        #expect(throws: VideoError.noVideo) { try audioOnly.open { _ in } }
        let image = try VideoFixture("i.jpg") { path in
            try Data(TestImages.jpeg()).write(to: URL(fileURLWithPath: path))
        }
        #expect(throws: VideoError.self) { try image.open { _ in } }
        let video = try VideoFixture("f.mp4") { path in
            try FFmpegVideos.make(path, ["-c:v", "libx264", "-pix_fmt", "yuv420p"])
        }
        let whole = try Data(contentsOf: URL(fileURLWithPath: video.path))
        let truncated = try VideoFixture("c.mp4") { path in
            try whole.prefix(whole.count / 2).write(to: URL(fileURLWithPath: path))
        }
        #expect(throws: VideoError.unreadable) { try truncated.open { _ in } }
    }
}
