import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// `safelight edit --magick` and the parameter `magick`, through the real services. The short form gives every eighth
/// fragment to the command, which is started for each; all of them go through the methods in
/// `MagickFragmentsByScriptTests`.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct MagickCommandTests {
    @Test(.spec("S-88"))
    func `options of convert are translated or refused on the command line`() async throws {
        let services = try SafelightFixture("options")
        try services.folder.write(TestImages.jpeg(width: 240, height: 160), to: "photos/a.jpg")
        try services.start()
        #expect(try services.safelight(["import", services.folder.file("photos")]).status == 0)
        let id = try services.safelight(["fetch", "--ids"]).output.trimmingCharacters(in: .whitespacesAndNewlines)
        let asset = try #require(ObjectID(id))
        let library = try services.library()

        let step = TestEnvironment.rounds(1) > 1 ? 1 : 8
        for text in Self.every(step, of: MagickFragments.accepted) {
            let run = try services.safelight(["edit", id, "--magick", text, "--dry-run"])
            #expect(run.status == 0, "\(text): \(run.errors)")
        }
        for refused in Self.every(step, of: MagickFragments.refused) {
            // An argument of a process cannot contain a zero byte.
            guard !refused.text.contains("\0") else { continue }
            let run = try services.safelight(["edit", id, "--magick", refused.text, "--dry-run"])
            let isNamed = run.errors.replacingOccurrences(of: "\n", with: " ").contains(refused.errorPart)
            #expect(
                run.status == 2 && isNamed,
                "\(refused.text.prefix(60)): \(run.status ?? -1) \(run.errors.prefix(300))"
            )
        }

        // The stored edit is a list of operations, which copies and undo repeat.
        let edited = try services.safelight(["edit", id, "--magick", MagickFragments.accepted[0]])
        #expect(edited.status == 0, "\(edited.errors)")
        let history = try services.safelight(["history", id, "--json"]).output
        for name in ["\"modulate\"", "\"unsharpMask\"", "\"rotate\""] { #expect(history.contains(name), "\(name)") }
        let preview = try await library.editor.ask(
            PreviewEdit(asset: asset, adjustments: AdjustmentList(), magick: try MagickOptions("-crop 120x80+0+0"))
        )
        #expect(preview.result.pixelWidth == 120 && preview.result.pixelHeight == 80)
        // The size is that of the edited image, which was rotated.
        let more = try services.safelight(["edit", id, "--append", "--magick", "-crop 100x200+0+0"])
        #expect(more.status == 0, "\(more.errors)")
        let shown = try await library.asset(asset)
        #expect(shown.currentResource.map { [$0.pixelWidth, $0.pixelHeight] } == [100, 200])
    }

    private static func every<Element>(_ step: Int, of elements: [Element]) -> [Element] {
        stride(from: 0, to: elements.count, by: step).map { elements[$0] }
    }

    @Test func `published edits take options of convert, and fail if an image is too small`() throws {
        let services = try SafelightFixture("published")
        try services.folder.write(TestImages.jpeg(width: 240, height: 160), to: "photos/a.jpg")
        try services.start()
        #expect(try services.safelight(["import", services.folder.file("photos")]).status == 0)
        let id = try services.safelight(["fetch", "--ids"]).output.trimmingCharacters(in: .whitespacesAndNewlines)
        let good = try services.folder.write(
            "{\"asset\": \"\(id)\", \"magick\": \"-modulate 100,130 -border 4\"}\n".utf8,
            to: "good.jsonl"
        )
        let published = try services.safelight(["publish", good])
        #expect(published.status == 0, "\(published.errors)")
        #expect(try services.safelight(["history", id, "--json"]).output.contains("\"border\""))
        let large = try services.folder.write(
            "{\"asset\": \"\(id)\", \"magick\": \"-resize 900x900\"}\n".utf8,
            to: "large.jsonl"
        )
        let failed = try services.safelight(["publish", large])
        #expect(failed.status == 3 && (failed.output + failed.errors).contains("enlarge"), "\(failed)")
        let bad = try services.folder.write("{\"asset\": \"\(id)\", \"magick\": \"-write x\"}\n".utf8, to: "bad.jsonl")
        let refused = try services.safelight(["publish", bad])
        #expect(refused.status != 0 && refused.errors.contains("-write"), "\(refused.errors)")
    }
}
