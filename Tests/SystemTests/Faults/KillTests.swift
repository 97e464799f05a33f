import Contracts
import Basics
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// `kill -9` of random services during an import, changes and edits.
///
/// One round in the short form; `SAFELIGHT_SOAK=50` is the long one. The seed is printed, and `SAFELIGHT_SEED` repeats
/// a run.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct KillTests {
    private static let rounds = TestEnvironment.rounds(1)

    @Test func `killing any service at any time loses nothing acknowledged and adds nothing`() async throws {
        var random = SeededRandom(named: "kill -9")
        for round in 1...Self.rounds {
            let result = try await Self.runRound(random: &random)
            TestPaths.report(
                "round \(round): \(result.kills) kills, \(result.acknowledged) acknowledged, head \(result.head), "
                    + "\(String(format: "%.1f", result.seconds)) s"
            )
        }
    }

    private struct RoundResult {
        var kills = 0
        var acknowledged = 0
        var head: Int64 = 0
        var seconds = 0.0
    }

    private static let imports = 100
    private static let changes = 200
    private static let edits = 50

    private static func runRound(random: inout SeededRandom) async throws -> RoundResult {
        let start = Date()
        let services = try SafelightFixture("kill")
        var digests: [String: String] = [:]
        var files: [String] = []
        for index in 0..<imports {
            let bytes = TestImages.jpeg(
                width: 96,
                height: 64,
                date: "2024:05:\(String(format: "%02d", 1 + index % 28)) 10:00:00",
                seed: random.next()
            )
            let path = try services.folder.write(bytes, to: "photos/\(index).jpg")
            files.append(path)
            digests["\(index).jpg"] = SHA256.hash(data: bytes).hexadecimal
        }
        let paths = files
        try services.start()
        let library = try services.library("kill-test")
        let subscriber = try services.library("kill-subscriber")

        // A first asset, for the changes that run beside the import.
        let first = try await library.perform(
            [.createAsset(.init(ref: "a", resources: [NewResource(source: .path(paths[0]))]))],
            transaction: "import-0"
        )
        let subject = try #require(first.id("a"))

        let beginning = ChangeToken(library: first.token.library, sequence: 0)
        let seen = AwaitableValue<[ChangeRecord]>([])
        let watcher = Task {
            for try await event in subscriber.changes(since: beginning) {
                if case .change(let record) = event { seen.withLock { $0.append(record) } }
            }
        }
        defer { watcher.cancel() }

        let acknowledged = AwaitableValue<[String: Int64]>(["import-0": first.sequence])
        let imported = AwaitableValue<[ObjectID]>([subject])
        let work = Task {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for lane in 0..<4 {
                    group.addTask {
                        for index in stride(from: 1 + lane, to: imports, by: 4) {
                            let name = "import-\(index)"
                            let result = try await persist {
                                try await library.perform(
                                    [
                                        .createAsset(
                                            .init(ref: "a", resources: [NewResource(source: .path(paths[index]))])
                                        )
                                    ],
                                    transaction: name
                                )
                            }
                            acknowledged.withLock { $0[name] = result.sequence }
                            if let id = result.id("a") { imported.withLock { $0.append(id) } }
                        }
                    }
                }
                for lane in 0..<4 {
                    group.addTask {
                        for index in stride(from: lane, to: changes, by: 4) {
                            let name = "change-\(index)"
                            let result = try await persist {
                                try await library.perform(
                                    [
                                        .updateAsset(
                                            .init(id: .id(subject), set: AssetPatch(caption: .some("\(index)")))
                                        )
                                    ],
                                    transaction: name
                                )
                            }
                            acknowledged.withLock { $0[name] = result.sequence }
                        }
                    }
                }
                for lane in 0..<2 {
                    group.addTask {
                        for index in stride(from: lane, to: edits, by: 2) {
                            let name = "edit-\(index)"
                            let asset = imported.withLock { $0[index % $0.count] }
                            let list = AdjustmentList(operations: [.exposure(Double(index % 9) / 10 + 0.1)])
                            let result = try await persist {
                                try await library.editor.ask(
                                    ApplyEdit(asset: asset, adjustments: list, client: "kill-test", transaction: name)
                                ).result
                            }
                            acknowledged.withLock { $0[name] = result.sequence }
                        }
                    }
                }
                try await group.waitForAll()
            }
        }

        var result = RoundResult()
        let isDone = AwaitableValue(false)
        let end = Task {
            defer { isDone.withLock { $0 = true } }
            try await work.value
        }
        while !isDone.withLock({ $0 }), result.kills < 12 {
            try await Task.sleep(for: .milliseconds(Int.random(in: 20...250, using: &random)))
            guard !isDone.withLock({ $0 }),
                let service = SafelightFixture.Service.allCases.randomElement(using: &random)
            else { break }
            try services.restart(service)
            result.kills += 1
        }
        try await end.value

        // The catalog's current state and complete history.
        let token = try await library.currentToken()
        result.head = token.token.sequence
        let history = try await library.history(after: beginning)
        #expect(history.map(\.sequence) == Array(1...result.head))

        // Every subscriber received the same records, each once, in order.
        await seen.wait { $0.count >= history.count }
        let observed = seen.withLock { $0 }
        #expect(observed.map(\.bytes) == history.map(\.bytes))

        // Everything acknowledged is recorded once, under the acknowledged sequence.
        var bySequence: [Int64: ChangeRecord] = [:]
        for record in history { bySequence[record.sequence] = record }
        let named = Dictionary(grouping: history.filter { $0.origin.transaction != nil }) {
            $0.origin.transaction ?? ""
        }
        let outcomes = acknowledged.withLock { $0 }
        result.acknowledged = outcomes.count
        #expect(outcomes.count == imports + changes + edits)
        for (name, sequence) in outcomes {
            #expect(named[name]?.count == 1, "\(name) is \(named[name]?.count ?? 0) times in the history")
            #expect(bySequence[sequence]?.origin.transaction == name, "\(name) at \(sequence)")
        }

        // No transaction was applied in part: the records alone rebuild the content of the tables.
        var replayed: [ObjectID: Asset] = [:]
        for record in history {
            for change in record.assets {
                #expect(
                    change.before == replayed[change.id],
                    "record \(record.sequence) has a different state before it"
                )
                replayed[change.id] = change.after
            }
        }
        var stored: [ObjectID: Asset] = [:]
        var everything = FetchDescription(.assets)
        everything.includeHidden = true
        everything.includeAllBurstAssets = true
        for try await asset in library.allAssets(everything) { stored[asset.id] = asset }
        #expect(stored == replayed)

        // The originals are bit for bit unchanged.
        #expect(stored.count == imports)
        for asset in stored.values {
            let name = try #require(asset.originalFilename)
            #expect(asset.originalResource?.digest == digests[name])
            let bytes = try await library.resource(asset: asset.id).readAll(limit: 1 << 20)
            #expect(SHA256.hash(data: bytes).hexadecimal == digests[name])
        }
        await library.close()
        await subscriber.close()
        #expect(services.stop() == [])
        #expect(result.kills > 2)
        try DatabaseCheck.expectIntact(services.folder.file("library/library.sqlite"))
        result.seconds = Date().timeIntervalSince(start)
        return result
    }

    /// Repeats a request while the error leaves its outcome unknown, and returns its result.
    private static func persist<Value: Sendable>(_ body: @Sendable () async throws -> Value) async throws -> Value {
        while true {
            do {
                return try await body()
            } catch let error as RPCError
                where [.connectionLost, .deadlineExceeded, .unavailable, .busy, .workerCrashed, .conflict].contains(
                    error.errorCode
                )
            {
                try await Task.sleep(for: .milliseconds(20))
            }
        }
    }
}
