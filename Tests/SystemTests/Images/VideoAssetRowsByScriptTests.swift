import TestSupport
import Testing

/// The row about the composition of videos, as a script sees it.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct VideoAssetRowsByScriptTests {
    @Test(.spec("S-61"))
    func `tracks, edit lists, slow motion, volume and source files of videos are as in the files`() throws {
        let services = try SafelightFixture("compositions")
        try Self.makeFiles(services.folder)
        try services.start([.catalog, .changeBroker, .thumbnailer, .editor])
        try RowScript.run(
            "compositions.py",
            services,
            programs: ["ffmpeg", "ffprobe"],
            seconds: 250,
            parts: [
                "tracks_are_those_of_ffprobe", "segments_are_those_of_the_edit_list",
                "slow_motion_is_mapped_and_rendered", "edits_have_their_times_and_volume",
                "live_photos_have_the_time_of_their_still", "invalid_requests_are_refused",
            ]
        )
        #expect(services.stop() == [])
    }

    private static func makeFiles(_ folder: TemporaryFolder) throws {
        let h264 = ["-c:v", "libx264", "-preset", "ultrafast", "-crf", "20", "-pix_fmt", "yuv420p", "-c:a", "aac"]
        func video(_ name: String, rate: Int = 25, seconds: Double = 2, _ options: [String] = []) throws {
            try FFmpegVideos.make(folder.file(name), rate: rate, seconds: seconds, h264 + ["-g", "25"] + options)
        }
        try video("plain.mp4", seconds: 3, ["-bf", "2"])
        // The content is copied from the preceding key frame on, and the edit list hides the part before the start.
        try FFmpegVideos.ffmpeg(["-ss", "1.4", "-i", folder.file("plain.mp4"), "-c", "copy", folder.file("cut.mp4")])
        try FFmpegVideos.ffmpeg([
            "-i", folder.file("plain.mp4"), "-itsoffset", "0.5", "-i", folder.file("plain.mp4"), "-map", "0:v", "-map",
            "1:a", "-c", "copy", folder.file("gap.mp4"),
        ])
        try video("slow.mov", rate: 120, ["-vf", "gblur=sigma=2"])
        let intent = "com.apple.quicktime.full-frame-rate-playback-intent=1"
        try video("intent.mov", rate: 120, ["-movflags", "use_metadata_tags", "-metadata", intent])
        try video("film.mkv")
        try FFmpegVideos.make(folder.file("film.avi"), ["-c:v", "mpeg4", "-q:v", "3", "-c:a", "mp3"])
        try video("start.mov", seconds: 1)
        for (seed, name) in [(UInt64(1), "photo.jpg"), (2, "plain.jpg")] {
            try folder.write(TestImages.jpeg(width: 320, height: 240, seed: seed), to: name)
        }
    }
}
