import Contracts
import Basics
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Edits of every kind from four scripts, while the editor and its workers are killed.
///
/// Eighty edits of twelve assets in the short form; `SAFELIGHT_SOAK=13` and more is the long one: 1,000 edits of fifty
/// assets. The seed is printed, and `SAFELIGHT_SEED` repeats a run.
@Suite(.serialized, .timeLimit(.minutes(20)))
struct MixedEditsTests {
    private static let scripts = 4
    private static let count = min(1000, TestEnvironment.rounds(80))
    private static let assetCount = min(50, TestEnvironment.rounds(12))

    private enum Step: Sendable {
        case apply(ObjectID, AdjustmentList, AdjustmentMode)
        case publish(ObjectID, AdjustmentList, AdjustmentMode, after: String?)
        case copy(from: ObjectID, to: ObjectID, geometry: Bool)
        case revert(ObjectID)
    }

    private struct Plan: Sendable {
        var name: String
        var step: Step
    }

    /// The outcome of a step, as its script received it.
    private enum Answer: Sendable, Equatable {
        case done(isChanged: Bool)
        case refused(String)
    }

    @Test(.spec("S-85", "S-91", "S-92"))
    func `mixed edits of four scripts form a sequence that can be replayed, whichever process is killed`() async throws
    {
        var random = SeededRandom(named: "mixed edits")
        let services = try SafelightFixture("mixed")
        try services.start([.catalog, .changeBroker, .editor])
        let library = try services.library()
        let (assets, originals) = try await TestImages.importImages(Self.assetCount, into: library) { index in
            TestImages.jpeg(
                width: 96,
                height: 64,
                orientation: 1 + index % 8,
                date: "2024:06:01 12:30:00",
                seed: random.next()
            )
        }
        let beginning = try await library.currentToken().token
        let plans = Self.plans(assets, &random)
        let start = Date()

        let answers = AwaitableValue<[String: Answer]>([:])
        let clients = try (0..<Self.scripts).map { try services.library("script-\($0)") }
        let isDone = AwaitableValue(false)
        let work = Task {
            defer { isDone.withLock { $0 = true } }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (client, plans) in zip(clients, plans) {
                    group.addTask { try await Self.run(plans, client, answers) }
                }
                try await group.waitForAll()
            }
        }
        var kills = (editor: 0, workers: 0)
        while !isDone.current {
            try await Task.sleep(for: .milliseconds(Int.random(in: 20...200, using: &random)))
            if random.one(in: 3) {
                try services.restart(.editor)
                kills.editor += 1
            } else if let worker = Self.workers(of: services).randomElement(using: &random) {
                kill(worker, SIGKILL)
                kills.workers += 1
            }
        }
        try await work.value
        let seconds = Date().timeIntervalSince(start)
        for client in clients { await client.close() }

