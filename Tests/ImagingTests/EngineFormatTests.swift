import Foundation
import ImageFormats
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Imaging

/// Tests of depths, colour spaces and channels: both engines accept every decoded image, and have the same result.
@Suite(.timeLimit(.minutes(TestEnvironment.rounds(5))))
struct EngineFormatTests {
    /// The variants, and the arguments of `convert` that create each from an image of eight bits.
    private static let variants: [(name: String, arguments: [String])] = [
        ("grey.jpg", ["-colorspace", "Gray"]), ("cmyk.jpg", ["-colorspace", "CMYK"]), ("plain.jpg", []),
        ("grey.png", ["-colorspace", "Gray", "-depth", "16"]), ("bilevel.png", ["-threshold", "50%"]),
        ("palette.png", ["+dither", "-colors", "30", "-type", "Palette"]),
        (
            "alpha.png",
            ["(", "-size", "120x80", "gradient:", ")", "-alpha", "off", "-compose", "CopyOpacity", "-composite"]
        ), ("linear.png", ["-set", "colorspace", "RGB", "-depth", "16"]), ("deep.tif", ["-depth", "16"]),
        ("cmyk16.tif", ["-colorspace", "CMYK", "-depth", "16"]), ("lab.tif", ["-colorspace", "Lab"]),
        ("ycbcr.tif", ["-colorspace", "YCbCr", "-compress", "JPEG"]), ("small.gif", []),
        ("web.webp", ["-quality", "100"]),
    ]

    private static func lists() throws -> [[Adjustment]] {
        [
            [.crop(UnitRect(x: 0.1, y: 0.1, width: 0.7, height: 0.8)), .rotate(.quarter)],
            [try Adjustment(.resize, ["width": 70])], [.straighten(5)],
            [try Adjustment(.perspective, ["topLeftX": 0.05, "topRightY": 0.1, "bottomRightX": 0.93])],
            [.exposure(0.5), .saturation(0.4), .contrast(0.2)],
            [
                try Adjustment(.sharpen, ["amount": 1]), try Adjustment(.clarity, ["value": 0.5]),
                try Adjustment(.vignette, ["value": -0.5]),
            ], [try Adjustment(.noiseReduction, ["luminance": 1, "colour": 1])],
        ]
    }

    private static func compare(_ bytes: [UInt8], _ name: String) throws {
        for operations in try lists() {
            let fused = try EngineTests.render(bytes, operations, .fused, isFlattened: true)
            let magick = try EngineTests.render(bytes, operations, .imagemagick, isFlattened: true)
            let distance = fused.psnr(magick)
            let isMoved = operations.contains { $0.kind.isGeometric }
            // The filters of the engines differ most between black and white.
            let minimum = name == "bilevel.png" ? 25.0 : isMoved ? 35 : 40
            #expect(distance >= minimum, "\(name) \(operations.map(\.kind)): \(distance) dB")
        }
    }

    @Test func `both engines agree on all depths, colour spaces and channels`() throws {
        let convert = try Needed.program("convert")
        let folder = try TemporaryFolder("sorts")
        let input = folder.file("in.png")
        try Data(EngineFixtures.image(seed: 3, width: 120, height: 80)).write(to: URL(filePath: input))
        for (name, arguments) in Self.variants {
            let output = folder.file(name)
            _ = try ExternalTool.run(convert, [input, "-alpha", "off"] + arguments + [output])
            try Self.compare([UInt8](Data(contentsOf: URL(filePath: output))), name)
        }
    }

    @Test func `both engines agree on the sample photos`() throws {
        let isLong = TestEnvironment.rounds(1) > 1
        var compared = 0
        // The smallest files are icons, whose edges show the shapes of filters: the TIFFs among them are not compared.
        for (fileExtensions, count, smallest) in [
            (["jpg"], isLong ? 28 : 1, isLong ? 1 : 100_000), (["tif", "tiff"], isLong ? 3 : 1, 100_000),
        ] {
            var remaining = count
            for photo in try Needed.photographs(fileExtensions).prefix(isLong ? 28 : .max) where remaining > 0 {
                let bytes = SharedPhotos.bytes(photo)
                guard let header = try? ImageProbe.header(of: bytes, limits: PixelLimits()), header.isComplete,
                    (smallest..<2_000_000).contains(header.pixelWidth * header.pixelHeight)
                else { continue }
                try Self.compare(bytes, photo.lastPathComponent)
                remaining -= 1
                compared += 1
            }
        }
        // The photos in HEIC are large, so one is scaled down.
        let convert = try Needed.program("convert")
        let photo = try Needed.photographs(["heic"])[0]
        let folder = try TemporaryFolder("photos")
        let scaled = folder.file("scaled.heic")
        _ = try ExternalTool.run(convert, ["\(photo.path)[0]", "-resize", "480x320", "-depth", "8", scaled])
        try Self.compare(SharedPhotos.bytes(URL(filePath: scaled)), photo.lastPathComponent)
        #expect(compared >= 2, "a JPEG and a TIFF, besides the HEIC")
    }

    @Test func `a trim that would leave no pixels changes nothing`() throws {
        let convert = try Needed.program("convert")
        let folder = try TemporaryFolder("trim")
        let (input, output) = (folder.file("in.png"), folder.file("grey.tif"))
        let source = EngineFixtures.image(seed: 318, width: 120, height: 80, bits: 16)
        try Data(source).write(to: URL(filePath: input))
        _ = try ExternalTool.run(convert, [input, "-colorspace", "Gray", output])
        let grey = [UInt8](try Data(contentsOf: URL(filePath: output)))
        let trim = try Adjustment(.trim, ["fuzz": 0.4])
        for engine in RenderEngine.allCases {
            let result = try EngineTests.render(grey, [trim], engine)
            #expect((result.width, result.height) == (120, 80))
        }
    }

    @Test func `too much work is refused before it begins`() throws {
        let source = EngineFixtures.image(seed: 4)
        var limits = PixelLimits()
        limits.seconds = 0.001
        let list = AdjustmentList(operations: [try Adjustment(.noiseReduction, ["luminance": 1])])
        let error = #expect(throws: ImagingError.self) {
            try AdjustmentRendering.render(source, list, limits: limits, engine: .imagemagick)
        }
        #expect(error?.name == "limit_exceeded" && error?.message.contains("resize") == true, "\(error?.message ?? "")")
        #expect(throws: Never.self) { try AdjustmentRendering.render(source, list, limits: limits) }
        let calls = MagickDetail(width: 8000, height: 6000, scale: 1).calls(list.operations[0])
        #expect(throws: ImagingError.self) { try MagickCost.check(calls, pixels: 100_000_000, seconds: .infinity) }
        #expect(throws: Never.self) { try MagickCost.check(calls, pixels: 24_000_000, seconds: 60) }
    }

    @Test(arguments: RenderEngine.allCases)
    func `a long image that is rotated is refused if there is no memory for it`(engine: RenderEngine) throws {
        let line = EngineFixtures.image(seed: 9, width: 20_000, height: 1)
        let list = AdjustmentList(operations: [try Adjustment(.polaroid, ["angle": 45])])
        let error = #expect(throws: ImagingError.self) { try AdjustmentRendering.render(line, list, engine: engine) }
        #expect(error?.name == "limit_exceeded" && error?.message.contains("polaroid") == true)
    }
}
