import Foundation
import JSONValue
import TestSupport
import Testing

/// `safelight edit --engine`, `--lut` and `safelight describe edit`, as a user runs them.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct LookCommandTests {
    private static func cube(_ header: String = "LUT_3D_SIZE 4") -> String {
        let points = (0..<64).map { index in
            "\(Double(index % 4) / 3) \(0.8 * Double(index / 4 % 4) / 3) \(1 - Double(index / 16) / 3)"
        }
        return "TITLE \"film\"\n\(header)\n\(points.joined(separator: "\n"))\n"
    }

    @Test(.spec("S-88")) func `a look is applied, kept with the edit, exported and used by convert`() throws {
        let services = try SafelightFixture("looks")
        try services.folder.write(TestImages.jpeg(width: 240, height: 160), to: "photos/a.jpg")
        let film = try services.folder.write(Self.cube().utf8, to: "film.cube")
        let broken = try services.folder.write(Self.cube("LUT_3D_SIZE 5").utf8, to: "broken.cube")
        try services.start()
        #expect(try services.safelight(["import", services.folder.file("photos")]).status == 0)
        let id = try services.safelight(["fetch", "--ids"]).output.trimmingCharacters(in: .whitespacesAndNewlines)

        let refused = try services.safelight(["edit", id, "--lut", broken])
        #expect(refused.status != 0 && refused.errors.contains("64 points instead of 125"), "\(refused.errors)")
        let edited = try services.safelight(["edit", id, "--lut", film, "--exposure", "0.3", "--engine", "imagemagick"])
        #expect(edited.status == 0, "\(edited.errors)")
        let history = try services.safelight(["history", id, "--json"])
        #expect(
            history.output.contains("\"imagemagick\"") && history.output.contains("\"lut\""),
            "\(history.output.prefix(300))"
        )

        // The command's result for the original equals the editor's.
        let (script, original) = (services.folder.file("edit.sh"), services.folder.file("photos/a.jpg"))
        let described = try services.safelight(["describe", "edit", id, "--as", "convert", "--output", script])
        #expect(described.status == 0, "\(described.errors)")
        let (output, render) = (services.folder.file("out.png"), services.folder.file("render"))
        _ = try ExternalTool.run("/bin/sh", [script, original, output])
        #expect(try services.safelight(["export", "--current", "--output", render]).status == 0)
        let file = try #require(
            try FileManager.default.contentsOfDirectory(atPath: render).first { $0.hasSuffix(".jpg") }
        )
        let compare = try Needed.program("compare")
        let run = try RunningProgram.run(compare, ["-metric", "PSNR", "\(render)/\(file)", output, "null:"])
        #expect(Double(run.errors.trimmingCharacters(in: .whitespacesAndNewlines)) ?? 0 > 35, "\(run.errors)")

        // Presets carry the look, and undo repeats the engine.
        #expect(
            try services.safelight(["preset", "take", "film", id, "--presets", services.folder.file("p")]).status == 0
        )
        #expect(try services.safelight(["revert", id]).status == 0)
        let again = try services.safelight(["edit", id, "--preset", "film", "--presets", services.folder.file("p")])
        #expect(again.status == 0, "\(again.errors)")
        let undone = try services.safelight(["history", id, "--undo-to", "1"])
        #expect(undone.status == 0, "\(undone.errors)")
        #expect(
            try services.safelight(["history", id, "--json"]).output.components(separatedBy: "\"imagemagick\"").count
                > 2
        )
        let hald = try services.safelight([
            "describe", "edit", id, "--as", "hald", "--output", services.folder.file("h.png"),
        ])
        #expect(hald.status == 0, "\(hald.errors)")
        #expect(try services.safelight(["edit", id, "--lut", services.folder.file("h.png")]).status == 0)
        #expect(services.stop() == [])
    }
}
