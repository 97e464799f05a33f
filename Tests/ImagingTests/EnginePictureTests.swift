import Foundation
import ImageFormats
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Imaging

/// Thirty pictures of all sorts: both engines and the real `convert`, running the command that describes the list, make
/// the same of each.
///
/// The short form makes one picture of each sort with one operation each, in turn. The long form, `make soak`, makes
/// every operation at three values and 50 random lists, and prints each distance for a table.
@Suite(.serialized, .timeLimit(.minutes(120)))
struct EnginePictureTests {
    private static let isLong = TestEnvironment.rounds(1) > 1

    /// The names of the pictures and the arguments of `convert` that make them of a picture of sixteen bits.
    private static let sorts: [(name: String, arguments: [String])] = [
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

    private static let alpha = [
        "(", "-size", "216x144", "gradient:", ")", "-alpha", "off", "-compose", "CopyOpacity", "-composite",
    ]

    struct Picture {
        let name: String
        let bytes: [UInt8]
        /// The file that `convert` reads.
        var input: String
    }

    /// Makes the pictures: 26 sorts, and four photos that are scaled down.
    private static func pictures(_ folder: TemporaryFolder) throws -> [Picture] {
        let convert = try Needed.program("convert")
        let profile = folder.file("p3.icc")
        try Data(ColourProfile.displayP3).write(to: URL(filePath: profile))
        func made(_ input: String, _ name: String, _ arguments: [String]) throws -> Picture {
            let output = folder.file(name)
            let words = arguments.map { $0 == "p3.icc" ? profile : $0 }
            _ = try ExternalTool.run(convert, [input] + words + [output])
            let bytes = [UInt8](try Data(contentsOf: URL(filePath: output)))
            guard name.hasSuffix("heic") else { return Picture(name: name, bytes: bytes, input: output) }
            // ImageMagick's reader of HEIC rounds colours differently, which thresholds of effects would enlarge: it is
            // compared once, and the effects have the same pixels.
            let header = try ImageHeader.read(bytes)
            let wand = try Decoder.decode(bytes, header, eighths: 8, scale: 1, limits: PixelLimits())
            let decoded = try Encoder.encode(wand, format: .png, quality: 75, keepsProfile: true, keepsDepth: true)
            try Data(decoded).write(to: URL(filePath: output + ".png"))
            let file = Picture(name: name, bytes: bytes, input: output)
            let distance = try Self.convert(file, [], folder).psnr(render(file, [], .imagemagick))
            #expect(distance >= 45, "\(name): \(distance) dB between the readers")
            return Picture(name: name, bytes: bytes, input: output + ".png")
        }
        let pictures = try sorts.enumerated().map { index, sort in
            let input = folder.file("in.png")
            let picture = EngineFixtures.picture(seed: UInt64(300 + index), width: 216, height: 144, bits: 16)
            try Data(picture).write(to: URL(filePath: input))
            return try made(input, sort.name, sort.arguments)
        }
        let photos =
            try Needed.photographs(["heic"]).prefix(1) + Needed.photographs(["tiff"]).prefix(1)
            + Needed.photographs(["jpg"], below: "exif-samples/jpg").prefix(2)
        return try pictures
            + photos.enumerated().map { index, photo in
                let name = "photo-\(index).\(photo.pathExtension.lowercased())"
                return try made("\(photo.path)[0]", name, ["-resize", "216x144", "-depth", "8"])
            }
    }

    /// Renders with an engine; what is transparent lies on white, as in a JPEG.
    private static func render(_ picture: Picture, _ operations: [Adjustment], _ engine: RenderEngine) throws
        -> DeepPixels
    {
        let list = AdjustmentList(operations: operations)
        let image = try AdjustmentRendering.render(picture.bytes, list, format: .tiff, engine: engine)
        return try DeepPixels(image.bytes, isFlattened: true)
    }

    private static func convert(_ picture: Picture, _ operations: [Adjustment], _ folder: TemporaryFolder) throws
        -> DeepPixels
    {
        let script = try AdjustmentDescription.script(picture.bytes, AdjustmentList(operations: operations))
        let (file, output) = (folder.file("edit.sh"), folder.file("output.png"))
        try Data(script).write(to: URL(filePath: file))
        try? FileManager.default.removeItem(atPath: output)
        _ = try ExternalTool.run("/bin/sh", [file, picture.input, "PNG48:" + output])
        return try DeepPixels([UInt8](Data(contentsOf: URL(filePath: output))))
    }

    /// Expects the distances that the documentation promises.
    private static func check(
        _ picture: Picture,
        _ operations: [Adjustment],
        _ folder: TemporaryFolder,
        withFused: Bool,
        _ label: String
    ) throws {
        let magick = try render(picture, operations, .imagemagick)
        let command = try convert(picture, operations, folder).psnr(magick)
        #expect(command >= 45, "\(label), \(picture.name): \(command) dB to convert")
        var engines = Double.infinity
        if withFused {
            engines = try render(picture, operations, .fused).psnr(magick)
            let isMoved = operations.contains { $0.kind.stage == .geometry }
            #expect(engines >= (isMoved ? 35 : 40), "\(label), \(picture.name): \(engines) dB between the engines")
        }
        if isLong { print("distance: \(label) \(picture.name) engines \(engines) convert \(command)") }
    }

    @Test func `every operation means the same to both engines and to convert`() throws {
        let folder = try TemporaryFolder("pictures")
        let pictures = try Self.pictures(folder)
        #expect(pictures.count == 30)
        for (place, kind) in AdjustmentKind.all.enumerated() {
            for (index, operation) in try EngineFixtures.cases(kind).enumerated() {
                for (number, picture) in pictures.enumerated() {
                    // Every picture and every operation comes up in the short form.
                    guard Self.isLong || (index == number % 3 && number == place % pictures.count) else { continue }
                    // An error of one does not end the others.
                    do { try Self.check(picture, [operation], folder, withFused: true, "\(kind) \(index)") } catch {
                        Issue.record("\(kind) \(index), \(picture.name): \(error)")
                    }
                }
            }
        }
    }

    /// Effects are the same calls in both engines, and a few of them, such as posterize, turn the smallest difference
    /// into a large one: lists with effects are compared with `convert` only.
    @Test func `random lists mean the same to both engines and to convert`() throws {
        let folder = try TemporaryFolder("pictures")
        let pictures = try Self.pictures(folder)
        var random = SeededRandom(seed: TestEnvironment.text("SAFELIGHT_SEED").flatMap(UInt64.init) ?? 29)
        for round in 0..<(Self.isLong ? 50 : 4) {
            for withEffects in [false, true] {
                let operations = try EngineFixtures.list(&random, withEffects: withEffects)
                let label = "list-\(round) " + operations.map(\.kind.rawValue).joined(separator: "+")
                try Self.check(
                    pictures[(7 * round) % pictures.count],
                    operations,
                    folder,
                    withFused: !withEffects,
                    label
                )
            }
        }
    }
}
