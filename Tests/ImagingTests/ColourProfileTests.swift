import ImageFormats
@testable import Imaging
import SamplePhotos
import TestSupport
import Testing

/// Tests that profiles are recognized by their primaries and curves, not by their names.
@Suite(.timeLimit(.minutes(TestEnvironment.rounds(2))))
struct ColourProfileTests {
    /// Returns a profile whose values are proportional to light, under the same name.
    private func linear(_ profile: [UInt8]) -> [UInt8] {
        var profile = profile
        let linearCurve: [UInt8] = Array("para".utf8) + [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]
        let name = Array("para".utf8)
        for start in profile.indices where profile[start...].starts(with: name) {
            profile.replaceSubrange(start..<start + linearCurve.count, with: linearCurve)
        }
        return profile
    }

    /// Returns a profile with other characters in its name.
    private func renamed(_ profile: [UInt8], _ name: String) -> [UInt8] {
        let units = name.utf8.flatMap { (letter: UInt8) -> [UInt8] in [0, letter] }
        return profile.replacing(units, with: name.utf8.flatMap { (_: UInt8) -> [UInt8] in [0, 0x58] })
    }

    private func rendered(_ profile: [UInt8], _ pixel: (UInt8, UInt8, UInt8)) throws -> [Int] {
        let segment = JPEGEncoder.segment(0xE2, Array("ICC_PROFILE\0".utf8) + [1, 1] + profile)
        let bytes = TestImages.jpeg(width: 16, height: 16, segments: [segment]) { _, _ in pixel }
        let image = try RenditionRenderer.render(bytes, RenditionOptions(format: .png))
        return try TestPixels(image.bytes)[8, 8]
    }

    @Test func `a linear profile whose name contains sRGB is converted`() throws {
        let profile = linear(ColourProfile.sRGB)
        #expect(!ColourProfile.isSRGB(profile))
        // 128 / 255 of the light is 188 in sRGB.
        let grey = try rendered(profile, (128, 128, 128))
        for value in grey { #expect(abs(value - 188) <= 2, "\(grey)") }
        #expect(!ColourProfile.isDisplayP3(linear(ColourProfile.displayP3)))
    }

    @Test func `a wide profile with the name sRGB is converted, and sRGB of another name is recognized`() throws {
        let wide = ColourProfile.displayP3.replacing(Array("P\03".utf8), with: Array("G\0B".utf8))
        #expect(!ColourProfile.isSRGB(wide) && ColourProfile.isDisplayP3(wide))
        let other = renamed(ColourProfile.sRGB, "sRGB")
        #expect(other != ColourProfile.sRGB)
        #expect(ColourProfile.isSRGB(other) && !ColourProfile.isDisplayP3(other))
    }

    @Test func `damaged profiles are neither sRGB nor Display P3`() {
        var random = SeededRandom(named: "profiles")
        for length in stride(from: 0, to: ColourProfile.sRGB.count - 40, by: 9) {
            #expect(!ColourProfile.isSRGB(Array(ColourProfile.sRGB.prefix(length))))
        }
        for _ in 0..<TestEnvironment.rounds(500) {
            var bytes = ColourProfile.sRGB
            for _ in 0..<8 {
                bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            #expect(!ColourProfile.isDisplayP3(bytes))
        }
    }
}
