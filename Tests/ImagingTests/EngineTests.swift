import Foundation
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Imaging
import ImageFormats

/// Tests that the results of both engines for the same list differ by less than is visible.
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

    /// Returns the minimum distance of the engines: geometry resamples with filters of different shapes.
    private static func minimumDistance(_ operations: [Adjustment]) -> Double {
        operations.contains { $0.kind.stage == .geometry } ? 35 : 40
    }

    /// Uses one image. The cases of an operation alternate between eight and sixteen bits; the long form has both for
    /// each case. `EngineImageTests` has thirty images.
    @Test(arguments: AdjustmentKind.all)
    func `both engines agree on each operation`(kind: AdjustmentKind) throws {
        var worst = Double.infinity
        for bits in [UInt8(8), 16] {
            let source = EngineFixtures.image(seed: 1, bits: bits)
            for (index, operation) in try EngineFixtures.cases(kind).enumerated()
            where TestEnvironment.rounds(1) > 1 || (index % 2 == 0) == (bits == 8) {
                let fused = try Self.render(source, [operation], .fused)
                let magick = try Self.render(source, [operation], .imagemagick)
                let distance = fused.psnr(magick)
                worst = min(worst, distance)
                #expect(distance >= Self.minimumDistance([operation]), "\(kind) \(index), \(bits) bits: \(distance) dB")
            }
        }
        print("engines: \(kind) at least \(worst) dB")
    }

    /// The lists have no effects: both engines make the same calls for them, and a few effects, such as posterize,
    /// enlarge the smallest difference.
    @Test func `both engines agree on random lists`() throws {
        var random = SeededRandom(seed: TestEnvironment.text("SAFELIGHT_SEED").flatMap(UInt64.init) ?? 17)
        for round in 0..<(TestEnvironment.rounds(1) > 1 ? 50 : 8) {
            let source = EngineFixtures.image(seed: UInt64(100 + round), bits: round % 2 == 0 ? 8 : 16)
            let operations = try EngineFixtures.list(&random, withEffects: false)
            let distance = try Self.render(source, operations, .fused).psnr(
                Self.render(source, operations, .imagemagick)
            )
            print("engines: \(operations.map(\.kind.rawValue).joined(separator: " ")): \(distance) dB")
            #expect(distance >= Self.minimumDistance(operations), "\(operations.map(\.json.text)): \(distance) dB")
        }
    }

    /// liblqr would end the process for such an image.
    @Test(arguments: RenderEngine.allCases)
    func `seams are not carved out of an image of one or two rows or columns`(engine: RenderEngine) throws {
        let narrow = try Adjustment(.liquidRescale, ["width": 0.5, "height": 0.5])
        let wide = try Adjustment(.liquidRescale, ["width": 1.5])
        for (width, height) in [(1, 1), (50, 1), (1, 50), (2, 50), (50, 2)] {
            let source = EngineFixtures.image(seed: 3, width: width, height: height)
            let smaller = try Self.render(source, [narrow], engine)
            #expect(smaller.width == max(min(width, 3), width / 2) && smaller.height == max(min(height, 3), height / 2))
            let larger = try Self.render(source, [wide], engine)
            #expect(larger.width == max(width, Int((1.5 * Double(width)).rounded())) && larger.height == height)
        }
        let cut = try Adjustment(.crop, ["width": 0.001, "height": 1])
        let result = try Self.render(EngineFixtures.image(seed: 3), [cut, narrow], engine)
        #expect(result.width == 1)
    }
}
