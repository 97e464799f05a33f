import Foundation
@testable import Imaging
import ImageFormats
import PhotoModel
import TestSupport
import Testing

/// Tests with real photographs, if the folder exists.
@Suite(.timeLimit(.minutes(5)))
struct SharedPhotoTests {
    private static let options = RenditionOptions(
        target: .size(width: 256, height: 256),
        resizeMode: .exact,
        quality: 95
    )

    @Test func `the numbered orientation images are rendered upright`() throws {
        try Needed.photographs()
        // The second collection was compressed strongly after its rotation: its images differ by 22 dB at full size.
        let sets = [
            ("orientation", "Landscape", 25.0), ("orientation", "Portrait", 25),
            ("exif-samples/jpg/orientation", "landscape", 24), ("exif-samples/jpg/orientation", "portrait", 25),
        ]
        for (folder, name, minimum) in sets {
            let files = SharedPhotos.files(["jpg"], below: folder).filter { $0.lastPathComponent.hasPrefix(name) }
            func pixels(_ number: Int) throws -> TestPixels {
                let file = try #require(files.first { $0.lastPathComponent == "\(name)_\(number).jpg" })
                return try TestPixels(RenditionRenderer.render(SharedPhotos.bytes(file), Self.options).bytes)
            }
            let upright = try pixels(1)
            for number in 2...8 {
                let decibels = try pixels(number).psnr(upright)
                #expect(decibels > minimum, "\(folder)/\(name)_\(number): \(decibels) dB")
            }
        }
    }

    /// Files that cannot be rendered, with the error. All other files must be rendered.
    static let broken: [String: String] = [:]

    @Test func `every photograph is rendered in the right size or has a known error`() throws {
        try Needed.photographs()
        for file in SharedPhotos.files(["jpg", "jpeg", "tiff", "heic", "heif", "png"]) {
            let bytes = SharedPhotos.bytes(file)
            let name = SharedPhotos.name(file)
            do throws(ImagingError) {
                let image = try RenditionRenderer.render(bytes, Self.options)
                let info = try ImageProbe.info(of: bytes)
                #expect(max(image.pixelWidth, image.pixelHeight) == 256, "\(name)")
                let ratio = Double(info.pixelWidth) / Double(info.pixelHeight)
                let expected = ratio > 1 ? 256 / ratio : 256 * ratio
                #expect(abs(Double(min(image.pixelWidth, image.pixelHeight)) - expected) <= 1, "\(name)")
                #expect(Self.broken[name] == nil, "\(name) can be rendered after all")
            } catch {
                #expect(Self.broken[name] == error.message, "\(name): \(error.message)")
            }
        }
    }

    @Test func `a HEIC is rotated once, both from its preview and from its pixels`() throws {
        try Needed.photographs()
        for file in SharedPhotos.files(["heic", "heif"]) where !file.lastPathComponent.contains("hdr") {
            let bytes = SharedPhotos.bytes(file)
            let header = try ImageHeader.read(bytes)
            // The image may be rendered from the preview, which some phones compress strongly: the correct orientation
            // is above 20 dB, a double rotation below 15.
            var options = Self.options
            options.resizeMode = .fast
            let small = try TestPixels(RenditionRenderer.render(bytes, options).bytes)
            let whole = try Decoder.decode(bytes, header, eighths: 8, scale: 1, limits: PixelLimits())
            #expect((whole.width, whole.height) == (header.pixelWidth, header.pixelHeight), "\(file.lastPathComponent)")
            try whole.resize(small.width, small.height)
            try ColourProfile.convertToSRGB(whole)
            let reference = try TestPixels(Encoder.encode(whole, format: .png, quality: 90))
            #expect(small.psnr(reference) > 20, "\(file.lastPathComponent): \(small.psnr(reference)) dB")
        }
    }
}
