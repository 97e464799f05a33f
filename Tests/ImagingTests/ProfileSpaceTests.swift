import Foundation
import ImageFormats
@testable import Imaging
import PhotoModel
import SamplePhotos
import TestSupport
import Testing

/// Tests that a profile for another colour space than that of the image is treated as broken.
@Suite(.timeLimit(.minutes(2)))
struct ProfileSpaceTests {
    private func with(_ profile: [UInt8], _ jpeg: [UInt8]) -> [UInt8] {
        let segment = JPEGEncoder.segment(0xE2, Array("ICC_PROFILE\0".utf8) + [1, 1] + profile)
        return Array(jpeg.prefix(2)) + segment + jpeg.dropFirst(2)
    }

    private func rendered(_ bytes: [UInt8]) throws -> [Int] {
        try TestPixels(RenditionRenderer.render(bytes, RenditionOptions(format: .png)).bytes)[8, 8]
    }

    @Test func `a profile for grey or inks is not applied to an RGB image, nor in an edit`() throws {
        let green = TestImages.jpeg(width: 16, height: 16, segments: []) { _, _ in (0, 200, 0) }
        for profile in [TestProfiles.grey, TestProfiles.inks] {
            let bytes = with(profile, green)
            let edited = try AdjustmentRendering.render(bytes, .init(operations: [.exposure(0.01)]))
            for colour in [try rendered(bytes), try rendered(edited.bytes)] {
                for (found, expected) in zip(colour, [0, 200, 0]) { #expect(abs(found - expected) <= 4, "\(colour)") }
            }
        }
    }

    private func magick(_ arguments: [String]) throws -> [UInt8] {
        [UInt8](try ExternalTool.run(try Needed.program("convert"), ["-size", "16x16"] + arguments + ["jpg:-"]))
    }

    @Test func `a profile for RGB is not applied to CMYK`() throws {
        let inks = try magick(["xc:rgb(200,60,60)", "-colorspace", "CMYK"])
        let expected = try rendered(inks)
        for profile in [ColourProfile.displayP3, ColourProfile.sRGB, TestProfiles.grey] {
            let bytes = with(profile, inks)
            #expect(try rendered(bytes) == expected)
            let edited = try rendered(
                try AdjustmentRendering.render(bytes, .init(operations: [.exposure(0.001)])).bytes
            )
            for (found, value) in zip(edited, expected) { #expect(abs(found - value) <= 4, "\(edited)") }
        }
    }

    @Test func `a profile for grey is applied to grey images, whole, smaller and straightened`() throws {
        let grey = with(TestProfiles.grey, try magick(["xc:gray(128)", "-colorspace", "Gray"]))
        // 128 with the exponent 1.8 is 146 in sRGB.
        var images = [grey, try AdjustmentRendering.render(grey, .init(operations: [.exposure(0.001)])).bytes]
        images.append(
            try AdjustmentRendering.render(grey, .init(operations: [.straighten(3), .exposure(0.001)])).bytes
        )
        for bytes in images {
            let colour = try rendered(bytes)
            for value in colour { #expect(abs(value - 146) <= 3, "\(colour)") }
        }
    }
}
