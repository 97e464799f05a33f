import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoModel
import TestSupport
import Testing

@testable import Editor

extension StudioTests {
    @Suite(.timeLimit(.minutes(5)))
    struct TransactionTests {
        private let grey = AdjustmentList(operations: [.blackAndWhite(1)])
        private let bright = AdjustmentList(operations: [.exposure(1)])

        @Test func `the same transaction three times at once is one change with equal outcomes`() async throws {
            try await Studio.open { studio in
                let asset = try studio.catalog.add(TestPictures.jpeg(width: 60, height: 40))
                let edit = ApplyEdit(
                    asset: asset.id,
                    adjustments: bright,
                    mode: .append,
                    client: "script",
                    transaction: "t1"
                )
                let outcomes = try await withThrowingTaskGroup(of: EditOutcome.self) { group in
                    for _ in 0..<3 { group.addTask { try await studio.ask(edit) } }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                #expect(Set(outcomes.map(\.sequence)) == [2])
                #expect(outcomes.allSatisfy { $0.isChanged })
                #expect(studio.catalog.sequence == 2)
                #expect(studio.commits.count == 1)
                #expect(try studio.bytes(asset.id, .adjustmentData) == bright.json.bytes)
            }
        }

        @Test func `a later repeat has the same outcome, even if the asset has changed since`() async throws {
            try await Studio.open { studio in
                let asset = try studio.catalog.add(TestPictures.jpeg(width: 60, height: 40))
                let edit = ApplyEdit(asset: asset.id, adjustments: grey, client: "script", transaction: "t1")
                let outcome = try await studio.ask(edit)
                _ = try await studio.ask(ApplyEdit(asset: asset.id, adjustments: bright))
                #expect(try await studio.ask(edit).token == outcome.token)
                studio.catalog.remove(asset.id)
                #expect(try await studio.ask(edit).token == outcome.token)
                #expect(studio.editor.figures.recalled.total == 2)
                #expect(studio.commits.count == 2)
            }
        }

        @Test func `other content under a known transaction id is refused`() async throws {
            try await Studio.open { studio in
                let asset = try studio.catalog.add(TestPictures.jpeg(width: 60, height: 40))
                let other = try studio.catalog.add(TestPictures.jpeg(width: 40, height: 60))
                func edit(_ asset: Asset, _ list: AdjustmentList, _ client: String = "a") -> ApplyEdit {
                    ApplyEdit(asset: asset.id, adjustments: list, client: client, transaction: "t1")
                }
                _ = try await studio.ask(edit(asset, grey))
                #expect(await studio.refusal(edit(asset, bright))?.refusal == .idReused)
                #expect(await studio.refusal(edit(other, grey))?.refusal == .idReused)
                let revert = RevertEdit(asset: asset.id, client: "a", transaction: "t1")
                #expect(await studio.refusal(revert)?.refusal == .idReused)
                #expect(studio.commits.count == 2)
                _ = try await studio.ask(edit(other, grey, "b"))
            }
        }

        @Test func `a lost response is requested again under the same transaction id`() async throws {
            try await Studio.open { studio in
                let asset = try studio.catalog.add(TestPictures.jpeg(width: 60, height: 40))
                studio.catalog.fail(
                    PerformChanges.method,
                    .connectionLost("gone"),
                    .connectionLost("gone again")
                )
                let outcome = try await studio.ask(ApplyEdit(asset: asset.id, adjustments: grey))
                #expect(outcome.isChanged)
                #expect(studio.catalog.count(PerformChanges.method) == 3)
                #expect(studio.commits.count == 1)
                #expect(studio.commits.first?.transaction?.isEmpty == false)
            }
        }

        @Test func `a failed edit does not use up its transaction id`() async throws {
            try await Studio.open { studio in
                let asset = try studio.catalog.add(TestPictures.jpeg(width: 60, height: 40))
                let edit = ApplyEdit(
                    asset: asset.id,
                    adjustments: grey,
                    ifContentRevision: Revision(99),
                    client: "a",
                    transaction: "t1"
                )
                #expect(await studio.refusal(edit)?.refusal == .conflict)
                var again = edit
                again.ifContentRevision = nil
                #expect(try await studio.ask(again).isChanged)
            }
        }

        @Test func `reverting is idempotent too`() async throws {
            try await Studio.open { studio in
                let asset = try studio.catalog.add(TestPictures.jpeg(width: 60, height: 40))
                _ = try await studio.ask(ApplyEdit(asset: asset.id, adjustments: grey))
                let revert = RevertEdit(asset: asset.id, client: "a", transaction: "r1")
                let outcome = try await studio.ask(revert)
                _ = try await studio.ask(ApplyEdit(asset: asset.id, adjustments: bright))
                #expect(try await studio.ask(revert).token == outcome.token)
                #expect(studio.catalog.asset(asset.id)?.hasAdjustments == true)
            }
        }
    }
}
