import Foundation
import ImageFormats
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Imaging

@Suite(.timeLimit(.minutes(5)))
struct TextTests {
    private func render(_ text: String, size: Double = 0.9) throws -> TestPixels {
        let black = TestImages.png(width: 400, height: 100) { _, _ in (0, 0, 0, 255) }
        let members: JSONObject = [
            "text": .string(text), "size": .double(size), "position": "topLeft", "margin": 0, "opacity": 1,
        ]
        let list = AdjustmentList(operations: [try Adjustment(.textWatermark, members)])
        return try TestPixels(AdjustmentRendering.render(black, list, format: .png).bytes)
    }

    @Test func `each character has its own shape, whatever its script`() throws {
        let texts = ["©", "ö", "o", "?", "東", "京", "Ω", "Ж", "ب", "א", "ﬁ", "…"]
        var seen: [[UInt8]: String] = [:]
        for text in texts {
            let pixels = try render(text)
            #expect(pixels.rgb.contains { $0 > 200 }, "\(text) is visible")
            #expect(seen.updateValue(text, forKey: pixels.rgb.map { UInt8($0) }) == nil, "\(text)")
        }
    }

    @Test func `a line equals that of Pillow with the same font`() throws {
        let folder = try TemporaryFolder("text")
        let python = try Needed.program("python3")
        for text in ["© Jörg 2026", "Grüße mit Äpfeln", "office fjord"] {
            let path = folder.file("pillow.pgm")
            let script = """
                import sys
                from PIL import Image, ImageFont
                font = ImageFont.truetype(sys.argv[1], 64, layout_engine=ImageFont.Layout.BASIC)
                mask = font.getmask(sys.argv[2])
                Image.frombytes("L", mask.size, bytes(mask)).crop(mask.getbbox()).save(sys.argv[3])
                """
            let run = try RunningProgram.run(python, ["-c", script, TextRenderer.fonts[0].path, text, path])
            try #require(run.status == 0, "\(run.errors)")
            let file = try [UInt8](Data(contentsOf: URL(filePath: path)))
            let line = try #require(try TextRenderer.draw(text, size: 64))
            let header = String(decoding: file.prefix(15), as: UTF8.self).split(separator: "\n")
            let size = header[1].split(separator: " ").compactMap { Int($0) }
            // Pillow rounds each advance and hints; both draw the same outlines.
            #expect(abs(size[0] - line.width) <= text.count && abs(size[1] - line.height) <= 2, "\(text): \(size)")
            let ink = (
                file.suffix(size[0] * size[1]).reduce(0) { $0 + Int($1) }, line.pixels.reduce(0) { $0 + Int($1) }
            )
            #expect(abs(Double(ink.0) / Double(ink.1) - 1) < 0.06, "\(text): \(ink)")
        }
    }

    @Test func `texts are as wide as their size says, and never higher than the image`() throws {
        for text in ["Safelight", "© Jörg 東京", "i"] {
            let pixels = try render(text, size: 0.5)
            let columns = (0..<400).filter { x in (0..<100).contains { pixels[x, $0][0] > 0 } }
            let rows = (0..<100).filter { y in (0..<400).contains { pixels[$0, y][0] > 0 } }
            let width = (columns.last ?? 0) - (columns.first ?? 0) + 1
            let height = (rows.last ?? 0) - (rows.first ?? 0) + 1
            #expect(abs(width - 200) <= 2 || height >= 98, "\(text): \(width) by \(height)")
        }
    }

    @Test func `characters that no font has are refused with their code points`() throws {
        let error = #expect(throws: ImagingError.self) { try render("a\u{1F4F7}b\u{E000}") }
        #expect(error?.message.contains("U+1F4F7") == true && error?.message.contains("U+E000") == true)
        #expect(error?.name == "invalid_options")
        // A label is drawn without those characters.
        #expect(try TextRenderer.draw("a\u{1F4F7}", size: 12) != nil)
    }

    @Test func `long lines of wide characters and the shortest ones are drawn`() throws {
        let long = try #require(try TextRenderer.draw(String(repeating: "W", count: 200), width: 1000, height: 100))
        #expect(abs(long.width - 1000) <= 8, "\(long.width)")
        // This would need more pixels per em than a font can have.
        let point = try #require(try TextRenderer.draw(".", width: 5000, height: 5000))
        #expect(point.height > 3000 && point.height <= 5000, "\(point.height)")
    }

    @Test func `a combining mark is drawn with a font that has it, else it is refused`() throws {
        #expect(TextRenderer.missing(in: "u\u{364} 中\u{301} \u{2066}a\u{2069}") == ["\u{364}"])
        let plain = try #require(try TextRenderer.draw("中", size: 64))
        let marked = try #require(try TextRenderer.draw("中\u{301}", size: 64))
        #expect(marked.width < plain.width + 16, "no box beside it: \(marked.width), \(plain.width)")
        #expect(marked.pixels != plain.pixels)
    }

    @Test func `lines of right-to-left scripts are ordered and joined`() throws {
        let joined = try #require(try TextRenderer.draw("بب", size: 40))
        let single = try #require(try TextRenderer.draw("ب", size: 40))
        #expect(joined.width < 2 * single.width, "the letters are joined")
        let mixed = try #require(try TextRenderer.draw("אב", size: 40))
        let reversed = try #require(try TextRenderer.draw("בא", size: 40))
        #expect(mixed.pixels != reversed.pixels)
    }
}
