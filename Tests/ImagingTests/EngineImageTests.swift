import Foundation
import ImageFormats
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Imaging

/// Tests that both engines, and the real `convert` with the command that describes the list, have the same result for
/// thirty different images.
///
/// The short form renders each operation with one image, in turn. The long form, `make soak`, renders every operation
/// at three values with every image, and 50 random lists. It prints each distance, and at the end the smallest of each
/// operation. `SAFELIGHT_OPERATIONS=trim,deskew` repeats a part of it.
@Suite(.serialized, .timeLimit(.minutes(120)))
struct EngineImageTests {
    private static let isLong = TestEnvironment.rounds(1) > 1

    /// The names of the images, and the arguments of `convert` that create them from an image of sixteen bits.
    private static let variants: [(name: String, arguments: [String])] = [
        ("plain.jpg", []), ("coarse.jpg", ["-quality", "60", "-sampling-factor", "2x2"]),
        ("progressive.jpg", ["-interlace", "JPEG"]), ("grey.jpg", ["-colorspace", "Gray"]),
        ("cmyk.jpg", ["-colorspace", "CMYK"]), ("turned.jpg", ["-orient", "RightTop"]),
        ("p3.jpg", ["-profile", "p3.icc"]), ("eight.png", ["-depth", "8"]), ("sixteen.png", []),
        ("p3.png", ["-profile", "p3.icc"]), ("grey.png", ["-colorspace", "Gray", "-depth", "8"]),
        ("grey16.png", ["-colorspace", "Gray"]), ("alpha.png", alpha + ["-depth", "8"]), ("alpha16.png", alpha),
        ("palette.png", ["+dither", "-colors", "200", "-type", "Palette"]),
        ("linear.png", ["-set", "colorspace", "RGB"]), ("eight.tif", ["-depth", "8"]), ("sixteen.tif", []),
        ("grey16.tif", ["-colorspace", "Gray"]), ("alpha.tif", alpha),
        ("cmyk.tif", ["-colorspace", "CMYK", "-depth", "8"]), ("cmyk16.tif", ["-colorspace", "CMYK"]),
        ("lab.tif", ["-colorspace", "Lab"]), ("plain.heic", ["-depth", "8"]), ("plain.webp", ["-quality", "100"]),
        ("plain.bmp", ["-depth", "8"]),
    ]

    /// The images are small, so that most of the time is spent on the calls that differ between cases.
    private static let (width, height) = (120, 80)

    private static let alpha = [
        "(", "-size", "\(width)x\(height)", "gradient:", ")", "-alpha", "off", "-compose", "CopyOpacity", "-composite",
    ]

    struct SourceImage {
        let name: String
        let bytes: [UInt8]
        /// The file that `convert` reads.
        var input: String
    }

    /// The images for all tests; creating them takes seconds.
    private static let createdImages = Result {
        let folder = try TemporaryFolder("pictures")
        folder.removeAtExit()
        return (folder: folder, images: try makeImages(folder))
    }

    private static func images() throws -> [SourceImage] {
        // Without the program or the photos each of the tests is skipped.
        _ = try Needed.program("convert")
        try Needed.photographs()
        return try createdImages.get().images
    }

    /// Creates the images: 26 variants, and four photos that are scaled down.
    private static func makeImages(_ folder: TemporaryFolder) throws -> [SourceImage] {
        let convert = try Needed.program("convert")
        let profile = folder.file("p3.icc")
        try Data(ColourProfile.displayP3).write(to: URL(filePath: profile))
        func convertFile(_ input: String, _ name: String, _ arguments: [String]) throws -> SourceImage {
            let output = folder.file(name)
            let words = arguments.map { $0 == "p3.icc" ? profile : $0 }
            _ = try ExternalTool.run(convert, [input] + words + [output])
            let bytes = [UInt8](try Data(contentsOf: URL(filePath: output)))
            guard name.hasSuffix("heic") else { return SourceImage(name: name, bytes: bytes, input: output) }
            // ImageMagick's reader of HEIC rounds colours differently, which thresholds of effects would enlarge: it is
            // compared once, and the effects have the same pixels.
            let header = try ImageHeader.read(bytes)
            let wand = try Decoder.decode(bytes, header, eighths: 8, scale: 1, limits: PixelLimits())
            let decoded = try Encoder.encode(wand, format: .png, quality: 75, keepsProfile: true, keepsDepth: true)
            try Data(decoded).write(to: URL(filePath: output + ".png"))
            let file = SourceImage(name: name, bytes: bytes, input: output)
            let distance = try Self.convert(file, [], folder).psnr(render(file, [], .imagemagick))
            #expect(distance >= 45, "\(name): \(distance) dB between the readers")
            return SourceImage(name: name, bytes: bytes, input: output + ".png")
        }
        let images = try variants.enumerated().map { index, variant in
            let input = folder.file("in.png")
            let source = EngineFixtures.image(seed: UInt64(300 + index), width: width, height: height, bits: 16)
            try Data(source).write(to: URL(filePath: input))
            return try convertFile(input, variant.name, variant.arguments)
        }
        let photos =
            try Needed.photographs(["heic"]).prefix(1) + Needed.photographs(["tiff"]).prefix(1)
            + Needed.photographs(["jpg"], below: "exif-samples/jpg").prefix(2)
        return try images
            + photos.enumerated().map { index, photo in
                let name = "photo-\(index).\(photo.pathExtension.lowercased())"
                return try convertFile("\(photo.path)[0]", name, ["-resize", "\(width)x\(height)", "-depth", "8"])
            }
    }

