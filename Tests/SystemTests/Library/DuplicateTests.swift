import Foundation
import JSONValue
import TestSupport
import Testing

/// Files with the same image and different metadata, which ExifTool writes.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct DuplicateTests {
    @Test func `an image is recognized after another program has tagged its file`() throws {
        let services = try SafelightFixture("duplicates")
        let folder = services.folder
        try folder.write(TestImages.jpeg(width: 320, height: 200, seed: 5), to: "first/a.jpg")
        try folder.write(TestImages.jpeg(width: 320, height: 200, seed: 6), to: "first/b.jpg")
        try folder.write(TestRaw.dng(width: 120, height: 80), to: "first/c.dng")
        let run = try RunningProgram.run(
            try Needed.python("PIL"),
            ["-c", Self.script, folder.file("first"), folder.file("second")],
            environment: ["PYTHONPATH": TestEnvironment.text("PYTHONPATH") ?? ""],
            seconds: 60
        )
        try #require(run.status == 0, "\(run.errors)")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.file("first")).sorted()
        #expect(names.count == 9, "\(names)")
        try services.start()

        #expect(
            try services.safelight(["import", folder.file("first")]).output.hasPrefix("9 imported, 0 already there")
        )
        let none = try services.safelight(["duplicates"])
        #expect(none.status == 0 && none.output.isEmpty, "\(none)")
        #expect(none.errors == "no image is in the library twice\n")
        let second = try services.safelight(["import", folder.file("second"), "--verbose"])
        #expect(second.output.contains("9 imported, 9 of them with an image that is already there"), "\(second.output)")

        // The first import leads each group, and the name of the tagged file is that of the other.
        let listed = try services.safelight(["duplicates", "--json"])
        let groups = try listed.output.split(separator: "\n").map { try JSON(parsing: String($0)) }
        #expect(groups.count == 9, "\(listed.output)")
        let all = try services.safelight(["fetch", "--json", "--limit", "0"]).output.split(separator: "\n")
            .map { try JSON(parsing: String($0)) }
        let filenames = Dictionary(
            uniqueKeysWithValues: all.map { ($0["id"]?.stringValue, $0["originalFilename"]?.stringValue) }
        )
        for group in groups {
            let members = (group["assets"]?.arrayValue ?? []).map { filenames[$0.stringValue] ?? nil }
            #expect(members.count == 2 && members[0] == members[1]?.replacing("tagged-", with: ""), "\(members)")
        }

        // Assets in the trash do not count.
        let others = try services.safelight(["duplicates", "--ids"]).output
        #expect(others.split(separator: "\n").count == 9)
        let trash =
            "'\(TestPaths.executables)/safelight' duplicates --ids | '\(TestPaths.executables)/safelight' trash -"
        let trashed = try RunningProgram.run("/bin/sh", ["-c", trash], environment: services.environment)
        #expect(trashed.status == 0, "\(trashed.errors)")
        #expect(try services.safelight(["duplicates"]).errors == "no image is in the library twice\n")
        #expect(services.stop() == [])
    }

    /// Creates one file of each format, and a copy of each that ExifTool has tagged. Pillow or libvips decodes both to
    /// the same pixels.
    private static let script = #"""
        import os, shutil, subprocess, sys
        from PIL import Image

        first, second = sys.argv[1:]
        os.makedirs(second)
        image = Image.open(f"{first}/a.jpg")
        image.save(f"{first}/d.png")
        image.save(f"{first}/e.webp", quality=70)
        image.save(f"{first}/f.tif")
        image.save(f"{first}/g.jpg", progressive=True, quality=91)
        for name in ("h.heic", "i.avif"):
            subprocess.run(["vips", "copy", f"{first}/a.jpg", f"{first}/{name}"], check=True)
        for name in sorted(os.listdir(first)):
            copy = f"{second}/tagged-{name}"
            shutil.copy(f"{first}/{name}", copy)
            subprocess.run(["exiftool", "-q", "-overwrite_original", "-XMP-dc:Subject=elsewhere", "-Artist=Ann Other",
                            "-Orientation#=6", "-XMP-xmp:Rating=4", copy], check=True)
        def pixels(path):
            if path.endswith((".heic", ".avif", ".tif")):
                return subprocess.run(["vips", "rawsave", path, "/dev/stdout"], check=True, capture_output=True).stdout
            return Image.open(path).convert("RGB").tobytes()

        for name in os.listdir(first):
            if not name.endswith(".dng"):
                assert pixels(f"{first}/{name}") == pixels(f"{second}/tagged-{name}"), name
        """#
}
