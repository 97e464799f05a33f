@testable import Imaging
import ImageFormats
import PhotoModel
import TestSupport
import Testing

/// Tests of Photoshop, TGA, ICO and portable maps, compared with Pillow.
@Suite(.serialized, .timeLimit(.minutes(TestEnvironment.rounds(5))))
struct OtherFormatTests {
    private static let formats: [String: ImageFormat] = [
        "ppm": .pnm, "pgm": .pnm, "pbm": .pnm, "pam": .pnm, "tga": .tga, "ico": .ico,
        "psd": .psd, "psb": .psd,
    ]

    /// Returns red, green, blue and opacity of all pixels.
    private func decoded(_ bytes: [UInt8]) throws -> (width: Int, height: Int, pixels: [UInt8]) {
        let header = try ImageHeader.read(bytes)
        let wand = try Decoder.decode(bytes, header, eighths: DecodeScale.full, scale: 1, limits: PixelLimits())
        try ColourProfile.convertToSRGB(wand)
        let (width, height) = (wand.width, wand.height)
        var pixels: [UInt8] = []
        let hasAlpha = wand.hasAlpha
        // Blue, green, red and transparency in 16 bits.
        try wand.withPixelsForReading { values, count in
            for offset in stride(from: 0, to: 4 * count, by: 4) {
                let alpha = hasAlpha ? 65_535 - values[offset + 3] : 65_535
                pixels += [values[offset + 2], values[offset + 1], values[offset], alpha].map {
                    UInt8((Int($0) + 128) / 257)
                }
            }
        }
        return (width, height, pixels)
    }

    private func error(_ bytes: [UInt8]) -> ImagingError? {
        do throws(ImagingError) {
            _ = try RenditionRenderer.render(bytes, RenditionOptions(target: .size(width: 24, height: 24)))
            return nil
        } catch {
            return error
        }
    }

    @Test func `every file has the pixels that Pillow reads`() throws {
        for file in try PillowFile.all() {
            let format = try #require(Self.formats[String(file.name.suffix(3))])
            let info = try ImageProbe.info(of: file.bytes)
            #expect(info.format == format && info.isComplete, "\(file.name)")
            #expect((info.pixelWidth, info.pixelHeight) == (file.width, file.height), "\(file.name)")
            let image = try decoded(file.bytes)
            #expect((image.width, image.height) == (file.width, file.height), "\(file.name)")
            var (worst, otherOpacities) = (0, 0)
            for pixel in stride(from: 0, to: file.pixels.count, by: 4) {
                let opacity = file.pixels[pixel + 3]
                if image.pixels[pixel + 3] != opacity { otherOpacities += 1 }
                // The colour of transparent pixels is not compared.
                guard opacity > (file.tolerance < 0 ? 100 : 0) else { continue }
                for channel in 0..<3 {
                    worst = max(worst, abs(Int(image.pixels[pixel + channel]) - Int(file.pixels[pixel + channel])))
                }
            }
            #expect(otherOpacities == 0, "\(file.name)")
            #expect(worst <= (file.tolerance < 0 ? 3 : file.tolerance), "\(file.name): \(worst)")
        }
    }

    @Test func `renditions are those of the same pixels in a PNG`() throws {
        let whole = try decoded(try #require(try PillowFile.all().first { $0.name == "colour.ppm" }).bytes)
        let rgb = (0..<(whole.width * whole.height)).flatMap { whole.pixels[(4 * $0)..<(4 * $0 + 3)] }
        let source = TestImages.png(width: whole.width, height: whole.height) { x, y in
            let offset = 3 * (y * whole.width + x)
            return (rgb[offset], rgb[offset + 1], rgb[offset + 2], 255)
        }
        for file in try PillowFile.all() where ["rgb.psd", "rgbplain1.tga", "text.ppm"].contains(file.name) {
            for side in [10, 15, 30, 61, 100] {
                let options = RenditionOptions(
                    target: .size(width: side, height: side),
                    resizeMode: .exact,
                    format: .png
                )
                let image = try TestPixels(RenditionRenderer.render(file.bytes, options).bytes)
                let distance = image.psnr(try TestPixels(RenditionRenderer.render(source, options).bytes))
                #expect(distance > 60, "\(file.name) at \(side): \(distance) dB")
            }
        }
    }

    @Test func `a truncated file is an error`() throws {
        for file in try PillowFile.all() {
            for fraction in [0.2, 0.5, 0.9] {
                let part = Array(file.bytes.prefix(Int(Double(file.bytes.count) * fraction)))
                #expect(error(part) != nil, "\(file.name) \(fraction)")
            }
        }
    }

    @Test func `random changes give an image or an error, and never end the process`() throws {
        var random = SeededRandom(named: "changes of other formats")
        var (shown, refused) = (0, 0)
        for file in try PillowFile.all() {
            for round in 0..<TestEnvironment.rounds(60) {
                var bytes = file.bytes
                // Half of the changes are in the header, where they matter most.
                let end = round % 2 == 0 ? min(bytes.count, 120) : bytes.count
                for _ in 0..<Int.random(in: 1...6, using: &random) {
                    bytes[Int.random(in: 0..<end, using: &random)] = UInt8.random(in: 0...255, using: &random)
                }
                if round % 5 == 0 { bytes = Array(bytes.prefix(Int.random(in: 0...bytes.count, using: &random))) }
                if let error = error(bytes) {
                    refused += 1
                    #expect(!error.message.isEmpty)
                } else {
                    shown += 1
                }
            }
        }
        #expect(shown > 100 && refused > 100, "\(shown) shown, \(refused) refused")
    }

    @Test func `an unsupported variant is refused with its name`() throws {
        let files = try PillowFile.all()
        let bytes = try #require(files.first { $0.name == "rgb.psd" }).bytes
        let grey = try #require(files.first { $0.name == "grey.psd" }).bytes
        func changed(_ bytes: [UInt8], _ offset: Int, _ value: UInt8) -> [UInt8] {
            var bytes = bytes
            bytes[offset] = value
            return bytes
        }
        // A resource that declares that there is no flattened image.
        var empty = grey
        let resource: [UInt8] = Array("8BIM".utf8) + [4, 33, 0, 0, 0, 0, 0, 6, 0, 0, 0, 1, 0, 0]
        empty.replaceSubrange(30..<34, with: [0, 0, 0, UInt8(resource.count)] + resource)
        for (found, bytes) in [
            ("Lab", changed(bytes, 25, 9)), ("multichannel", changed(bytes, 25, 7)),
            ("32 bits", changed(bytes, 23, 32)),
            ("zipped", changed(bytes, 39, 2)), ("flattened", empty),
        ] {
            guard case .unsupportedFormat(let what, _)? = error(bytes) else {
                Issue.record("\(found): \(String(describing: error(bytes)))")
                continue
            }
            #expect(what.contains(found), "\(what)")
        }
    }
}
