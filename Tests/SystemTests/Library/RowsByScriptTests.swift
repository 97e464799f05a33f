import Foundation
import JSONValue
import TestSupport
import Testing

/// The rows of `Shared/docs/photokit.md` as a script sees them: plain pyzmq against the real executables. The services are
/// started once for each script of the folder Rows.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct RowsByScriptTests {
    @Test(
        .spec(
            "S-04",
            "S-08",
            "S-09",
            "S-30",
            "S-31",
            "S-33",
            "S-37",
            "S-38",
            "S-72",
            "P-23",
            "T-11",
            "T-19",
            "T-26",
            "T-27",
            "T-28"
        )
    )
    func `imports, originals, bursts, transient collections and recalled outcomes are as specified`() throws {
        let services = try SafelightFixture("rows")
        try Self.writeFiles(services.folder)
        try services.start()
        try RowScript.run(
            "library.py",
            services,
            parts: [
                "reimport_restores_from_the_trash", "reimport_by_upload", "set_of_a_duplicate", "chosen_original",
                "lone_raw_files", "recalled_outcome", "transient_collections", "playback_variation",
                "two_photos_in_one_asset", "automatic_picks", "remaining_smart_albums",
                "what_collections_can_contain", "state_of_adjustments", "hidden_representative",
            ]
        )
        #expect(services.stop() == [])
    }

    @Test(.spec("S-86", "S-90", "S-92", "D4"))
    func `each edit starts from the specified version, is read at once, and undone step by step`() throws {
        let services = try SafelightFixture("editing-rows")
        try Self.writePhotos(1...40, services.folder)
        for seconds in 1...2 {
            try services.folder.write(TestVideos.video(duration: seconds * 1000), to: "\(seconds).mov")
        }
        try services.start()
        try RowScript.run(
            "editing.py",
            services,
            parts: [
                "version_that_an_edit_starts_from", "own_edit_starts_from_what_is_shown",
                "undo_brings_another_program_back",
                "two_edits_then_revert", "videos_of_other_programs", "an_applied_edit_is_never_called_failed",
                "own_writes_are_read_at_once",
            ]
        )
        #expect(services.stop() == [])
    }

    @Test(.spec("S-45", "D12", "P-09", "T-31"))
    func `images come in the promised order, size and quality, and resources whole or not at all`() throws {
        let services = try SafelightFixture("image-rows")
        let photo = TestImages.jpeg(width: 1200, height: 800)
        try services.folder.write(photo, to: "photo.jpg")
        try services.folder.write(photo + [UInt8](repeating: 5, count: 9 << 20), to: "large.jpg")
        try services.start([.catalog, .changeBroker, .thumbnailer])
        try RowScript.run(
            "images.py",
            services,
            module: "PIL.Image",
            parts: [
                "delivery_modes", "fast_images_look_like_exact_ones", "crop_rectangles",
                "whole_resources_or_an_error",
            ]
        )
        #expect(services.stop() == [])
    }

    @Test(.spec("S-64", "S-65", "S-67", "D7", "P-19"))
    func `observed fetches and change details report deleted albums and folders, and the last unobserve`() throws {
        let services = try SafelightFixture("observation-rows")
        try Self.writePhotos(1...16, services.folder)
        try services.start([.catalog, .changeBroker])
        try RowScript.run(
            "observation.py",
            services,
            parts: [
                "deleted_album_and_emptied_moment", "unobserve_ends_only_ones_own",
                "a_closed_connection_leaves_its_observation_to_its_identity", "folder_and_containing",
                "details_between_two_results",
            ]
        )
        #expect(services.stop() == [])
    }

    @Test func `every notification of every method matches its JSON Schema`() throws {
        let photos = try TemporaryFolder("schema-files")
        let services = try SafelightFixture(
            "notification-schemas",
            environment: ["SAFELIGHT_IMPORT_ROOTS": photos.path]
        )
        try Self.writePhotos(1...7, photos)
        let photo = TestImages.jpeg(width: 1200, height: 800)
        try photos.write(photo + [UInt8](repeating: 5, count: 16 << 20), to: "big.jpg")
        try services.start()
        try RowScript.run(
            "schemas.py",
            services,
            files: photos.path,
            module: "jsonschema",
            parts: ["notifications_of_streams"]
        )
        #expect(services.stop() == [])
    }

    @Test func `every kind of message of every topic matches its JSON Schema`() throws {
        let services = try SafelightFixture("message-schemas")
        // Enough for a message that exceeds the size limit.
        try services.generateLibrary(assets: 7100, ["--album-sizes", "7000"])
        try Self.writePhotos(11...31, services.folder)
        try services.start()
        try RowScript.run("schemas.py", services, module: "jsonschema", parts: ["messages_of_the_feed"])
        #expect(services.stop() == [])
    }

    /// With `SAFELIGHT_SOAK` a thousand edits, too.
    @Test(.spec("P-25")) func `a thousand previews and hundreds of edits requested at once are all answered`() throws {
        let services = try SafelightFixture("edit-bursts")
        try Self.writePhotos(1...10, services.folder)
        try services.start()
        try RowScript.run(
            "bursts.py",
            services,
            seconds: 240,
            parts: ["previews", "descriptions", "edits_of_some_photos", "edits_of_one_photo"]
        )
        #expect(services.stop() == [])
    }

    private static func writePhotos(_ seeds: ClosedRange<Int>, _ folder: TemporaryFolder) throws {
        for seed in seeds {
            try folder.write(TestImages.jpeg(width: 64, height: 48, seed: UInt64(seed)), to: "\(seed).jpg")
        }
    }

    @Test(.spec("P-23")) func `safelight import restores assets from the trash, and reports it`() throws {
        let services = try SafelightFixture("reimport")
        for seed in 1...3 {
            try services.folder.write(TestImages.jpeg(width: 64, height: 48, seed: UInt64(seed)), to: "p/\(seed).jpg")
        }
        try services.start([.catalog])
        let photos = services.folder.file("p")
        try #require(try services.safelight(["import", photos]).status == 0)
        let ids = try services.safelight(["fetch", "--ids"]).output.split(separator: "\n").map(String.init)
        try #require(ids.count == 3)
        try #require(try services.safelight(["trash", ids[0]]).status == 0)
        let again = try services.safelight(["import", photos])
        #expect(again.output.contains("restored  \(ids[0])"), "\(again.output)")
        #expect(again.output.contains("3 already there, 0 broken, 1 restored from the trash"), "\(again.output)")
        try #require(try services.safelight(["trash", ids[1]]).status == 0)
        let lines = try services.safelight(["import", "--json", photos]).output.split(separator: "\n")
            .map { try JSON(parsing: String($0)) }
        #expect(lines.filter { $0["restored"] == true }.compactMap { $0["id"]?.stringValue } == [ids[1]])
        #expect(lines.last?["summary"]?["restored"] == 1)
        let all = try services.safelight(["fetch", "--ids"]).output.split(separator: "\n").map(String.init)
        #expect(Set(all) == Set(ids))
        #expect(services.stop() == [])
    }

    private static func writeFiles(_ folder: TemporaryFolder) throws {
        try writePhotos(1...14, folder)
        try folder.write(TestRaw.dng(width: 120, height: 80), to: "pair.dng")
        let preview = TestImages.jpeg(width: 48, height: 32)
        try folder.write(TestRaw.dng(width: 96, height: 64, orientation: 6, preview: preview), to: "lone.dng")
        try folder.write(TestRaw.dng(width: 90, height: 60, maker: "NIKON CORPORATION"), to: "lone.nef")
        try folder.write(TestVideos.video(duration: 2000), to: "live.mov")
        let whole = TestImages.jpeg(width: 640, height: 480, seed: 99)
        try folder.write(Array(whole.prefix(whole.count * 2 / 3)) + [0xFF, 0xD9], to: "cut.jpg")
        // Frames of a burst: fine stripes, and the same scene out of focus.
        for (number, width) in [16, 4, 24].enumerated() {
            let frame = TestImages.jpeg(width: 256, height: 192) { x, _ in
                let tone = UInt8(128.0 + 100.0 * sin(Double(x) * 2 * .pi / Double(width)))
                return (tone, tone, tone)
            }
            try folder.write(frame, to: "frame\(number).jpg")
        }
    }
}
