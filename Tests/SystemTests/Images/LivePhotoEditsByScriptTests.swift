import Foundation
import TestSupport
import Testing

/// The row about edits of Live Photos, as a script sees it.
@Suite(.serialized, .timeLimit(.minutes(8)))
struct LivePhotoEditsByScriptTests {
    @Test(.spec("T-48"))
    func `an edit of a Live Photo changes its still and each frame of its video alike`() throws {
        let services = try SafelightFixture("live-edits")
        try Self.makeFiles(services.folder)
        try services.start([.catalog, .changeBroker, .thumbnailer, .editor])
        try RowScript.run(
            "live_edits.py",
            services,
            programs: ["ffmpeg", "ffprobe"],
            seconds: 400,
            parts: [
                "still_and_frames_get_the_same_edit", "audio_volume", "key_frame", "second_save_cancels_the_first",
                "requests_deliver_the_edited_pair", "lists_are_appended_undone_and_copied",
                "previews_have_still_and_video", "input_of_another_program", "invalid_requests_are_refused",
            ]
        )
        try expectExport(services)
        #expect(services.stop() == [])
    }

    /// Creates a pair whose still is a frame of the video in twice the size, and motion photos.
    private static func makeFiles(_ folder: TemporaryFolder) throws {
        let h264 = ["-c:v", "libx264", "-preset", "ultrafast", "-crf", "4", "-pix_fmt", "yuv420p", "-c:a", "aac"]
        let tag = "com.apple.quicktime.content.identifier=LIVE-ID"
        try FFmpegVideos.make(
            folder.file("live.mov"),
            size: "640x480",
            ["-vf", "gblur=sigma=5"] + h264 + ["-movflags", "use_metadata_tags", "-metadata", tag]
        )
        try FFmpegVideos.ffmpeg([
            "-ss", "0.479", "-i", folder.file("live.mov"), "-frames:v", "1", "-vf", "scale=1280:960:flags=bicubic",
            "-q:v", "2", "-pix_fmt", "yuvj444p", folder.file("frame.jpg"),
        ])
        let frame = [UInt8](try Data(contentsOf: URL(fileURLWithPath: folder.file("frame.jpg"))))
        try folder.write(TestImages.dated(frame, "2024:06:01 12:30:00"), to: "live.jpg")
        try FFmpegVideos.make(folder.file("render.mp4"), size: "320x240", h264)
        try FFmpegVideos.make(folder.file("film.mp4"), size: "640x480", h264)
        try FFmpegVideos.make(folder.file("long.mp4"), size: "1280x720", seconds: 12, h264 + ["-crf", "32"])
        for (seed, name, video) in [(UInt64(1), "motion.jpg", "film.mp4"), (2, "long.jpg", "long.mp4")] {
            let video = [UInt8](try Data(contentsOf: URL(fileURLWithPath: folder.file(video))))
            try folder.write(TestMotionPhotos.jpeg(.container, video: video, seed: seed).bytes, to: name)
        }
        try folder.write(TestImages.jpeg(width: 320, height: 240, seed: 9), to: "plain.jpg")
    }

    /// Expects that the current version of a Live Photo is exported as the edited still with the edited video.
    private func expectExport(_ services: SafelightFixture) throws {
        let output = try services.safelight(["fetch", "--where", "originalFilename == 'motion.jpg'", "--ids"]).output
        let id = try #require(output.split(separator: "\n").first.map(String.init))
        let edit = try services.safelight(
            ["edit", id, "--live-photo", "--rotate", "90", "--audio-volume", "0", "--key-frame", "0.4"]
        )
        #expect(edit.status == 0, "\(edit)")
        let target = services.folder.file("exported")
        let export = try services.safelight(["export", "--current", "--output", target, id])
        #expect(export.status == 0, "\(export)")
        let names = try FileManager.default.contentsOfDirectory(atPath: target).sorted()
        #expect(names == ["motion.jpg", "motion.mp4"])
        let probe = try FFmpegVideos.probe(target + "/motion.mp4")
        #expect(probe.contains("\"width\": 480") && probe.contains("\"height\": 640") && !probe.contains("\"aac\""))
        #expect(try FFmpegVideos.probe(target + "/motion.jpg").contains("\"width\": 480"))
        // Imported again, the exported files are a Live Photo.
        let other = try services.safelight(["import", target, "--json"])
        #expect(other.status == 0, "\(other)")
        let live = try services.safelight(["fetch", "--where", "originalFilename == 'motion.jpg'", "--ids"]).output
        let ids = live.split(separator: "\n").map(String.init)
        #expect(ids.count == 2)
        for id in ids { #expect(try services.safelight(["show", id]).output.contains("pairedVideo")) }
        #expect(try services.safelight(["edit", id, "--exposure", "1", "--audio-volume", "0.5"]).status != 0)
    }
}
