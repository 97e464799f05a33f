import ImageFormats
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Imaging

/// Tests of variants of TIFF that decoders open with wrong pixels and without an error: each is correct or refused.
@Suite(.timeLimit(.minutes(5)))
struct TIFFVariantTests {
    private static let side = 32

    /// Writes a TIFF or BigTIFF file of one strip, in the byte order of Intel.
    struct File: Sendable {
        var bits = 8
        var photometric = 1
        var isBig = false
        /// Further fields of type short, by tag.
        var fields: [Int: Int] = [:]

        func bytes(_ data: [UInt8]) -> [UInt8] {
            var values = [
                256: side, 257: side, 258: bits, 259: 1, 262: photometric, 273: 0, 277: 1, 278: side, 279: data.count,
            ]
            values.merge(fields) { $1 }
            let (head, word, number) = isBig ? (16, 8, 8) : (8, 4, 2)
            let start = head + number + values.count * (4 + 2 * word) + word
            values[273] = start
            var bytes: [UInt8] = Array("II".utf8) + little(isBig ? 43 : 42, 2)
            bytes += isBig ? little(8, 2) + little(0, 2) + little(16, 8) : little(8, 4)
            bytes += little(values.count, number)
            for (tag, value) in values.sorted(by: { $0.key < $1.key }) {
                let isLong = tag == 273 || tag == 279
                bytes += little(tag, 2) + little(isLong ? 4 : 3, 2) + little(1, word) + little(value, word)
            }
            return bytes + little(0, word) + data
        }

        private func little(_ value: Int, _ count: Int) -> [UInt8] {
            (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
        }
    }

    /// libtiff refuses a whole file for an orientation that TIFF does not define.
    @Test(arguments: [0, 9, 65_535], [false, true])
    func `an orientation that does not exist is treated as upright`(_ orientation: Int, _ isBig: Bool) throws {
        var file = File()
        (file.isBig, file.fields) = (isBig, [274: 1])
        let upright = try TestPixels(
            RenditionRenderer.render(file.bytes(ramp(bits: 8, isInk: false)), RenditionOptions(format: .png)).bytes
        )
        file.fields = [274: orientation]
        let image = try RenditionRenderer.render(
            file.bytes(ramp(bits: 8, isInk: false)),
            RenditionOptions(format: .png)
        )
        #expect(try TestPixels(image.bytes) == upright)
    }

    /// Returns rows that become brighter from left to right.
    private func ramp(bits: Int, isInk: Bool) -> [UInt8] {
        let maximum = (1 << bits) - 1
        var row: [UInt8] = []
        var (byte, used) = (0, 0)
        for x in 0..<Self.side {
            let value = (x * maximum + Self.side / 2) / (Self.side - 1)
            byte = byte << bits | (isInk ? maximum - value : value)
            used += bits
            guard used == 8 else { continue }
            row.append(UInt8(byte))
            (byte, used) = (0, 0)
        }
        return (0..<Self.side).flatMap { _ in row }
    }

    /// Returns the brightness at the left and at the right edge, 0 to 255.
    private func edges(_ bytes: [UInt8]) throws -> (left: UInt8, right: UInt8) {
        let wand = try Decoder.decode(
            bytes,
            ImageProbe.header(of: bytes, limits: PixelLimits()),
            eighths: DecodeScale.full,
            scale: 1,
            limits: PixelLimits()
        )
        let pixels = try ContactSheet.pixels(of: wand)
        return (pixels.rgb[3], pixels.rgb[3 * (Self.side - 2)])
    }

    @Test(arguments: [1, 2, 4, 8], [false, true])
    func `grey of every depth is decoded as a positive, whether white is 0 or the maximum`(bits: Int, isInk: Bool)
        throws
    {
        let bytes = File(bits: bits, photometric: isInk ? 0 : 1).bytes(ramp(bits: bits, isInk: isInk))
        let (left, right) = try edges(bytes)
        #expect(left < 30 && right > 190, "\(left) to \(right)")
    }

    @Test func `BigTIFF is opened`() throws {
        let bytes = File(isBig: true).bytes(ramp(bits: 8, isInk: false))
        #expect(ImageFormat.sniff(bytes) == .tiff)
        let (left, right) = try edges(bytes)
        #expect(left < 30 && right > 225, "\(left) to \(right)")
    }

    @Test(arguments: [
        (File(fields: [259: 6]), "old-style JPEG"), (File(bits: 32, fields: [339: 2]), "signed"),
        (File(bits: 8, fields: [339: 2]), "signed"), (File(bits: 32, photometric: 8, fields: [339: 3]), "CIELab"),
        (File(photometric: 5, fields: [259: 7, 322: 32, 323: 32]), "tiles of CMYK JPEG"),
    ])
    func `a variant that would be decoded wrongly is refused with its name`(_ test: (file: File, name: String)) {
        let error = #expect(throws: ImageHeader.Failure.self) {
            try ImageHeader.read(test.file.bytes([UInt8](repeating: 0, count: Self.side * Self.side * 4)))
        }
        guard case .unsupported(let found) = error else { return #expect(Bool(false), "\(String(describing: error))") }
        #expect(found.contains(test.name), "\(found)")
    }

    /// ImageMagick's buffer in memory is enlarged in steps; two or three of these end right before one.
    @Test func `a TIFF of any size can be written`() throws {
        var random = SeededRandom(seed: 5)
        let noise = (0..<67 * 135 * 3).map { _ in UInt16.random(in: .min ... .max, using: &random) }
        for height in 64...67 {
            for width in 100..<135 {
                let wand = try Wand()
                try wand.constitute(noise, width: width, height: height, isDeep: true)
                let bytes = try Encoder.encode(wand, format: .tiff, quality: 90, keepsDepth: true)
                let header = try ImageHeader.read(bytes)
                let read = try Decoder.decode(bytes, header, eighths: 8, scale: 1, limits: PixelLimits())
                #expect(try read.colours() == Array(noise.prefix(3 * width * height)), "\(width) by \(height)")
            }
        }
    }

    /// A posterized image has a palette, and a TIFF with a palette of sixteen bits that ImageMagick writes is broken.
    @Test func `a palette of sixteen bits is written as pixels`() throws {
        let source = EngineFixtures.image(seed: 308, width: 120, height: 80, bits: 16)
        let list = AdjustmentList(operations: [try Adjustment(.posterize, ["levels": 2])])
        let files = try [ImageFormat.tiff, .png].map { try AdjustmentRendering.render(source, list, format: $0).bytes }
        #expect(try DeepPixels(files[0]).psnr(DeepPixels(files[1])) == .infinity)
    }
}
