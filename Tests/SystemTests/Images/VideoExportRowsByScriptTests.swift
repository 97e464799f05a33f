import Foundation
import TestSupport
import Testing

/// The row about exports of videos, as a script sees it.
@Suite(.serialized, .timeLimit(.minutes(8)))
struct VideoExportRowsByScriptTests {
    @Test(.spec("S-60"))
    func `videos are exported in each preset, with progress, and can be cancelled`() throws {
        let services = try SafelightFixture("exports")
        try Self.makeVideos(services.folder)
        try services.start([.catalog, .changeBroker, .thumbnailer])
        try RowScript.run(
            "export.py",
            services,
            seconds: 400,
            parts: [
                "presets_have_their_size", "other_containers_are_exported", "facts_are_kept",
                "equal_exports_share_one_file", "progress_and_cancellation", "invalid_requests_are_refused",
            ]
        )
        let output = try services.safelight(["fetch", "--where", "originalFilename == 'wide.mp4'", "--ids"]).output
        let id = try #require(output.split(separator: "\n").first.map(String.init))
        let saved = services.folder.file("saved.mp4")
        let run = try services.safelight(["video", id, "--preset", "640x480", "--output", saved])
        #expect(run.status == 0 && run.output.contains("640 x 360"), "\(run)")
        #expect(try FFmpegVideos.probe(saved).contains("\"width\": 640"))
        #expect(try services.safelight(["video", id, "--preset", "vast", "--output", saved]).status != 0)
        #expect(try services.safelight(["video", id, "--preset", "low"]).status != 0)
        #expect(services.stop() == [])
    }

    private static func makeVideos(_ folder: TemporaryFolder) throws {
        let h264 = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-c:a", "aac"]
        func video(_ name: String, seconds: Double = 1, size: String = "320x240", _ options: [String]) throws {
            let named = options + ["-metadata", "comment=\(name)"]
            try FFmpegVideos.make(folder.file(name), size: size, seconds: seconds, named)
        }
        try video("wide.mp4", size: "1280x720", h264)
        try video("turned.mp4", h264)
        try FFmpegVideos.ffmpeg([
            "-i", folder.file("turned.mp4"), "-c", "copy", "-metadata:s:v:0", "rotate=90", folder.file("upright.mp4"),
        ])
        try video("long.mp4", seconds: 40, size: "1280x720", h264)
        try video(
            "apple.mov",
            h264 + [
                "-movflags", "use_metadata_tags", "-metadata",
                "com.apple.quicktime.creationdate=2024-06-01T12:30:00+0200",
                "-metadata", "com.apple.quicktime.location.ISO6709=+48.1372+011.5756+519.000/", "-metadata",
                "com.apple.quicktime.make=Apple", "-metadata", "com.apple.quicktime.model=iPhone 15",
            ]
        )
        try video(
            "android.mp4",
            h264 + ["-metadata", "location=+52.5200+013.4050/", "-metadata", "creation_time=2023-05-06T07:08:09Z"]
        )
        try video("film.mkv", h264)
        try video("film.webm", ["-c:v", "libvpx", "-b:v", "1M", "-deadline", "realtime", "-c:a", "libopus"])
        try video("film.avi", ["-c:v", "mpeg4", "-q:v", "3", "-c:a", "mp3"])
        try video(
            "film.mts",
            ["-c:v", "libx264", "-pix_fmt", "yuv420p", "-c:a", "ac3", "-f", "mpegts", "-mpegts_m2ts_mode", "1"]
        )
        try video(
            "hdr.mp4",
            [
                "-vf", "scale=out_color_matrix=bt2020,format=yuv420p10le", "-c:v", "libx265", "-x265-params",
                "log-level=none:colorprim=bt2020:transfer=smpte2084:colormatrix=bt2020nc", "-tag:v", "hvc1", "-c:a",
                "aac",
            ]
        )
        var bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: folder.file("turned.mp4"))))
        for at in stride(from: 2000, to: min(bytes.count, 9000), by: 37) { bytes[at] ^= 0x5A }
        try folder.write(bytes, to: "damaged.mp4")
        try folder.write(TestImages.jpeg(width: 64, height: 48), to: "photo.jpg")
    }
}
