import Foundation
import ImageFormats
import TestSupport
import Testing

@testable import Imaging
@testable import PhotoModel

/// Tests that accepted options of `convert` have the same result as in `convert`.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct MagickOptionsConvertTests {
    @Test func `translated options have the same result as in convert`() throws {
        let convert = try Needed.program("convert")
        let folder = try TemporaryFolder("options")
        let source = EngineFixtures.image(seed: 11, bits: 16)
        let (input, output) = (folder.file("in.png"), folder.file("out.png"))
        try Data(source).write(to: URL(filePath: input))
        for text in MagickFragments.accepted {
            let operations = try MagickOptions(text).operations(for: (240, 160))
            // The strokes of a sketch are random without a seed.
            let arguments = ["-seed", "1"] + (try MagickWord.split(text).map(\.text))
            // The pixels are compared; `-gamma` also writes a `gAMA` chunk that would undo it on display.
            let file = ["-define", "png:exclude-chunks=gAMA", "-depth", "16", "PNG48:" + output]
            _ = try ExternalTool.run(convert, [input] + arguments + file)
            let theirs = try DeepPixels([UInt8](Data(contentsOf: URL(filePath: output))))
            for engine in RenderEngine.allCases {
                let ours = try EngineTests.render(source, operations, engine)
                let distance = ours.psnr(theirs)
                let isResampled = operations.contains { $0.kind == .resize }
                print("options: \(text) \(engine): \(distance) dB")
                #expect(
                    distance >= (isResampled ? 35 : 40),
                    "\(text) \(engine): \(distance) dB, \(ours.width)x\(ours.height) \(theirs.width)x\(theirs.height)"
                )
            }
        }
    }

    /// With the proportions of the image, sides are rounded down as well as up.
    @Test(
        arguments: ["-resize '502>'", "-rotate 90 -resize 'x325>'", "-resize 300x", "-resize x211", "-resize 317x900"]
    )
    func `a resized image has the same size as in convert`(text: String) throws {
        let convert = try Needed.program("convert")
        let folder = try TemporaryFolder("sizes")
        let source = EngineFixtures.image(seed: 12, width: 611, height: 407)
        let (input, output) = (folder.file("in.png"), folder.file("out.png"))
        try Data(source).write(to: URL(filePath: input))
        let arguments = try MagickWord.split(text).map(\.text)
        _ = try ExternalTool.run(convert, [input] + arguments + ["-depth", "16", "PNG48:" + output])
        let theirs = try DeepPixels([UInt8](Data(contentsOf: URL(filePath: output))))
        let operations = try MagickOptions(text).operations(for: (611, 407))
        for engine in RenderEngine.allCases {
            let ours = try EngineTests.render(source, operations, engine)
            #expect((ours.width, ours.height) == (theirs.width, theirs.height), "\(engine)")
            #expect(ours.psnr(theirs) >= 35, "\(engine)")
        }
    }
}
