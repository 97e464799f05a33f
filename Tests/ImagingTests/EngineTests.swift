import Foundation
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Imaging
import ImageFormats

/// Both engines have one meaning: what they make of the same list differs by less than one sees.
@Suite(.serialized, .timeLimit(.minutes(TestEnvironment.rounds(10))))
struct EngineTests {
    static func render(
        _ bytes: [UInt8],
        _ operations: [Adjustment],
        _ engine: RenderEngine,
        side: Int? = nil,
        isFlattened: Bool = false
    ) throws -> DeepPixels {
        let list = AdjustmentList(operations: operations)
        // TIFF, because compressing PNG would take most of the time.
        let image = try AdjustmentRendering.render(bytes, list, format: .tiff, maximumSide: side, engine: engine)
        return try DeepPixels(image.bytes, isFlattened: isFlattened)
    }

    /// The least distance of the engines: geometry resamples with filters of different shapes.
    private static func least(_ operations: [Adjustment]) -> Double {
        operations.contains { $0.kind.stage == .geometry } ? 35 : 40
    }

    /// On one picture; the cases of an operation take turns with eight and sixteen bits, the long form has both for
    /// each. `EnginePictureTests` has thirty pictures.
    @Test(arguments: AdjustmentKind.all)
    func `both engines agree on each operation`(kind: AdjustmentKind) throws {
        var worst = Double.infinity
        for bits in [UInt8(8), 16] {
            let picture = EngineFixtures.picture(seed: 1, bits: bits)
            for (index, operation) in try EngineFixtures.cases(kind).enumerated()
            where TestEnvironment.rounds(1) > 1 || (index % 2 == 0) == (bits == 8) {
                let fused = try Self.render(picture, [operation], .fused)
                let magick = try Self.render(picture, [operation], .imagemagick)
                let distance = fused.psnr(magick)
                worst = min(worst, distance)
                #expect(distance >= Self.least([operation]), "\(kind) \(index), \(bits) bits: \(distance) dB")
            }
        }
        print("engines: \(kind) at least \(worst) dB")
    }

    /// Without effects: they are the same calls in both, and a few of them, such as posterize, turn the smallest
    /// difference into a large one.
    @Test func `both engines agree on random lists`() throws {
        var random = SeededRandom(seed: TestEnvironment.text("SAFELIGHT_SEED").flatMap(UInt64.init) ?? 17)
        for round in 0..<(TestEnvironment.rounds(1) > 1 ? 50 : 8) {
            let picture = EngineFixtures.picture(seed: UInt64(100 + round), bits: round % 2 == 0 ? 8 : 16)
            let operations = try EngineFixtures.list(&random, withEffects: false)
            let distance = try Self.render(picture, operations, .fused).psnr(
                Self.render(picture, operations, .imagemagick)
            )
            print("engines: \(operations.map(\.kind.rawValue).joined(separator: " ")): \(distance) dB")
            #expect(distance >= Self.least(operations), "\(operations.map(\.json.text)): \(distance) dB")
        }
    }
}
