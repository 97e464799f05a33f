import ImageFormats
@testable import Imaging
import TestSupport
import Testing

/// Tests of colour spaces that a PNG specifies by numbers.
@Suite(.timeLimit(.minutes(1)))
struct PNGColourTests {
    private func rendered(_ chunks: [(name: String, content: [UInt8])]) throws -> [Int] {
        let png = TestImages.png(width: 16, height: 16, chunks: chunks) { _, _ in (200, 100, 50, 255) }
        return try TestPixels(RenditionRenderer.render(png, RenditionOptions(format: .png)).bytes)[8, 8]
    }

    private func profile(_ profile: [UInt8]) -> (name: String, content: [UInt8]) {
        ("iCCP", Array("x".utf8) + [0, 0] + TestImages.stored(profile))
    }

    private static let displayP3: (name: String, content: [UInt8]) = ("cICP", [12, 13, 0, 1])
    private static let sRGB: (name: String, content: [UInt8]) = ("cICP", [1, 13, 0, 1])

    @Test func `Display P3 by number is converted, and takes precedence over a profile`() throws {
        for chunks in [[Self.displayP3], [Self.displayP3, profile(ColourProfile.sRGB)]] {
            let colour = try rendered(chunks)
            for (found, expected) in zip(colour, [215, 93, 31]) { #expect(abs(found - expected) <= 1, "\(colour)") }
        }
    }

    @Test func `sRGB by number, and numbers that are not known, change nothing`() throws {
        #expect(try rendered([Self.sRGB, profile(ColourProfile.displayP3)]) == [200, 100, 50])
        #expect(try rendered([("cICP", [3, 13, 0, 1])]) == [200, 100, 50])
        #expect(try rendered([("cICP", [9, 14, 9, 1])]) == [200, 100, 50])
        #expect(try rendered([("cICP", [12])]) == [200, 100, 50])
    }
}
