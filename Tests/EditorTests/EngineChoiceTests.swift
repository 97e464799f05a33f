import Contracts
import Imaging
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

@testable import Editor

extension EditorWorkerTests {
    /// Tests of the choice of an edit's engine, and of its name in the stored list.
    @Suite(.timeLimit(.minutes(TestEnvironment.rounds(5))))
    struct EngineChoiceTests {
        private let list = AdjustmentList(operations: [.exposure(0.7), .saturation(0.3)])
        private let photo = TestImages.jpeg(width: 180, height: 120)

        private func stored(_ fixture: EditorFixture, _ asset: ObjectID) throws -> AdjustmentList {
            try AdjustmentList(json: JSON(parsing: fixture.bytes(asset, .adjustmentData)))
        }

        @Test
        func `the request chooses the engine, the stored list names it, and equal requests have equal renders`()
            async throws
        {
            try await EditorFixture.open { fixture in
                let assets = try (0..<3).map { _ in try fixture.catalog.add(photo).id }
                for (asset, engine) in zip(assets, [RenderEngine.fused, .imagemagick, .imagemagick]) {
                    _ = try await fixture.ask(ApplyEdit(asset: asset, adjustments: list, engine: engine))
                }
                let renders = try assets.map { try fixture.bytes($0, .fullSizePhoto) }
                #expect(renders[1] == renders[2], "the same list and engine")
                #expect(try stored(fixture, assets[0]) == list, "the default engine is not named")
                #expect(try fixture.bytes(assets[0], .adjustmentData) == list.json.bytes)
                let named = try stored(fixture, assets[1])
                #expect(named.engine?.engine == .imagemagick && named.operations == list.operations)
                let version = try #require(ImagingLibrary.versions["imagemagick"])
                #expect(named.engine?.version == version)
                // The fused engine renders effects with ImageMagick too.
                let border = AdjustmentList(operations: [try Adjustment(.border)])
                _ = try await fixture.ask(ApplyEdit(asset: assets[0], adjustments: border))
                #expect(try stored(fixture, assets[0]).engine == AppliedEngine(.fused, version: "1+\(version)"))
            }
        }

        @Test
        func `appending keeps the engine, the engine of a list is used, and a request overrides both`() async throws {
            try await EditorFixture.open { fixture in
                let asset = try fixture.catalog.add(photo).id
                let magick = AdjustmentList(
                    operations: list.operations,
                    engine: AppliedEngine(.imagemagick, version: "0.0")
                )
                _ = try await fixture.ask(ApplyEdit(asset: asset, adjustments: magick))
                let version = try stored(fixture, asset).engine?.version
                #expect(version == ImagingLibrary.versions["imagemagick"], "the version that rendered")
                let more = AdjustmentList(operations: [.contrast(0.1)])
                _ = try await fixture.ask(ApplyEdit(asset: asset, adjustments: more, mode: .append))
                #expect(try stored(fixture, asset).engine?.engine == .imagemagick)
                _ = try await fixture.ask(ApplyEdit(asset: asset, adjustments: magick, engine: .fused))
                #expect(try stored(fixture, asset).engine == nil)
            }
        }

        @Test func `the editor's setting is used if a request names no engine, also for previews`() async throws {
            try await EditorFixture.open(configure: { $0.engine = .imagemagick }) { fixture in
                let asset = try fixture.catalog.add(photo).id
                _ = try await fixture.ask(ApplyEdit(asset: asset, adjustments: list))
                #expect(try stored(fixture, asset).engine?.engine == .imagemagick)
                let byDefault = try await fixture.client.ask(
                    PreviewEdit(asset: asset, adjustments: list, maximumSide: 64)
                )
                for engine in RenderEngine.allCases {
                    let preview = try await fixture.client.ask(
                        PreviewEdit(asset: asset, adjustments: list, maximumSide: 64, engine: engine)
                    )
                    #expect(preview.result.pixelWidth == 64)
                    #expect((preview.attachments == byDefault.attachments) == (engine == .imagemagick))
                }
            }
        }

        /// Tests 8 random lists with effects and any values; the long form has 200.
        @Test
        func `lists with effects are rendered within the limits of a worker, or refused as limit_exceeded`()
            async throws
        {
            let kinds = AdjustmentKind.all.filter { [.effect, .frame].contains($0.stage) }
            try await EditorFixture.open { fixture in
                let asset = try fixture.catalog.add(TestImages.jpeg(width: 300, height: 200)).id
                var random = SeededRandom(seed: TestEnvironment.text("SAFELIGHT_SEED").flatMap(UInt64.init) ?? 31)
                for round in 0..<(TestEnvironment.rounds(1) > 1 ? 200 : 8) {
                    let operations = try (0..<Int.random(in: 1...3, using: &random)).map { _ in
                        let kind = random.pick(kinds)
                        var members = JSONObject()
                        for parameter in kind.parameters {
                            switch parameter.domain {
                            case .number(let range):
                                members[parameter.name] = .double(Double.random(in: range, using: &random))
                            case .whole(let range):
                                members[parameter.name] = JSON(Int.random(in: range, using: &random))
                            default: break
                            }
                        }
                        return try Adjustment(kind, members)
                    }
                    let edit = ApplyEdit(
                        asset: asset,
                        adjustments: AdjustmentList(operations: operations),
                        engine: random.pick(RenderEngine.allCases)
                    )
                    do throws(RPCError) {
                        _ = try await fixture.ask(edit)
                    } catch {
                        #expect(error.errorCode == .limitExceeded, "\(round) \(operations.map(\.json.text)): \(error)")
                    }
                }
            }
        }

        @Test func `an edit is described as a table and as a command`() async throws {
            try await EditorFixture.open { fixture in
                let asset = try fixture.catalog.add(photo).id
                _ = try await fixture.ask(ApplyEdit(asset: asset, adjustments: list))
                let cube = try await fixture.client.ask(DescribeEdit(asset: asset, as: .cube))
                let text = String(decoding: cube.attachments.first ?? [], as: UTF8.self)
                #expect(text.contains("LUT_3D_SIZE 33\n") && cube.result.filename == "edit.cube")
                let hald = try await fixture.client.ask(DescribeEdit(adjustments: list, as: .hald))
                #expect(try ImageProbe.info(of: hald.attachments.first ?? []).pixelWidth == 512)
                let script = try await fixture.client.ask(DescribeEdit(asset: asset, as: .convert))
                #expect(String(decoding: script.attachments.first ?? [], as: UTF8.self).contains("-color-matrix"))
                for request in [DescribeEdit(as: .cube), DescribeEdit(adjustments: list, as: .convert)] {
                    #expect(await fixture.rpcError(request)?.errorCode == .invalidParams)
                }
            }
        }
    }
}
