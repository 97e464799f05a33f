import Contracts
import Hosting
import JSONValue
import PhotoModel
import Storage
import TestSupport
import Testing

@testable import Editor

extension EditorWorkerTests {
    @Suite(.timeLimit(.minutes(5)))
    struct TransactionTests {
        private let grey = AdjustmentList(operations: [.blackAndWhite(1)])
        private let bright = AdjustmentList(operations: [.exposure(1)])

        @Test func `the same transaction three times at once is one change with equal outcomes`() async throws {
            try await EditorFixture.open { fixture in
                let asset = try fixture.catalog.add(TestImages.jpeg(width: 60, height: 40))
                let edit = ApplyEdit(
                    asset: asset.id,
                    adjustments: bright,
                    mode: .append,
                    client: "script",
                    transaction: "t1"
                )
                let outcomes = try await withThrowingTaskGroup(of: EditOutcome.self) { group in
                    for _ in 0..<3 { group.addTask { try await fixture.ask(edit) } }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                #expect(Set(outcomes.map(\.sequence)) == [2])
                #expect(outcomes.allSatisfy { $0.isChanged })
                #expect(fixture.catalog.sequence == 2)
                #expect(fixture.commits.count == 1)
                #expect(try fixture.bytes(asset.id, .adjustmentData) == bright.json.bytes)
            }
        }

        @Test func `a later repeat has the same outcome, even if the asset has changed since`() async throws {
            try await EditorFixture.open { fixture in
                let asset = try fixture.catalog.add(TestImages.jpeg(width: 60, height: 40))
                let edit = ApplyEdit(asset: asset.id, adjustments: grey, client: "script", transaction: "t1")
                let outcome = try await fixture.ask(edit)
                _ = try await fixture.ask(ApplyEdit(asset: asset.id, adjustments: bright))
                #expect(try await fixture.ask(edit).token == outcome.token)
                fixture.catalog.remove(asset.id)
                #expect(try await fixture.ask(edit).token == outcome.token)
                #expect(fixture.editor.metrics.recalled.total == 2)
                #expect(fixture.commits.count == 2)
            }
        }

        @Test func `a repeat with suggested operations has the same outcome, even if another image would get others`()
            async throws
        {
            try await EditorFixture.open { fixture in
                let asset = try fixture.catalog.add(TestImages.jpeg(width: 60, height: 40))
                let edit = ApplyEdits(
                    asset: asset.id,
                    adjustments: bright,
                    enhances: true,
                    client: "script",
                    transaction: "t1"
                )
                let outcome = try await fixture.ask(edit)
                fixture.catalog.remove(asset.id)
                #expect(try await fixture.ask(edit).token == outcome.token)
                var several = edit
                (several.asset, several.assets, several.transaction) = (nil, [asset.id], "t2")
                #expect(try await fixture.ask(several).failed == 1, "another transaction")
                var other = edit
                other.adjustments = grey
                #expect(await fixture.rpcError(other)?.errorCode == .idReused)
                #expect(fixture.commits.count == 1)
            }
        }

        @Test func `a repeated edit of a Live Photo has the same outcome, even if that was deleted since`()
            async throws
        {
            try await EditorFixture.open { fixture in
                let asset = try fixture.catalog.add(TestImages.jpeg(width: 60, height: 40))
                let stored = try fixture.resources.put(bytes: [1, 2, 3])
                fixture.catalog.change(asset.id, content: false) { asset in
                    asset.resources.append(
                        AssetResource(
                            type: .pairedVideo,
                            digest: stored.digest.text,
                            size: stored.size,
                            contentType: "com.apple.quicktime-movie"
                        )
                    )
                }
                // Neither the audio nor the frames change, so the video is not rendered.
                let edit = EditLivePhoto(asset: asset.id, client: "script", transaction: "t1")
                let outcome = try await fixture.ask(edit)
                fixture.catalog.remove(asset.id)
                #expect(try await fixture.ask(edit).token == outcome.token)
            }
        }

        @Test func `other content under a known transaction id is refused`() async throws {
            try await EditorFixture.open { fixture in
                let asset = try fixture.catalog.add(TestImages.jpeg(width: 60, height: 40))
                let other = try fixture.catalog.add(TestImages.jpeg(width: 40, height: 60))
                func edit(_ asset: Asset, _ list: AdjustmentList, _ client: String = "a") -> ApplyEdit {
                    ApplyEdit(asset: asset.id, adjustments: list, client: client, transaction: "t1")
                }
                _ = try await fixture.ask(edit(asset, grey))
                #expect(await fixture.rpcError(edit(asset, bright))?.errorCode == .idReused)
                #expect(await fixture.rpcError(edit(other, grey))?.errorCode == .idReused)
                let revert = RevertEdit(asset: asset.id, client: "a", transaction: "t1")
                #expect(await fixture.rpcError(revert)?.errorCode == .idReused)
                #expect(fixture.commits.count == 2)
                _ = try await fixture.ask(edit(other, grey, "b"))
            }
        }

        @Test func `a lost response is requested again under the same transaction id`() async throws {
            try await EditorFixture.open { fixture in
                let asset = try fixture.catalog.add(TestImages.jpeg(width: 60, height: 40))
                fixture.catalog.fail(
                    PerformChanges.method,
                    .connectionLost("gone"),
                    .connectionLost("gone again")
                )
                let outcome = try await fixture.ask(ApplyEdit(asset: asset.id, adjustments: grey))
                #expect(outcome.isChanged)
                #expect(fixture.catalog.count(PerformChanges.method) == 3)
                #expect(fixture.commits.count == 1)
                #expect(fixture.commits.first?.transaction?.isEmpty == false)
            }
        }

        @Test func `a failed edit does not use up its transaction id`() async throws {
            try await EditorFixture.open { fixture in
                let asset = try fixture.catalog.add(TestImages.jpeg(width: 60, height: 40))
                let edit = ApplyEdit(
                    asset: asset.id,
                    adjustments: grey,
                    ifContentRevision: Revision(99),
                    client: "a",
                    transaction: "t1"
                )
                #expect(await fixture.rpcError(edit)?.errorCode == .conflict)
                var again = edit
                again.ifContentRevision = nil
                #expect(try await fixture.ask(again).isChanged)
            }
        }

        @Test func `reverting is idempotent too`() async throws {
            try await EditorFixture.open { fixture in
                let asset = try fixture.catalog.add(TestImages.jpeg(width: 60, height: 40))
                _ = try await fixture.ask(ApplyEdit(asset: asset.id, adjustments: grey))
                let revert = RevertEdit(asset: asset.id, client: "a", transaction: "r1")
                let outcome = try await fixture.ask(revert)
                _ = try await fixture.ask(ApplyEdit(asset: asset.id, adjustments: bright))
                #expect(try await fixture.ask(revert).token == outcome.token)
                #expect(fixture.catalog.asset(asset.id)?.hasAdjustments == true)
            }
        }
    }
}
