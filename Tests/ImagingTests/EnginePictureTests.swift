import Foundation
import ImageFormats
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Imaging

/// Thirty pictures of all sorts: both engines, and the real `convert` with the command that describes the list, have
/// the same result for each.
///
/// The short form makes one picture of each sort with one operation each, in turn. The long form, `make soak`, makes
/// every operation at three values of every picture and 50 random lists, prints each distance, and at the end the
/// smallest of each operation. `SAFELIGHT_OPERATIONS=trim,deskew` repeats a part of it.
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

    /// Small, so that most of the time is spent on the calls that differ between cases.
    private static let (width, height) = (120, 80)

    private static let alpha = [
        "(", "-size", "\(width)x\(height)", "gradient:", ")", "-alpha", "off", "-compose", "CopyOpacity", "-composite",
    ]

    struct Picture {
        let name: String
        let bytes: [UInt8]
        /// The file that `convert` reads.
        var input: String
    }

    /// The pictures for all tests; creating them takes seconds.
    private static let made = Result {
        let folder = try TemporaryFolder("pictures")
        folder.removeAtExit()
        return (folder: folder, pictures: try makePictures(folder))
    }

    private static func pictures() throws -> [Picture] {
        // Without the program or the photos each of the tests is skipped.
        _ = try Needed.program("convert")
        try Needed.photographs()
        return try made.get().pictures
    }

    /// Makes the pictures: 26 sorts, and four photos that are scaled down.
    private static func makePictures(_ folder: TemporaryFolder) throws -> [Picture] {
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
            let picture = EngineFixtures.picture(seed: UInt64(300 + index), width: width, height: height, bits: 16)
            try Data(picture).write(to: URL(filePath: input))
            return try made(input, sort.name, sort.arguments)
        }
        let photos =
            try Needed.photographs(["heic"]).prefix(1) + Needed.photographs(["tiff"]).prefix(1)
            + Needed.photographs(["jpg"], below: "exif-samples/jpg").prefix(2)
        return try pictures
            + photos.enumerated().map { index, photo in
                let name = "photo-\(index).\(photo.pathExtension.lowercased())"
                return try made("\(photo.path)[0]", name, ["-resize", "\(width)x\(height)", "-depth", "8"])
            }
    }

    /// Renders with an engine; transparent parts become white, as in a JPEG.
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

    private struct Distances {
        var cases = 0
        var engines = Double.infinity
        var convert = Double.infinity
        /// The picture of the smallest distance to `convert`.
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
        _ picture: Picture,
        _ operations: [Adjustment],
        _ folder: TemporaryFolder,
        withFused: Bool,
        _ label: String
    ) throws -> Distances {
        let magick = try render(picture, operations, .imagemagick)
        let theirs = try convert(picture, operations, folder)
        var result = Distances(cases: 1, convert: theirs.psnr(magick), worst: "\(label) \(picture.name)")
        let sizes = "\(magick.width)x\(magick.height) and \(theirs.width)x\(theirs.height)"
        #expect(result.convert >= 45, "\(label), \(picture.name): \(result.convert) dB to convert, \(sizes)")
        if withFused {
            result.engines = try render(picture, operations, .fused).psnr(magick)
            let isMoved = operations.contains { $0.kind.stage == .geometry }
            #expect(
                result.engines >= (isMoved ? 35 : 40),
                "\(label), \(picture.name): \(result.engines) dB between the engines"
            )
        }
        if isLong { print("distance: \(label) \(picture.name) engines \(result.engines) convert \(result.convert)") }
        return result
    }

    /// Returns the distances of a case. An error of one case does not end the others.
    private static func attempt(
        _ picture: Picture,
        _ operations: [Adjustment],
        _ folder: TemporaryFolder,
        withFused: Bool = true,
        _ label: String
    ) -> Distances {
        do { return try check(picture, operations, folder, withFused: withFused, label) } catch {
            Issue.record("\(label), \(picture.name): \(error)")
            return Distances()
        }
    }

    @Test func `every operation means the same to both engines and to convert`() throws {
        let folder = try TemporaryFolder("pictures")
        let pictures = try Self.pictures()
        #expect(pictures.count == 30)
        var all = Distances()
        let only = TestEnvironment.text("SAFELIGHT_OPERATIONS")?.split(separator: ",").map(String.init)
        for (place, kind) in AdjustmentKind.all.enumerated() where only?.contains(kind.rawValue) != false {
            var ofKind = Distances()
            for (index, operation) in try EngineFixtures.cases(kind).enumerated() {
                for (number, picture) in pictures.enumerated() {
                    // Every picture and every operation comes up in the short form.
                    guard Self.isLong || (index == number % 3 && number == place % pictures.count) else { continue }
                    ofKind.add(Self.attempt(picture, [operation], folder, "\(kind) \(index)"))
                }
            }
            if Self.isLong { ofKind.report("\(kind)") }
            all.add(ofKind)
        }
        all.report("all operations")
    }

    /// Effects are the same calls in both engines, and a few of them, such as posterize, turn the smallest difference
    /// into a large one: lists with effects are compared with `convert` only.
    @Test func `random lists mean the same to both engines and to convert`() throws {
        let folder = try TemporaryFolder("pictures")
        let pictures = try Self.pictures()
        var random = SeededRandom(seed: TestEnvironment.text("SAFELIGHT_SEED").flatMap(UInt64.init) ?? 29)
        var all = Distances()
        for round in 0..<(Self.isLong ? 50 : 4) {
            for withEffects in [false, true] {
                let operations = try EngineFixtures.list(&random, withEffects: withEffects)
                let label = "list-\(round) " + operations.map(\.kind.rawValue).joined(separator: "+")
                let picture = pictures[(7 * round) % pictures.count]
                all.add(Self.attempt(picture, operations, folder, withFused: !withEffects, label))
            }
        }
        all.report("random lists")
    }
}
