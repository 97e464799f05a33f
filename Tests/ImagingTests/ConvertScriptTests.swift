import Foundation
import ImageFormats
import JSONValue
import PhotoModel
import SamplePhotos
import TestSupport
import Testing

@testable import Imaging

/// Tests of the files that other programs read: the command for `convert`, and the colours of a list as tables.
@Suite(.serialized, .timeLimit(.minutes(TestEnvironment.rounds(10))))
struct ConvertScriptTests {
    /// Runs the script that describes a list, and returns its output.
    private static func converted(_ bytes: [UInt8], _ operations: [Adjustment], _ folder: TemporaryFolder) throws
        -> DeepPixels
    {
        _ = try Needed.program("convert")
        let script = try AdjustmentDescription.script(bytes, AdjustmentList(operations: operations))
        let (input, output, file) = (folder.file("input.png"), folder.file("output.png"), folder.file("edit.sh"))
        try Data(bytes).write(to: URL(filePath: input))
        try Data(script).write(to: URL(filePath: file))
        _ = try ExternalTool.run("/bin/sh", [file, input, output])
        return try DeepPixels([UInt8](Data(contentsOf: URL(filePath: output))))
    }

    @Test(
        .enabled(if: TestEnvironment.rounds(1) > 1, "EngineImageTests has each operation; SAFELIGHT_SOAK runs this"),
        arguments: AdjustmentKind.all
    )
    func `the result of an operation equals that of the command that describes it`(kind: AdjustmentKind) throws {
        let folder = try TemporaryFolder("convert")
        var worst = Double.infinity
        for seed in UInt64(1)...10 {
            // Sixteen bits, because eight would hide small differences.
            let source = EngineFixtures.image(seed: seed, bits: 16)
            for (index, operation) in try EngineFixtures.cases(kind).enumerated() {
                let engine = try EngineTests.render(source, [operation], .imagemagick)
                let distance = try Self.converted(source, [operation], folder).psnr(engine)
                worst = min(worst, distance)
                #expect(distance >= 45, "\(kind) \(index), seed \(seed): \(distance) dB")
            }
        }
        print("convert: \(kind) at least \(worst) dB")
    }

    @Test func `the result of a random list equals that of the command that describes it`() throws {
        let folder = try TemporaryFolder("convert")
        var random = SeededRandom(seed: TestEnvironment.text("SAFELIGHT_SEED").flatMap(UInt64.init) ?? 23)
        for round in 0..<(TestEnvironment.rounds(1) > 1 ? 50 : 6) {
            let source = EngineFixtures.image(seed: UInt64(200 + round), bits: round % 2 == 0 ? 16 : 8)
            let operations = try EngineFixtures.list(&random, withEffects: true)
            let engine = try EngineTests.render(source, operations, .imagemagick)
            let distance = try Self.converted(source, operations, folder).psnr(engine)
            #expect(distance >= 45, "\(operations.map(\.json.text)): \(distance) dB")
        }
    }

    /// Returns a lossy WebP with an EXIF block.
    private static func webP(_ source: [UInt8], _ exif: [UInt8]) throws -> [UInt8] {
        let header = try ImageHeader.read(source)
        let wand = try Decoder.decode(source, header, eighths: 8, scale: 1, limits: PixelLimits())
        let plain = try Encoder.encode(wand, format: .webp, quality: 95)
        func number(_ value: Int, _ count: Int) -> [UInt8] { (0..<count).map { UInt8(value >> (8 * $0) & 255) } }
        var chunks = Array("WEBPVP8X".utf8)
        chunks += number(10, 4)
        // The flag of an EXIF block.
        chunks += number(8, 4)
        chunks += number(header.storedWidth - 1, 3)
        chunks += number(header.storedHeight - 1, 3)
        chunks += plain[12...]
        chunks += Array("EXIF".utf8)
        chunks += number(exif.count, 4)
        chunks += exif
        if exif.count % 2 == 1 { chunks.append(0) }
        return Array("RIFF".utf8) + number(chunks.count, 4) + chunks
    }

    @Test(arguments: 2...8) func `the command applies the orientation of an image`(orientation: Int) throws {
        let folder = try TemporaryFolder("orient")
        var exif = ExifBlock()
        exif.main.append(.short(0x0112, orientation))
        let stored = { (chunks: [(String, [UInt8])]) in
            TestImages.png(width: 90, height: 60, chunks: chunks) { x, y in (UInt8(2 * x), UInt8(4 * y), 60, 255) }
        }
        let png = stored([("eXIf", exif.bytes)])
        let operations = try [Adjustment(.crop, ["x": 0.1, "width": 0.5, "height": 0.8]), .exposure(0.3)]
        let jpeg = TestImages.jpeg(width: 60, height: 90, orientation: orientation)
        for source in [png, try Self.webP(stored([]), exif.bytes), jpeg] {
            let engine = try EngineTests.render(source, operations, .imagemagick)
            let theirs = try Self.converted(source, operations, folder)
            let kind = try ImageHeader.read(source).kind
            #expect((theirs.width, theirs.height) == (engine.width, engine.height), "\(kind)")
            let distance = theirs.psnr(engine)
            #expect(distance >= 45, "\(kind): \(distance) dB")
        }
    }

