@testable import Imaging
import ImageFormats
import PhotoModel
import TestSupport
import Testing

/// Tests of JPEGs with an end marker whose image data is damaged: they are rendered as far as they can be decoded.
@Suite(.timeLimit(.minutes(TestEnvironment.rounds(5))))
struct DamagedJPEGTests {
    private let whole = TestImages.jpeg(width: 640, height: 480)

    /// Returns the offset of the first byte of the coded data.
    private func dataStart(_ jpeg: [UInt8]) -> Int {
        for offset in 2..<(jpeg.count - 3) where jpeg[offset] == 0xFF && jpeg[offset + 1] == 0xDA {
            return offset + 2 + (Int(jpeg[offset + 2]) << 8 | Int(jpeg[offset + 3]))
        }
        return 0
    }

    /// Returns the file without the end of its data, but with its end marker.
    private func cut(_ fraction: Double) -> [UInt8] {
        let start = dataStart(whole)
        return Array(whole[..<(start + Int(Double(whole.count - start) * fraction))]) + [0xFF, 0xD9]
    }

    @Test(arguments: [0.3, 0.6, 0.9]) func `the rows before the damage are those of the whole image`(fraction: Double)
        throws
    {
        for options in [
            RenditionOptions(format: .png), RenditionOptions(target: .size(width: 320, height: 240), format: .png),
            RenditionOptions(target: .size(width: 100, height: 75), resizeMode: .exact, format: .png),
        ] {
            let good = try TestPixels(RenditionRenderer.render(whole, options).bytes)
            let rendered = try TestPixels(RenditionRenderer.render(cut(fraction), options).bytes)
            #expect((rendered.width, rendered.height) == (good.width, good.height))
            // The data of the rows is about equally long, and a filter reaches a few rows further.
            let rows = Int(Double(good.height) * (fraction - 0.15))
            let count = 3 * good.width * max(1, rows)
            #expect(rendered.rgb[..<count].elementsEqual(good.rgb[..<count]), "\(fraction) of \(good.height) rows")
        }
        let preview = try Preview.quick(cut(fraction), RenditionOptions(target: .size(width: 300, height: 300)))
        #expect(preview?.pixelWidth == 300)
    }

    @Test func `a segment's marker in damaged data does not make the file truncated`() throws {
        var bytes = whole
        let offset = dataStart(bytes) + (bytes.count - dataStart(bytes)) / 2
        // A segment that would end behind the end marker.
        let length = bytes.count - offset + 1
        bytes.replaceSubrange(offset..<(offset + 4), with: [0xFF, 0xE5, UInt8(length >> 8), UInt8(length & 0xFF)])
        #expect(try ImageHeader.read(bytes).isComplete)
        #expect(try RenditionRenderer.render(bytes, RenditionOptions()).pixelWidth == 640)
        #expect(try !ImageHeader.read(Array(bytes.dropLast(2))).isComplete)
    }

    @Test func `damage of any kind gives an image or an error of libjpeg, never that the file is truncated`() throws {
        var random = SeededRandom(named: "damage inside of a JPEG")
        let start = dataStart(whole)
        var rendered = 0
        for _ in 0..<TestEnvironment.rounds(100) {
            var bytes = whole
            for _ in 0..<Int.random(in: 1...20, using: &random) {
                bytes[Int.random(in: start..<(bytes.count - 2), using: &random)] = UInt8.random(
                    in: 0...255,
                    using: &random
                )
            }
            do throws(ImagingError) {
                _ = try RenditionRenderer.render(bytes, RenditionOptions(target: .size(width: 64, height: 64)))
                rendered += 1
            } catch {
                guard case .undecodable = error else {
                    Issue.record("\(error)")
                    continue
                }
            }
        }
        #expect(rendered > 50)
    }

    @Test func `a file that cannot be decoded is refused with a reason`() throws {
        var deep = whole
        let frame = try #require(
            (0..<deep.count - 4).first { deep[$0] == 0xFF && [0xC0, 0xC2].contains(deep[$0 + 1]) }
        )
        deep[frame + 4] = 12
        let error = #expect(throws: ImagingError.self) { try RenditionRenderer.render(deep, RenditionOptions()) }
        #expect(error?.message.contains("precision") == true, "\(error?.message ?? "")")

        let png = TestImages.png(width: 64, height: 48) { x, y in (UInt8(3 * x), UInt8(4 * y), UInt8(x ^ y), 255) }
        var random = SeededRandom(named: "damage inside of a PNG")
        for _ in 0..<20 {
            var bytes = png
            for _ in 0..<12 { bytes[Int.random(in: 41..<(png.count - 16), using: &random)] ^= 0x5A }
            do throws(ImagingError) { _ = try RenditionRenderer.render(bytes, RenditionOptions()) } catch {
                #expect(!error.message.hasSuffix("failed"), "\(error.message)")
            }
        }
    }
}
