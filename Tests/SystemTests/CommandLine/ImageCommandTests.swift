import Basics
import Foundation
import JSONValue
import TestSupport
import Testing

/// `safelight thumb`, `warm`, `export --size` and the thumbnailer's line of `status`, as a user runs them.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct ImageCommandTests {
    private func files(in folder: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
    }

    @Test(.spec("S-40", "S-54", "P-14")) func `images are warmed, saved and exported from the command line`() throws {
        let services = try SafelightFixture("commands")
        for index in 0..<5 {
            let bytes = TestImages.jpeg(
                width: 300,
                height: 200,
                date: "2024:06:0\(index + 1) 12:00:00",
                seed: UInt64(index)
            )
            try services.folder.write(bytes, to: "photos/\(index).jpg")
        }
        try services.start()
        #expect(try services.safelight(["import", services.folder.file("photos")]).status == 0)
        let listed = try services.safelight(["fetch", "--json"]).output.split(separator: "\n")
        let id = try #require(try listed.lazy.compactMap { try JSON(parsing: Array($0.utf8))["id"]?.stringValue }.first)

        let warm = try services.safelight(["warm", "--size", "128", "--size", "64", "--exact"])
        #expect(warm.status == 0, "\(warm.errors)")
        let thumb = try services.safelight(
            ["thumb", id, "--size", "128", "--exact", "--json", "--output", services.folder.file("a.jpg")]
        )
        #expect(thumb.status == 0, "\(thumb.errors)")
        let reported = try JSON(parsing: Array(thumb.output.utf8))
        #expect(
            reported["isCacheHit"] == true && reported["pixelWidth"] == 128 && reported["pixelHeight"] == 85,
            "\(reported.text)"
        )
        // Sizes smaller and larger than the image, which is scaled down or left unchanged.
        for size in ["96", "400"] {
            #expect(try services.safelight(["warm", "--size", size]).status == 0)
            let thumb = try services.safelight(
                ["thumb", id, "--size", size, "--json", "--output", services.folder.file("b.jpg")]
            )
            #expect(try JSON(parsing: Array(thumb.output.utf8))["isCacheHit"] == true, "\(size): \(thumb)")
        }
        let saved = try Data(contentsOf: URL(fileURLWithPath: services.folder.file("a.jpg")))
        #expect(reported["size"]?.intValue == Int64(saved.count) && saved.starts(with: [0xFF, 0xD8]))

        let export = try services.safelight(
            ["export", "--size", "90", "--format", "webp", "--output", services.folder.file("out")]
        )
        #expect(export.status == 0, "\(export.errors)")
        let exported = try files(in: services.folder.file("out"))
        #expect(exported == (0..<5).map { "\($0).webp" }, "\(exported)")
        let repeated = try services.safelight(
            ["export", "--size", "90", "--format", "webp", "--output", services.folder.file("out")]
        )
        #expect(repeated.output.components(separatedBy: ", already there").count == 6, "\(repeated)")
        #expect(try files(in: services.folder.file("out")) == exported)
        let status = try services.safelight(["status"])
        #expect(status.output.contains("images: 0 waiting"), "\(status.output)")
        let refused = try services.safelight(["thumb", id, "--size", "0x9"])
        #expect(refused.status != 0 && refused.errors.contains("640x480"), "\(refused.errors)")
        #expect(services.stop() == [])
    }

    @Test func `an export continues after assets that it cannot save`() throws {
        let services = try SafelightFixture("export-errors")
        for seed in 1...2 {
            try services.folder.write(TestImages.jpeg(seed: UInt64(seed)), to: "photos/\(seed).jpg")
        }
        try services.start()
        #expect(try services.safelight(["import", services.folder.file("photos")]).status == 0)
        let out = services.folder.file("out")
        let missing = "a0000000000000000000000000z"
        let partly = try services.safelight(["export", "1.jpg", missing, "2.jpg", "-o", out])
        #expect(partly.status == 3 && partly.errors.contains("identifier_not_found"), "\(partly)")
        #expect(try files(in: out) == ["1.jpg", "2.jpg"])
        // A file has the path of the folder.
        let file = try services.folder.write(Array("mine".utf8), to: "file")
        for options in [["--size", "20"], []] {
            let failed = try services.safelight(["export", "1.jpg", "2.jpg", "-o", file] + options)
            let lines = failed.errors.split(separator: "\n").filter { $0.hasSuffix("(not_written)") }
            #expect(failed.status == 1 && lines.count == 1 && failed.errors.contains("not a folder"), "\(failed)")
        }
        try services.folder.write(Array("mine".utf8), to: "out/2.jpg.xmp")
        for _ in 1...2 {
            let exported = try services.safelight(["export", "2.jpg", "--sidecar", "-o", out])
            #expect(exported.status == 0, "\(exported)")
        }
        #expect(try files(in: out) == ["1.jpg", "2 (2).jpg", "2 (2).jpg.xmp", "2.jpg", "2.jpg.xmp"])
        #expect(try String(contentsOfFile: out + "/2.jpg.xmp", encoding: .utf8) == "mine")
        #expect(services.stop() == [])
    }

    @Test func `an existing sidecar is updated with the photo's values, unless somebody has changed it`() throws {
        let services = try SafelightFixture("sidecars")
        try services.folder.write(TestImages.jpeg(seed: 1), to: "photos/1.jpg")
        try services.start()
        #expect(try services.safelight(["import", services.folder.file("photos")]).status == 0)
        let out = services.folder.file("out")
        func export(rating: Int) throws {
            #expect(try services.safelight(["set", "1.jpg", "--rating", "\(rating)"]).status == 0)
            let exported = try services.safelight(["export", "1.jpg", "--sidecar", "--output", out])
            #expect(exported.status == 0, "\(exported)")
        }
        func sidecar(_ name: String) throws -> String { try String(contentsOfFile: out + "/" + name, encoding: .utf8) }
        for rating in [5, 4] {
            try export(rating: rating)
            #expect(try files(in: out) == ["1.jpg", "1.jpg.xmp"])
            #expect(try sidecar("1.jpg.xmp").contains("xmp:Rating=\"\(rating)\""))
        }
        let changed = try sidecar("1.jpg.xmp") + "<!-- mine -->\n"
        try services.folder.write(changed.utf8, to: "out/1.jpg.xmp")
        try export(rating: 3)
        #expect(try files(in: out) == ["1 (2).jpg", "1 (2).jpg.xmp", "1.jpg", "1.jpg.xmp"])
        #expect(try sidecar("1.jpg.xmp") == changed)
        #expect(try sidecar("1 (2).jpg.xmp").contains("xmp:Rating=\"3\""))
        #expect(services.stop() == [])
    }

    @Test func `files are exported under their names, and existing files are not replaced`() throws {
        let services = try SafelightFixture("export")
        for (path, seed) in [("a/IMG_1.jpg", 1), ("b/IMG_1.jpg", 2), ("b/IMG_2.jpg", 3)] as [(String, UInt64)] {
            try services.folder.write(TestImages.jpeg(seed: seed), to: "photos/" + path)
        }
        try services.folder.write(Array("mine".utf8), to: "out/IMG_2.jpg")
        try services.start()
        #expect(try services.safelight(["import", services.folder.file("photos")]).status == 0)
        let out = services.folder.file("out")
        let names = ["IMG_1 (2).jpg", "IMG_1.jpg", "IMG_2 (2).jpg", "IMG_2.jpg"]
        for _ in 1...2 {
            let exported = try services.safelight(["export", "--output", out, "--sort", "originalFilename"])
            #expect(exported.status == 0, "\(exported)")
            #expect(try files(in: out) == names)
        }
        for name in ["a/IMG_1.jpg", "b/IMG_1.jpg"] {
            let original = try Data(contentsOf: URL(filePath: services.folder.file("photos/" + name)))
            let saved = try names.prefix(2).map { try Data(contentsOf: URL(filePath: out + "/" + $0)) }
            #expect(saved.contains(original), "\(name)")
        }
        #expect(try String(contentsOfFile: out + "/IMG_2.jpg", encoding: .utf8) == "mine")
        #expect(services.stop() == [])
    }

    @Test func `warm names the assets that cannot be rendered`() throws {
        let services = try SafelightFixture("warm")
        for index in 0..<3 {
            try services.folder.write(TestImages.jpeg(seed: UInt64(index)), to: "photos/\(index).jpg")
        }
        try services.start()
        #expect(try services.safelight(["import", services.folder.file("photos")]).status == 0)
        let stored = FileManager.default.enumerator(atPath: services.folder.file("library/resources"))
        let digest = SHA256.hash(data: TestImages.jpeg(seed: 1)).hexadecimal
        let path = try #require(stored?.compactMap { $0 as? String }.first { $0.contains(digest) })
        try FileManager.default.removeItem(atPath: services.folder.file("library/resources/" + path))
        let warm = try services.safelight(["warm", "--size", "64"])
        #expect(warm.status == 3 && warm.output.contains("2 images cached, 1 failed"), "\(warm)")
        #expect(warm.errors.contains("1.jpg: "), "\(warm)")
        #expect(services.stop() == [])
    }

    @Test func `a contact sheet is an image with filled rows, or a page that needs no other file`() throws {
        let services = try SafelightFixture("sheets")
        for (index, size) in [(300, 200), (200, 300), (400, 100)].enumerated() {
            let bytes = TestImages.jpeg(width: size.0, height: size.1, seed: UInt64(index))
            try services.folder.write(bytes, to: "photos/<\(index)> & \"co\".jpg")
        }
        try services.start()
        #expect(try services.safelight(["import", services.folder.file("photos")]).status == 0)
        // Files without a date are in the order of their imports, of which several run at a time.
        let order = ["--sort", "originalFilename"]
        for (layout, height) in [("justified", 8 + 100 + 18 + 8 + 79 + 18 + 8), ("grid", 8 + 100 + 18 + 8)] {
            let path = services.folder.file(layout + ".jpg")
            let sheet = try services.safelight(
                ["sheet", "--cell", "100", "--columns", "4", "--layout", layout, "-o", path, "--json"] + order
            )
            #expect(sheet.status == 0, "\(sheet)")
            #expect(try JSON(parsing: Array(sheet.output.utf8))["pixelHeight"] == JSON(height), "\(sheet)")
        }
        let page = services.folder.file("page.html")
        let saved = try services.safelight(["sheet", "-o", page, "--cell", "100", "--title", "Tom & <Jerry>"] + order)
        #expect(saved.status == 0 && saved.output.contains("3 images"), "\(saved)")
        let check = """
            import base64, html.parser, io, sys
            from PIL import Image
            text, images = [], []
            class Page(html.parser.HTMLParser):
                def handle_starttag(self, tag, attributes):
                    attributes = dict(attributes)
                    assert tag not in ("script", "link", "iframe"), tag
                    if tag == "img":
                        assert attributes["src"].startswith("data:image/jpeg;base64,")
                        image = Image.open(io.BytesIO(base64.b64decode(attributes["src"][23:])))
                        assert image.size == (int(attributes["width"]), int(attributes["height"])), attributes["width"]
                        images.append((attributes["alt"], image.width / image.height))
                def handle_data(self, data): text.append(data)
            content = open(sys.argv[1], encoding="utf-8").read()
            Page().feed(content)
            assert "http" not in content.split("<main>")[0] and "url(" not in content
            assert "Tom & <Jerry>" in text, text
            assert [name for name, _ in images] == [f'<{n}> & "co".jpg' for n in range(3)], images
            assert [round(ratio, 1) for _, ratio in images] == [1.5, 0.7, 4.0], images
            """
        let python = try Needed.python("PIL")
        let environment = ["PYTHONPATH": TestEnvironment.text("PYTHONPATH") ?? ""]
        let checked = try RunningProgram.run(python, ["-c", check, page], environment: environment)
        #expect(checked.status == 0, "\(checked.errors)")
        #expect(services.stop() == [])
    }
}
