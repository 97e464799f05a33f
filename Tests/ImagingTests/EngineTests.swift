import Foundation
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Imaging
import ImageFormats

/// Both engines have one meaning: their results for the same list differ by less than is visible.
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

    /// liblqr would end the process at such a picture.
    @Test(arguments: RenderEngine.allCases)
    func `seams are not carved out of a picture of one or two rows or columns`(engine: RenderEngine) throws {
        let narrow = try Adjustment(.liquidRescale, ["width": 0.5, "height": 0.5])
        let wide = try Adjustment(.liquidRescale, ["width": 1.5])
        for (width, height) in [(1, 1), (50, 1), (1, 50), (2, 50), (50, 2)] {
            let picture = EngineFixtures.picture(seed: 3, width: width, height: height)
            let smaller = try Self.render(picture, [narrow], engine)
            #expect(smaller.width == max(min(width, 3), width / 2) && smaller.height == max(min(height, 3), height / 2))
            let larger = try Self.render(picture, [wide], engine)
            #expect(larger.width == max(width, Int((1.5 * Double(width)).rounded())) && larger.height == height)
        }
        let cut = try Adjustment(.crop, ["width": 0.001, "height": 1])
        let made = try Self.render(EngineFixtures.picture(seed: 3), [cut, narrow], engine)
        #expect(made.width == 1)
    }
}