    /// Settings of `convert`, and the colour space and the filter of an image, stay in force: they must not apply to
    /// later operations.
    @Test(
        arguments: [
            [.resize, .deskew], [.resize, .polaroid], [.vignette, .polaroid], [.clarity, .deskew],
            [.perspective, .deskew], [.straighten, .polaroid], [.charcoal, .wave], [.charcoal, .vignette, .wave],
            [.charcoal, .border], [.charcoal, .deskew], [.polaroid, .border], [.trim, .deskew], [.shadow, .frame],
            [.charcoal, .colorize], [.sketch, .pictureWatermark],
        ] as [[AdjustmentKind]]
    )
    func `no operation changes the result of another one`(kinds: [AdjustmentKind]) throws {
        let folder = try TemporaryFolder("convert")
        let operations = try kinds.map { try EngineFixtures.cases($0)[0] }
        for isGrey in [false, true] {
            let source =
                isGrey
                ? TestImages.png(width: 120, height: 80) { x, y in
                    let value = UInt8((3 * x + 5 * y + (x / 20 + y / 15) % 2 * 60) & 255)
                    return (value, value, value, 255)
                } : EngineFixtures.image(seed: 31, width: 120, height: 80)
            let engine = try EngineTests.render(source, operations, .imagemagick)
            let theirs = try Self.converted(source, operations, folder)
            let distance = theirs.psnr(engine)
            #expect(
                distance >= 45,
                "\(kinds): \(distance) dB, \(engine.width)x\(engine.height) and \(theirs.width)x\(theirs.height)"
            )
        }
    }

    @Test(arguments: RenderEngine.allCases)
    func `a border around a charcoal drawing has its colour`(engine: RenderEngine) throws {
        let operations = try [
            Adjustment(.charcoal, ["radius": 1]), Adjustment(.border, ["size": 0.1, "colour": "#336699"]),
        ]
        let result = try EngineTests.render(EngineFixtures.image(seed: 31), operations, engine)
        #expect(Array(result.values.prefix(3)) == [0x3333, 0x6666, 0x9999])
    }

    /// Lists of colour operations only, as a table can hold them.
    private static let looks: [[Adjustment]] = {
        let film = JSON.string(Data(EngineFixtures.filmLook).base64EncodedString())
        let members: [(AdjustmentKind, JSONObject)] = [
            (.contrast, ["value": 0.4]), (.vibrance, ["value": 0.5]), (.lut, ["table": film]),
            (.splitToning, ["shadowSaturation": 0.4, "highlightSaturation": 0.3]),
        ]
        let operations = members.compactMap { try? Adjustment($0.0, $0.1) }
        return [[operations[2]], [.exposure(0.5), operations[0], operations[1]], [.sepia(0.7), operations[3]]]
    }()

    @Test func `the colours of a list, applied by convert as a HALD CLUT, equal its render`() throws {
        let convert = try Needed.program("convert")
        let folder = try TemporaryFolder("hald")
        let (input, table, output) = (folder.file("in.png"), folder.file("hald.png"), folder.file("out.png"))
        let source = EngineFixtures.image(seed: 5)
        try Data(source).write(to: URL(filePath: input))
        for operations in Self.looks {
            let hald = try AdjustmentDescription.hald(AdjustmentList(operations: operations))
            try Data(hald).write(to: URL(filePath: table))
            _ = try ExternalTool.run(convert, [input, table, "-hald-clut", "-depth", "16", output])
            let theirs = try DeepPixels([UInt8](Data(contentsOf: URL(filePath: output))))
            for engine in RenderEngine.allCases {
                let distance = try EngineTests.render(source, operations, engine).psnr(theirs)
                #expect(distance > 38, "\(operations.map(\.kind)) \(engine): \(distance) dB")
            }
        }
    }

    @Test func `the colours of a list, applied by FFmpeg as a .cube file, equal its render`() throws {
        let ffmpeg = try Needed.program("ffmpeg")
        let folder = try TemporaryFolder("lut3d")
        let (input, table, output) = (folder.file("in.png"), folder.file("look.cube"), folder.file("out.png"))
        let source = EngineFixtures.image(seed: 7)
        try Data(source).write(to: URL(filePath: input))
        for operations in Self.looks {
            let cube = try AdjustmentDescription.cube(AdjustmentList(operations: operations), title: "look")
            try Data(cube).write(to: URL(filePath: table))
            let arguments = [
                "-v", "error", "-y", "-i", input, "-vf", "format=rgb48,lut3d=\(table)", "-pix_fmt", "rgb48be",
            ]
            _ = try ExternalTool.run(ffmpeg, arguments + [output])
            let theirs = try DeepPixels([UInt8](Data(contentsOf: URL(filePath: output))))
            for engine in RenderEngine.allCases {
                let distance = try EngineTests.render(source, operations, engine).psnr(theirs)
                #expect(distance > 38, "\(operations.map(\.kind)) \(engine): \(distance) dB")
            }
        }
    }

    @Test func `the colours of a list, applied as a .cube file, equal its render`() throws {
        let source = EngineFixtures.image(seed: 6)
        for operations in Self.looks {
            let cube = try AdjustmentDescription.cube(AdjustmentList(operations: operations), title: "a \"look\"")
            #expect(try ColourTable(cube: cube).points == AdjustmentDescription.cubePoints)
            let lut = try Adjustment(.lut, ["table": .string(Data(cube).base64EncodedString())])
            for engine in RenderEngine.allCases {
                let render = try EngineTests.render(source, operations, engine)
                let distance = try EngineTests.render(source, [lut], engine).psnr(render)
                #expect(distance > 38, "\(operations.map(\.kind)) \(engine): \(distance) dB")
            }
        }
    }
}
