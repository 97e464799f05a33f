import Foundation
import ImageFormats
import JSONValue
@testable import Imaging
import PhotoModel
import SamplePhotos
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct ColourTests {
    private func withProfile(_ profile: [UInt8], _ pixel: (UInt8, UInt8, UInt8)) -> [UInt8] {
        let segment = JPEGEncoder.segment(0xE2, Array("ICC_PROFILE\0".utf8) + [1, 1] + profile)
        return TestImages.jpeg(width: 16, height: 16, segments: [segment]) { _, _ in pixel }
    }

    @Test func `a wide colour space is converted, not reinterpreted`() throws {
        // Display P3 (200, 100, 50) is (215, 95, 34) in sRGB, by the matrices of both.
        let small = try RenditionRenderer.render(
            withProfile(ColourProfile.displayP3, (200, 100, 50)),
            RenditionOptions(quality: 100)
        )
        let colour = try TestPixels(small.bytes)[8, 8]
        for (found, expected) in zip(colour, [215, 95, 34]) { #expect(abs(found - expected) <= 4, "\(colour)") }
        let same = try RenditionRenderer.render(
            withProfile(ColourProfile.sRGB, (200, 100, 50)),
            RenditionOptions(quality: 100)
        )
        let unchanged = try TestPixels(same.bytes)[8, 8]
        for (found, expected) in zip(unchanged, [200, 100, 50]) { #expect(abs(found - expected) <= 2, "\(unchanged)") }
    }

    @Test func `a broken profile is not an error`() throws {
        for profile in [[UInt8](repeating: 7, count: 40), Array(ColourProfile.displayP3.prefix(150)), [0]] {
            let image = try RenditionRenderer.render(
                withProfile(profile, (200, 100, 50)),
                RenditionOptions(quality: 100)
            )
            let colour = try TestPixels(image.bytes)[8, 8]
            for (found, expected) in zip(colour, [200, 100, 50]) { #expect(abs(found - expected) <= 3, "\(colour)") }
        }
    }

    @Test
    func `an edit without colour operations keeps the profile, others stay in Display P3 or become sRGB`() throws {
        // The X of its red is 0.518 instead of 0.515.
        let unknown = ColourProfile.displayP3.replacing([0, 0, 0x83, 0xDF], with: [0, 0, 0x84, 0xA4])
        #expect(unknown != ColourProfile.displayP3)
        for (profile, isKept) in [(ColourProfile.displayP3, true), (unknown, false)] {
            let bytes = withProfile(profile, (200, 100, 50))
            let plain = try AdjustmentRendering.render(bytes, .init(operations: [.rotate(.quarter)]))
            #expect(ByteSearch.contains(plain.bytes, "ICC_PROFILE"))
            for (found, expected) in zip(try TestPixels(plain.bytes)[8, 8], [215, 95, 34]) {
                #expect(abs(found - expected) <= 5)
            }
            let changed = try AdjustmentRendering.render(bytes, .init(operations: [.exposure(0.01)]))
            #expect(ByteSearch.contains(changed.bytes, "ICC_PROFILE") == isKept)
            for (found, expected) in zip(try TestPixels(changed.bytes)[8, 8], [215, 95, 34]) {
                #expect(abs(found - expected) <= 5)
            }
        }
    }

    @Test func `colours and watermarks of a list are in sRGB, also on an image in Display P3`() throws {
        let bytes = withProfile(ColourProfile.displayP3, (20, 20, 20))
        let mark = TestImages.png(width: 4, height: 4) { _, _ in (200, 100, 50, 255) }
        let members: JSONObject = [
            "picture": .string(Data(mark).base64EncodedString()), "size": 1, "margin": 0, "opacity": 1,
        ]
        let list = AdjustmentList(
            operations: [
                try Adjustment(.pictureWatermark, members),
                try Adjustment(.border, ["size": 0.5, "colour": "#c86432"]),
            ]
        )
        for engine in RenderEngine.allCases {
            let image = try AdjustmentRendering.render(bytes, list, format: .tiff, engine: engine)
            let pixels = try TestPixels(image.bytes)
            // A pixel of the watermark, and a pixel of the border.
            for colour in [pixels[16, 16], pixels[2, 2]] {
                for (found, expected) in zip(colour, [200, 100, 50]) {
                    #expect(abs(found - expected) <= 3, "\(engine): \(colour)")
                }
            }
        }
    }

    @Test func `CMYK and grey images are converted to sRGB`() throws {
        for (space, file) in [("CMYK", "cmyk.jpg"), ("Gray", "grey.jpg")] {
            let convert = try Needed.program("convert")
            let bytes = [UInt8](
                try ExternalTool.run(convert, ["-size", "32x32", "xc:rgb(200,60,60)", "-colorspace", space, "jpg:-"])
            )
            let image = try RenditionRenderer.render(
                bytes,
                RenditionOptions(target: .size(width: 8, height: 8), resizeMode: .exact)
            )
            let colour = try TestPixels(image.bytes)[4, 4]
            if space == "CMYK" {
                for (found, expected) in zip(colour, [200, 60, 60]) {
                    #expect(abs(found - expected) <= 6, "\(file) \(colour)")
                }
            } else {
                #expect(colour[0] == colour[1] && colour[1] == colour[2], "\(file) \(colour)")
            }
            let edited = try AdjustmentRendering.render(bytes, .init(operations: [.straighten(3), .exposure(0.01)]))
            #expect(try TestPixels(edited.bytes)[4, 4].max() ?? 0 > 80, "\(file)")
        }
    }
}

enum ByteSearch {
    static func contains(_ bytes: [UInt8], _ text: String) -> Bool {
        let pattern = Array(text.utf8)
        return bytes.indices.contains { bytes[$0...].starts(with: pattern) }
    }
}