    /// Renders with an engine; transparent parts become white, as in a JPEG.
    private static func render(_ source: SourceImage, _ operations: [Adjustment], _ engine: RenderEngine) throws
        -> DeepPixels
    {
        let list = AdjustmentList(operations: operations)
        let image = try AdjustmentRendering.render(source.bytes, list, format: .tiff, engine: engine)
        return try DeepPixels(image.bytes, isFlattened: true)
    }

    private static func convert(_ source: SourceImage, _ operations: [Adjustment], _ folder: TemporaryFolder) throws
        -> DeepPixels
    {
        let script = try AdjustmentDescription.script(source.bytes, AdjustmentList(operations: operations))
        let (file, output) = (folder.file("edit.sh"), folder.file("output.png"))
        try Data(script).write(to: URL(filePath: file))
        try? FileManager.default.removeItem(atPath: output)
        _ = try ExternalTool.run("/bin/sh", [file, source.input, "PNG48:" + output])
        return try DeepPixels([UInt8](Data(contentsOf: URL(filePath: output))))
    }

    private struct Distances {
        var cases = 0
        var engines = Double.infinity
        var convert = Double.infinity
        /// The image with the smallest distance to `convert`.
        var worst = ""

        mutating func add(_ other: Distances) {
            cases += other.cases
            engines = min(engines, other.engines)
            if other.convert < convert { (convert, worst) = (other.convert, other.worst) }
        }

        func report(_ label: String) {
            print("smallest: \(label): \(cases) cases, engines \(engines), convert \(convert) \(worst)")
        }
    }

    /// Expects the distances that the documentation promises.
    private static func check(
        _ source: SourceImage,
        _ operations: [Adjustment],
        _ folder: TemporaryFolder,
        withFused: Bool,
        _ label: String
    ) throws -> Distances {
        let magick = try render(source, operations, .imagemagick)
        let theirs = try convert(source, operations, folder)
        var result = Distances(cases: 1, convert: theirs.psnr(magick), worst: "\(label) \(source.name)")
        let sizes = "\(magick.width)x\(magick.height) and \(theirs.width)x\(theirs.height)"
        #expect(result.convert >= 45, "\(label), \(source.name): \(result.convert) dB to convert, \(sizes)")
        if withFused {
            result.engines = try render(source, operations, .fused).psnr(magick)
            let isMoved = operations.contains { $0.kind.stage == .geometry }
            #expect(
                result.engines >= (isMoved ? 35 : 40),
                "\(label), \(source.name): \(result.engines) dB between the engines"
            )
        }
        if isLong { print("distance: \(label) \(source.name) engines \(result.engines) convert \(result.convert)") }
        return result
    }

    /// Returns the distances of a case. An error of one case does not end the others.
    private static func attempt(
        _ source: SourceImage,
        _ operations: [Adjustment],
        _ folder: TemporaryFolder,
        withFused: Bool = true,
        _ label: String
    ) -> Distances {
        do { return try check(source, operations, folder, withFused: withFused, label) } catch {
            Issue.record("\(label), \(source.name): \(error)")
            return Distances()
        }
    }

    @Test func `every operation has the same result in both engines and in convert`() throws {
        let folder = try TemporaryFolder("pictures")
        let images = try Self.images()
        #expect(images.count == 30)
        var all = Distances()
        let only = TestEnvironment.text("SAFELIGHT_OPERATIONS")?.split(separator: ",").map(String.init)
        for (position, kind) in AdjustmentKind.all.enumerated() where only?.contains(kind.rawValue) != false {
            var ofKind = Distances()
            for (index, operation) in try EngineFixtures.cases(kind).enumerated() {
                for (number, source) in images.enumerated() {
                    // The short form has every image and every operation.
                    guard Self.isLong || (index == number % 3 && number == position % images.count) else { continue }
                    ofKind.add(Self.attempt(source, [operation], folder, "\(kind) \(index)"))
                }
            }
            if Self.isLong { ofKind.report("\(kind)") }
            all.add(ofKind)
        }
        all.report("all operations")
    }

    /// Both engines make the same calls for effects, and a few effects, such as posterize, enlarge the smallest
    /// difference: lists with effects are compared with `convert` only.
    @Test func `random lists have the same result in both engines and in convert`() throws {
        let folder = try TemporaryFolder("pictures")
        let images = try Self.images()
        var random = SeededRandom(seed: TestEnvironment.text("SAFELIGHT_SEED").flatMap(UInt64.init) ?? 29)
        var all = Distances()
        for round in 0..<(Self.isLong ? 50 : 4) {
            for withEffects in [false, true] {
                let operations = try EngineFixtures.list(&random, withEffects: withEffects)
                let label = "list-\(round) " + operations.map(\.kind.rawValue).joined(separator: "+")
                let source = images[(7 * round) % images.count]
                all.add(Self.attempt(source, operations, folder, withFused: !withEffects, label))
            }
        }
        all.report("random lists")
    }
}
