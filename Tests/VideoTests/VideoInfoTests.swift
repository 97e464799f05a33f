import Foundation
import JSONValue
import TestSupport
import Testing
import Video

/// Compares the facts of video files with those of ffprobe.
@Suite(.timeLimit(.minutes(5)))
struct VideoInfoTests {
    @Test(arguments: VideoFrameTests.videos.map(\.name))
    func `size, duration, frame rate and tracks equal those of ffprobe`(_ name: String) throws {
        let options = try #require(VideoFrameTests.videos.first { $0.name == name }).options
        let video = try VideoFixture(name) { path in try FFmpegVideos.make(path, seconds: 1, options) }
        let info = try video.info()
        let probe = try JSON(parsing: try FFmpegVideos.probe(video.path))
        let streams = probe["streams"]?.arrayValue ?? []
        try #require(streams.count == info.tracks.count)
        for (stream, track) in zip(streams, info.tracks) {
            #expect(stream["codec_name"]?.stringValue == track.codec)
            #expect(stream["codec_type"]?.stringValue == track.kind.rawValue)
            #expect(Int(stream["width"]?.intValue ?? 0) == track.pixelWidth)
            if track.kind == .audio {
                #expect(stream["sample_rate"]?.stringValue == "\(track.sampleRate)")
                #expect(Int(stream["channels"]?.intValue ?? 0) == track.channels)
            }
        }
        let seconds = try #require(probe["format"]?["duration"]?.stringValue.flatMap { Double($0) })
        #expect(abs(Double(info.duration) / 1_000_000 - seconds) < 0.001, "\(info.duration) \(seconds)")
        let rate = try #require(streams[info.shownTrack]["avg_frame_rate"]?.stringValue?.split(separator: "/"))
        #expect(abs(info.frameRate - (Double(rate[0]) ?? 0) / (Double(rate[1]) ?? 1)) < 0.001)
    }

    @Test func `a recording of a browser, whose times are only milliseconds, has no frame rate`() throws {
        let video = try VideoFixture("recorded.webm") { path in
            try FFmpegVideos.ffmpeg([
                "-f", "lavfi", "-i", "testsrc2=size=64x64:rate=1000:duration=3", "-vf",
                "select='eq(mod(n,33),mod(floor(n/33)*5,7))'", "-fps_mode", "vfr", "-c:v", "libvpx", "-deadline",
                "realtime", path,
            ])
        }
        let info = try video.info()
        #expect(info.frameRate == 0)
        #expect(info.tracks.first?.frameRate == 0)
        #expect(VideoTimeMap(slowMotion: info) == nil)
    }

    @Test func `a cover image is not used as the video`() throws {
        let video = try VideoFixture("cover.mp4") { path in
            try FFmpegVideos.ffmpeg([
                "-f", "lavfi", "-i", "testsrc2=size=64x64:duration=0.04", "-frames:v", "1", path + ".png",
            ])
            try FFmpegVideos.ffmpeg([
                "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25:duration=1", "-i", path + ".png", "-map", "0:v",
                "-map", "1:v", "-c:v:0", "libx264", "-pix_fmt:v:0", "yuv420p", "-c:v:1", "png", "-disposition:v:1",
                "attached_pic", path,
            ])
        }
        let info = try video.info()
        #expect((info.pixelWidth, info.pixelHeight) == (320, 240))
        #expect(info.tracks.filter(\.isPicture).count == 1)
    }
}
