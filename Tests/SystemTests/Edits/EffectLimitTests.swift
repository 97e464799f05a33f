import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Random lists with effects, over all values that the format allows: each is rendered within a worker's limits of
/// memory and time, or refused with a named error. No worker crashes.
///
/// The short form renders the same six lists each time; `SAFELIGHT_SOAK=34` and more renders 200, of images up to 12
/// megapixels.
@Suite(.serialized, .timeLimit(.minutes(90)))
struct EffectLimitTests {
    private static let lists = min(200, TestEnvironment.rounds(6))

    /// The seed of six lists, of which one is refused with an estimate of 35 s; the others take at most four.
    private static let shortSeed: UInt64 = 762

    /// Widths and heights of photos of 0.3, 1, 3 and 12 megapixels.
    private static let sizes = [(640, 480), (1200, 800), (2000, 1500), (4000, 3000)].prefix(lists > 6 ? 4 : 2)

    private static func random(_ parameter: AdjustmentParameter, _ random: inout SeededRandom) -> JSON {
        switch parameter.domain {
        // One value in four is the end of the range, which takes the longest.
        case .number(let range):
            .double(random.one(in: 4) ? range.upperBound : Double.random(in: range, using: &random))
        case .whole(let range): JSON(random.one(in: 4) ? range.upperBound : Int.random(in: range, using: &random))
        case .choice(let values): random.pick(values).json
        default: parameter.defaultValue.json
        }
    }

    /// Returns one to three operations of the stages effect and frame, sometimes with one before and after them.
    private static func list(_ random: inout SeededRandom) throws -> AdjustmentList {
        let effects = AdjustmentKind.all.filter { [.effect, .frame].contains($0.stage) }
        var kinds = (0..<Int.random(in: 1...3, using: &random)).map { _ in random.pick(effects) }
        if random.one(in: 3) { kinds.append(random.pick([.exposure, .saturation, .hsl, .clarity, .noiseReduction])) }
        if random.one(in: 3) { kinds.append(random.pick([.vignette, .grain, .straighten])) }
        return AdjustmentList(
            operations: try kinds.map { kind in
                var members: JSONObject = [:]
                for parameter in kind.parameters { members[parameter.name] = Self.random(parameter, &random) }
                return try Adjustment(kind, members)
            }
        )
    }

    @Test(.spec("S-88"))
    func `lists with effects are rendered within the limits of a worker or refused with a named error`() async throws {
        let vips = try Needed.program("vips")
        // The estimate of a random list may be just below the limit; on a busy machine it then takes longer.
        let isLong = TestEnvironment.rounds(1) > 1
        var random = isLong ? SeededRandom(named: "effect limits") : SeededRandom(seed: Self.shortSeed)
        let services = try SafelightFixture("effects")
        try services.start()
        let library = try services.library()
        var assets: [ObjectID] = []
        for (width, height) in Self.sizes {
            let file = services.folder.file("\(width).jpg")
            let noise = services.folder.file("noise.v")
            let size = ["\(width)", "\(height)"]
            _ = try ExternalTool.run(vips, ["gaussnoise", noise] + size + ["--mean", "128", "--sigma", "30"])
            _ = try ExternalTool.run(vips, ["jpegsave", noise, file])
            let result = try await library.perform(
                [.createAsset(.init(ref: "a", resources: [NewResource(source: .attachment(0))]))],
                attachments: [[UInt8](try Data(contentsOf: URL(filePath: file)))]
            )
            assets.append(try #require(result.id("a")))
        }
        var (rendered, refused) = (0, 0)
        var longest = 0.0
        for round in 0..<Self.lists {
            let list = try Self.list(&random)
            let index = round % assets.count
            let edit = ApplyEdit(
                asset: assets[index],
                adjustments: list,
                engine: random.one(in: 2) ? .imagemagick : .fused
            )
            let start = Date()
            do {
                _ = try await library.editor.ask(edit, deadline: .seconds(120))
                rendered += 1
            } catch {
                #expect(error.name == "limit_exceeded", "\(Self.sizes[index]) \(list.json.text): \(error)")
                refused += 1
            }
            let seconds = Date().timeIntervalSince(start)
            longest = max(longest, seconds)
            if Self.lists > 6 {
                print("effects: \(Self.sizes[index].0) \(list.operations.map(\.kind.rawValue)) \(seconds) s")
            }
        }
        let workers = try await library.editor.metrics()["workers"]
        let late = Int(workers?["timedOut"]?.intValue ?? 0)
        #expect(workers?["crashed"] == 0, "\(workers?.text ?? "")")
        // The estimate assumes an idle machine: beside other work a few renders reach the limit.
        #expect(late <= Self.lists / 20, "\(workers?.text ?? "")")
        TestPaths.report(
            "\(Self.lists) lists with effects: \(rendered) rendered, \(refused) refused, \(late) of them late, "
                + String(format: "the longest took %.1f s", longest)
        )
        #expect(rendered > 0)
        await library.close()
        #expect(services.stop() == [])
    }
}
