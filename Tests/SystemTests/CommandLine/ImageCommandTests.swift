import Foundation
import JSONValue
import TestSupport
import Testing

/// `safelight thumb`, `warm`, `export --size` and the thumbnailer's line of `status`, as a user runs them.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct PictureCommandTests {
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
        let saved = try Data(contentsOf: URL(fileURLWithPath: services.folder.file("a.jpg")))
        #expect(reported["size"]?.intValue == Int64(saved.count) && saved.starts(with: [0xFF, 0xD8]))

        let export = try services.safelight(
            ["export", "--size", "90", "--format", "webp", "--output", services.folder.file("out")]
        )
        #expect(export.status == 0, "\(export.errors)")
        let exported = try files(in: services.folder.file("out"))
        #expect(exported.count == 5 && exported.allSatisfy { $0.hasSuffix(".webp") }, "\(exported)")
        let status = try services.safelight(["status"])
        #expect(status.output.contains("images: 0 waiting"), "\(status.output)")
        let refused = try services.safelight(["thumb", id, "--size", "0x9"])
        #expect(refused.status != 0 && refused.errors.contains("640x480"), "\(refused.errors)")
        #expect(services.stop() == [])
    }
}
