import Foundation
import JSONValue
import TestSupport
import Testing

/// The rows about Live Photos and motion photos, as a script sees them.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct LivePhotoRowsByScriptTests {
    @Test(.spec("T-47"))
    func `Live Photos and motion photos are recognized, delivered with their video, and exported`() throws {
        let services = try SafelightFixture("live-photos")
        let folder = services.folder
        let h264 = ["-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p", "-c:a", "aac"]
        try FFmpegVideos.make(folder.file("film.mp4"), seconds: 2, h264)
        for name in ["ONE", "TWO"] {
            let tag = "com.apple.quicktime.content.identifier=\(name)"
            let options = h264 + ["-movflags", "use_metadata_tags", "-metadata", tag]
            try FFmpegVideos.make(folder.file("\(name).mov"), size: "480x360", seconds: 1, options)
        }
        let video = [UInt8](try Data(contentsOf: URL(fileURLWithPath: folder.file("film.mp4"))))
        for (index, kind) in TestMotionPhotos.Kind.allCases.enumerated() {
            let photo = TestMotionPhotos.jpeg(kind, video: video, width: 1600, height: 1200, seed: UInt64(index + 1))
            try folder.write(photo.bytes, to: "\(kind.rawValue).jpg")
        }
        for (seed, name) in [(1, "apple"), (2, "other")] {
            let note = TestImages.appleNote(content: "ONE")
            try folder.write(TestImages.appleImage(note: note, seed: UInt64(seed)), to: "\(name).jpg")
        }
        try folder.write(TestImages.jpeg(width: 1600, height: 1200, seed: 9), to: "plain.jpg")
        try services.start([.catalog, .changeBroker, .thumbnailer])
        try RowScript.run(
            "live.py",
            services,
            parts: [
                "videos_inside_photos", "video_inside_a_boxed_photo", "pairs_by_identifier", "degraded_still_first",
                "one_terminal_message", "options_of_live_photos", "parts_are_read_exported_and_kept",
            ]
        )
        try expectExport(services)
        #expect(services.stop() == [])
    }

    @Test(.spec("T-47"))
    func `the video in the box of a HEIC is a range of the file`() throws {
        let services = try SafelightFixture("heic-videos")
        let folder = services.folder
        let options = ["-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p", "-c:a", "aac"]
        try FFmpegVideos.make(folder.file("film.mp4"), seconds: 2, options)
        let photos = try Needed.photographs(["heic", "heif"], below: "exif-samples/heic/mobile")
        for (index, photo) in photos.enumerated() {
            try folder.write(SharedPhotos.bytes(photo), to: "\(index).heic")
        }
        try services.start([.catalog, .changeBroker, .thumbnailer])
        try RowScript.run("live.py", services, parts: ["videos_inside_heics"])
        #expect(services.stop() == [])
    }

    /// Expects that a still is exported with its video, and a motion photo as one file.
    private func expectExport(_ services: SafelightFixture) throws {
        let live = try services.safelight(["fetch", "--where", "(mediaSubtypes & {'photoLive'}) == 8", "--ids"])
        let ids = live.output.split(separator: "\n").map(String.init)
        #expect(ids.count == 6, "\(live)")
        let target = services.folder.file("exported")
        let export = try services.safelight(["export", "--output", target] + ids)
        #expect(export.status == 0, "\(export)")
        let names = try FileManager.default.contentsOfDirectory(atPath: target)
        #expect(names.count == 7, "\(names)")
        let videos = names.filter { $0.hasSuffix(".mov") }
        #expect(videos.count == 1)
        let saved = try Data(contentsOf: URL(fileURLWithPath: target + "/" + (videos.first ?? "")))
        #expect(try saved == Data(contentsOf: URL(fileURLWithPath: services.folder.file("ONE.mov"))))
        // The video of a motion photo can be saved alone.
        #expect(names.contains("samsung.jpg"), "\(names)")
        let motion = try services.safelight(["fetch", "--where", "originalFilename == 'samsung.jpg'", "--ids"]).output
        let video = services.folder.file("saved.mp4")
        #expect(try services.safelight(["video", String(motion.prefix(27)), "--output", video]).status == 0)
        #expect(
            try FFmpegVideos.frame(of: video, at: 1) == FFmpegVideos.frame(of: services.folder.file("film.mp4"), at: 1)
        )
    }
}