        let reported = answers.current
        #expect(reported.count == Self.count)
        let lists = try await Self.replay(plans.joined().map { $0 }, reported, after: beginning, assets, library)
        var shown = 0
        let fresh = try SafelightFixture("fresh")
        try fresh.start([.catalog, .editor])
        let other = try fresh.library()
        for id in assets {
            let original = try #require(originals[id])
            #expect(try await Self.digest(library.resource(asset: id).readAll(limit: 1 << 20)) == Self.digest(original))
            guard let list = lists[id] ?? nil else { continue }
            shown += 1
            let render = try await library.resource(asset: id, type: .fullSizePhoto).readAll(limit: 1 << 20)
            let result = try await other.perform(
                [.createAsset(.init(ref: "a", resources: [NewResource(source: .attachment(0))]))],
                attachments: [original]
            )
            let copy = try #require(result.id("a"))
            _ = try await other.editor.ask(ApplyEdit(asset: copy, adjustments: list))
            let again = try await other.resource(asset: copy, type: .fullSizePhoto).readAll(limit: 1 << 20)
            #expect(render == again, "\(id) shows another image than its operation list renders")
        }
        let refused = reported.values.filter { if case .refused = $0 { true } else { false } }
        TestPaths.report(
            "\(reported.count) edits of \(assets.count) assets by \(Self.scripts) scripts, \(refused.count) refused; "
                + "kills: \(kills.editor) of the editor, \(kills.workers) of workers; \(shown) renders equal fresh; "
                + "\(String(format: "%.1f", seconds)) s"
        )
        await other.close()
        await library.close()
        #expect(fresh.stop() == [])
        #expect(services.stop() == [])
    }

    // MARK: - Scripts

    private static func plans(_ assets: [ObjectID], _ random: inout SeededRandom) -> [[Plan]] {
        (0..<scripts).map { script in
            var published: [ObjectID: String] = [:]
            return (0..<count / scripts).map { index in
                let name = "s\(script)-\(index)"
                let asset = random.pick(assets)
                let mode: AdjustmentMode = random.one(in: 4) ? .append : .replace
                switch Int.random(in: 0..<10, using: &random) {
                case 0..<4: return Plan(name: name, step: .apply(asset, list(&random), mode))
                case 4..<7:
                    defer { published[asset] = name }
                    return Plan(name: name, step: .publish(asset, list(&random), mode, after: published[asset]))
                case 7..<9:
                    let from = random.pick(assets.filter { $0 != asset })
                    return Plan(name: name, step: .copy(from: from, to: asset, geometry: random.one(in: 2)))
                default: return Plan(name: name, step: .revert(asset))
                }
            }
        }
    }

    private static func list(_ random: inout SeededRandom) -> AdjustmentList {
        func number() -> Double { Double(Int.random(in: -9...9, using: &random)) / 10 + 0.05 }
        let operations = (0..<Int.random(in: 1...3, using: &random)).map { _ -> Adjustment in
            switch Int.random(in: 0..<9, using: &random) {
            case 0: .exposure(number())
            case 1: .contrast(number())
            case 2: .saturation(number())
            case 3: .temperature(number())
            case 4: .sepia(abs(number()))
            case 5: .rotate(.quarter)
            case 6: .flip(.horizontal)
            case 7: .straighten(10 * number())
            default: .crop(UnitRect(x: 0.125, y: 0.25, width: 0.75, height: 0.625))
            }
        }
        return AdjustmentList(operations: operations)
    }

    private static func run(_ plans: [Plan], _ library: PhotoLibrary, _ answers: AwaitableValue<[String: Answer]>)
        async throws
    {
        let publisher = try EditPublisher(library: library)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await publisher.run() }
            group.addTask {
                for await status in publisher.updates where status.edit.state != .accepted {
                    let isApplied = status.edit.state == .applied
                    answers.withLock {
                        $0[status.edit.id] = isApplied ? .done(isChanged: true) : .refused(status.edit.errorName ?? "")
                    }
                }
            }
            for plan in plans {
                if case .publish(let asset, let list, let mode, let after) = plan.step {
                    try await publisher.publish(
                        PublishEdit(id: plan.name, asset: asset, adjustments: list, after: after, mode: mode)
                    )
                    continue
                }
                let answer = try await persist(library) { () async throws(RPCError) in
                    try await ask(plan, library)
                }
                answers.withLock { $0[plan.name] = answer }
            }
            await publisher.finish()
            try await group.waitForAll()
        }
    }

    private static func ask(_ plan: Plan, _ library: PhotoLibrary) async throws(RPCError) -> Answer {
        let client = library.client
        switch plan.step {
        case .apply(let asset, let list, let mode):
            let edit = ApplyEdit(asset: asset, adjustments: list, mode: mode, client: client, transaction: plan.name)
            return .done(isChanged: try await library.editor.ask(edit).result.isChanged)
        case .revert(let asset):
            let revert = RevertEdit(asset: asset, client: client, transaction: plan.name)
            return .done(isChanged: try await library.editor.ask(revert).result.isChanged)
        case .copy(let from, let to, let geometry):
            let copy = CopyEdits(
                from: from,
                to: [to],
                includesGeometry: geometry,
                client: client,
                transaction: plan.name
            )
            let result = try await library.editor.ask(copy).result
            if let name = result.results.first?["error"]?["name"]?.stringValue, let refusal = ErrorCode(rawValue: name)
            {
                throw refusal.error("\(result.results)")
            }
            return .done(isChanged: result.isChanged)
        case .publish: return .refused("not asked")
        }
    }

    /// Repeats a request while its outcome is unknown; any other error is the outcome.
    private static func persist(
        _ library: PhotoLibrary,
        _ body: () async throws(RPCError) -> Answer
    ) async throws -> Answer {
        while true {
            do throws(RPCError) {
                return try await body()
            } catch {
                switch error.errorCode {
                case .connectionLost, .deadlineExceeded, .unavailable, .busy, .workerCrashed, .conflict:
                    try await Task.sleep(for: .milliseconds(20))
                // The workers died by the test's kills, not because of the bytes.
                case .quarantined: _ = try await library.catalog.ask(LiftQuarantine(digest: nil))
                default: return .refused(error.name)
                }
            }
        }
    }

    /// Returns the processes that the editor has started.
    private static func workers(of services: SafelightFixture) -> [Int32] {
        guard let editor = services.program(.editor), editor.isRunning else { return [] }
        return ProcessStatus.children(of: editor.processIdentifier)
    }

    // MARK: - Replaying

    /// Replays the plans without images, in the order of the feed.
    ///
    /// - Returns: the operation list that each asset ends with; nil if it has none
    private static func replay(
        _ plans: [Plan],
        _ answers: [String: Answer],
        after token: ChangeToken,
        _ assets: [ObjectID],
        _ library: PhotoLibrary
    ) async throws -> [ObjectID: AdjustmentList?] {
        let steps = Dictionary(uniqueKeysWithValues: plans.map { ($0.name, $0.step) })
        var adjustmentsBySequence: [Int64: JSON] = [:]
        for id in assets {
            let history = try await library.editor.ask(EditHistory(asset: id)).result
            #expect(history.isComplete)
            for step in history.steps where step.kind == .edit {
                if let list = step.adjustments { adjustmentsBySequence[step.sequence] = list }
            }
        }
        var state: [ObjectID: AdjustmentList?] = [:]
        var earlierLists: [ObjectID: [AdjustmentList]] = [:]
        var stored: [ObjectID: Asset] = [:]
        var changes: [String: Int] = [:]
        for record in try await library.history(after: token) {
            for change in record.assets {
                if let before = stored[change.id] { #expect(change.before == before, "#\(record.sequence)") }
                stored[change.id] = change.after
                let published = record.edits.first { $0.state == .applied }?.id
                let transaction = record.origin.transaction?.split(separator: ".").first.map(String.init)
                let name = published ?? transaction ?? ""
                changes[name, default: 0] += 1
                let step = try #require(steps[name], "#\(record.sequence) belongs to no script's step")
                let list = try adjustmentsBySequence[record.sequence].map { try AdjustmentList(json: $0) }
                switch step {
                case .apply(let asset, let requested, let mode), .publish(let asset, let requested, let mode, _):
                    #expect(asset == change.id)
                    let current = mode == .append ? (state[asset] ?? nil)?.operations ?? [] : []
                    #expect(list?.operations == current + requested.operations, "\(name) #\(record.sequence)")
                case .copy(let from, let to, let geometry):
                    #expect(to == change.id)
                    // The copied list is one that the source asset had at some earlier time.
                    let possible = (earlierLists[from] ?? []).map { list in
                        geometry ? list.operations : list.operations.filter { !$0.kind.isGeometric }
                    }
                    #expect(possible.contains(list?.operations ?? []), "\(name) #\(record.sequence)")
                case .revert(let asset):
                    #expect(asset == change.id && list == nil && change.after?.hasAdjustments == false)
                }
                state[change.id] = .some(list)
                if let list { earlierLists[change.id, default: []].append(list) }
            }
        }
        for (name, answer) in answers {
            #expect(changes[name] ?? 0 == (answer == .done(isChanged: true) ? 1 : 0), "\(name): \(answer)")
        }
        for id in assets {
            let asset = try await library.asset(id)
            if let replayed = stored[id] { #expect(asset == replayed) }
            let list = state[id] ?? nil
            #expect(asset.hasAdjustments == (list != nil))
            guard let list else {
                #expect(asset.resources.map(\.type) == [.photo])
                continue
            }
            let data = try await library.resource(asset: id, type: .adjustmentData).readAll(limit: 1 << 20)
            #expect(data == list.json.bytes)
        }
        return state
    }

    private static func digest(_ bytes: Bytes) -> String {
        SHA256.hash(data: bytes).hexadecimal
    }
}
