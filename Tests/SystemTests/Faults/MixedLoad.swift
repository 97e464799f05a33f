import Basics
import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Clients of all kinds that use the four services at once, at a steady rate and with a library of a steady size, so
/// that any growth is that of the services.
struct MixedLoad: Sendable {
    let services: SafelightFixture
    /// The owner.
    let library: PhotoLibrary
    /// The folder of the keys of the client with limited access.
    let keys: String
    let seed: UInt64
    let end: ContinuousClock.Instant
    /// The imported assets, oldest first.
    let assets = AwaitableValue<[ObjectID]>([])
    /// The number of completed actions, and of refused ones with the error's name.
    let done = AwaitableValue<[String: Int]>([:])
    let problems = AwaitableValue<[String]>([])

    /// The number of assets between imports and deletions.
    static let assetCount = 120
    /// The variables and flags that limit the caches, so that they are full after the warm-up.
    static let environment = [
        "SAFELIGHT_RESULT_CACHE_BYTES": "1048576", "SAFELIGHT_PAGE_CACHE_BYTES": "4194304",
        "SAFELIGHT_COLLECT_AFTER_SECONDS": "5",
    ]
    static let arguments: [SafelightFixture.Service: [String]] = [
        .thumbnailer: ["--memory-mib", "4", "--cache-mib", "2"], .changeBroker: ["--ring-memory", "4"],
    ]

    /// The errors that a client may meet while a service or worker is killed, or another client deletes what it uses.
    private static let expected: Set<ErrorCode> = [
        .connectionLost, .unavailable, .deadlineExceeded, .interrupted, .workerCrashed, .identifierNotFound, .conflict,
        .handleExpired, .behind, .busy, .accessDenied,
    ]

    /// Runs one kind of action after the other until the end, with pauses of half to one and a half times `pace`.
    private func runLane(
        _ name: String,
        every pace: Duration,
        _ body: @Sendable (inout SeededRandom) async throws -> Void
    ) async {
        // FNV-1a of the name, so that lanes use independent numbers.
        var random = SeededRandom(
            seed: seed ^ name.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        )
        while ContinuousClock.now < end {
            do {
                try await body(&random)
                done.withLock { $0[name, default: 0] += 1 }
            } catch let error as RPCError where error.errorCode.map(Self.expected.contains) == true {
                done.withLock { $0["\(name): \(error.name)", default: 0] += 1 }
            } catch {
                problems.withLock { $0.append("\(name): \(error)") }
            }
            try? await Task.sleep(for: pace * Double.random(in: 0.5...1.5, using: &random))
        }
    }

    /// Imports the first assets.
    func fill() async throws {
        var random = SeededRandom(seed: seed)
        while assets.current.count < Self.assetCount { try await importOne(&random) }
    }

    /// Runs all clients until the end.
    func run() async throws {
        let publisher = try EditPublisher(library: library, until: .applied, window: 50)
        let updates = publisher.updates
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await publisher.run() }
            group.addTask {
                for await status in updates {
                    done.withLock { $0["published \(status.edit.state.rawValue)", default: 0] += 1 }
                }
            }
            group.addTask {
                await withDiscardingTaskGroup { lanes in
                    lanes.addTask { await runLane("import", every: .milliseconds(600), importOne) }
                    lanes.addTask { await runLane("delete", every: .milliseconds(600), deleteOldest) }
                    for number in 0..<3 {
                        lanes.addTask { await runLane("change \(number)", every: .milliseconds(250), change) }
                        lanes.addTask { await runLane("live list \(number)", every: .milliseconds(100), followList) }
                        lanes.addTask { await runLane("image \(number)", every: .milliseconds(250), requestImage) }
                    }
                    lanes.addTask { await runLane("edit", every: .seconds(1), edit) }
                    lanes.addTask {
                        await runLane("publish", every: .seconds(2)) { random in
                            guard let asset = pick(&random) else { return }
                            try await publisher.publish(
                                PublishEdit(
                                    id: "edit-\(random.next())",
                                    asset: asset,
                                    adjustments: Self.adjustments(&random)
                                )
                            )
                        }
                    }
                    lanes.addTask { await runLane("limit", every: .seconds(2), changeGrantedAssets) }
                    lanes.addTask { await runLane("limited client", every: .milliseconds(200), runLimitedSession) }
                    lanes.addTask { await runLane("kill a worker", every: .seconds(8), killWorker) }
                }
                await publisher.finish()
            }
            try await group.waitForAll()
        }
    }

    private func pick(_ random: inout SeededRandom) -> ObjectID? {
        // Not the oldest ones, which are deleted next.
        let candidates = assets.current.dropFirst(10)
        return candidates.isEmpty ? nil : random.pick(Array(candidates))
    }

    // MARK: Changes

    private func importOne(_ random: inout SeededRandom) async throws {
        let day = Int.random(in: 1...28, using: &random)
        let bytes = TestImages.jpeg(
            width: 160,
            height: 120,
            date: "2024:05:\(String(format: "%02d", day)) 10:00:00",
            seed: random.next()
        )
        let result = try await library.perform(
            [.createAsset(.init(ref: "a", resources: [NewResource(source: .attachment(0))]))],
            attachments: [bytes],
            transaction: "import-\(random.next())"
        )
        if let id = result.id("a") { assets.withLock { $0.append(id) } }
    }

    private func deleteOldest(_ random: inout SeededRandom) async throws {
        let oldest = assets.withLock { $0.count > Self.assetCount ? $0.removeFirst() : nil }
        if let oldest { _ = try await library.perform([.deleteAssets(.init(ids: [oldest]))]) }
    }

    private func change(_ random: inout SeededRandom) async throws {
        guard let asset = pick(&random) else { return }
        var patch = AssetPatch(caption: .some("caption \(random.next())"))
        if random.one(in: 2) { patch.rating = Int.random(in: 0...5, using: &random) }
        if random.one(in: 2) { patch.isFavorite = Bool.random(using: &random) }
        _ = try await library.perform([.updateAsset(.init(id: .id(asset), set: patch))])
    }

    private static func adjustments(_ random: inout SeededRandom) -> AdjustmentList {
        AdjustmentList(operations: [.exposure(Double(Int.random(in: 1...9, using: &random)) / 10)])
    }

    private func edit(_ random: inout SeededRandom) async throws {
        guard let asset = pick(&random) else { return }
        if random.one(in: 4) {
            _ = try await library.editor.ask(RevertEdit(asset: asset, client: "mixed"))
        } else {
            let list = Self.adjustments(&random)
            _ = try await library.editor.ask(ApplyEdit(asset: asset, adjustments: list, client: "mixed"))
        }
    }

    // MARK: Reading

    private func requestImage(_ random: inout SeededRandom) async throws {
        guard let asset = pick(&random) else { return }
        let side = random.pick([32, 48, 64, 96, 120])
        let request = ImageRequest(
            asset: asset,
            targetSize: .size(width: side, height: side),
            resizeMode: random.pick([.fast, .exact]),
            deliveryMode: random.pick([.highQualityFormat, .opportunistic, .fastFormat])
        )
        let (_, bytes) = try await library.image(request)
        guard !bytes.isEmpty else { throw FixtureError(description: "an image without bytes") }
    }

    /// Follows an observed fetch for a few seconds and compares it with a fresh result at the same token.
    private func followList(_ random: inout SeededRandom) async throws {
        var fetch = FetchDescription(.assets)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: fetch.predicate = "isFavorite == TRUE"
        case 1: fetch.predicate = .string("rating >= \(Int.random(in: 1...4, using: &random))")
        default: fetch.limit = Int.random(in: 5...50, using: &random)
        }
        fetch.sort = [SortDescription(key: random.pick(["rating", "creationDate", "addedDate"]), ascending: false)]
        let (last, list) = (AwaitableValue<LiveListEvent?>(nil), fetch)
        let follower = Task {
            for try await event in library.live(list) { last.withLock { $0 = event } }
        }
        try? await Task.sleep(for: .seconds(Double.random(in: 1...4, using: &random)))
        follower.cancel()
        do { try await follower.value } catch is CancellationError {}
        guard let event = last.current else { return }
        let fresh = try await library.assets(fetch, token: event.token, count: 1000).assets.map(\.id)
        guard fresh == event.ids else {
            throw FixtureError(description: "the live list at \(event.token) is not \(fresh.count) assets")
        }
    }

    // MARK: Limited access

    /// Selects other assets for the limited client, as the owner.
    private func changeGrantedAssets(_ random: inout SeededRandom) async throws {
        let selected = Set((0..<20).compactMap { _ in pick(&random) })
        _ = try await library.catalog.ask(LimitGrant(identity: "key:viewer", assets: Array(selected)))
    }

    /// Connects with a key, updates a view by the records of the feed, and compares it with a fresh one.
    private func runLimitedSession(_ random: inout SeededRandom) async throws {
        let (catalog, broker) = (
            NetworkFixture.addresses(.catalog, services), NetworkFixture.addresses(.changeBroker, services)
        )
        let thumbnailer = NetworkFixture.addresses(.thumbnailer, services)
        // A broker that was just started has not logged both of its addresses yet.
        guard catalog.count == 1, thumbnailer.count == 1, broker.count == 2 else { return }
        let viewer = try NetworkFixture.library(variables: [
            "SAFELIGHT_CATALOG": catalog[0], "SAFELIGHT_BROKER": broker[0], "SAFELIGHT_FEED": broker[1],
            "SAFELIGHT_THUMBNAILER": thumbnailer[0], "SAFELIGHT_HOST": "127.0.0.1:1",
            "SAFELIGHT_SERVER_KEY": keys + "/server.key", "SAFELIGHT_CLIENT_KEY": keys + "/viewer.key_secret",
        ])
        let outcome: Result<Void, any Error>
        do { outcome = .success(try await compareView(viewer, &random)) } catch { outcome = .failure(error) }
        await viewer.close()
        try outcome.get()
    }

    private func compareView(_ viewer: PhotoLibrary, _ random: inout SeededRandom) async throws {
        let allAssets = FetchDescription(.assets)
        let first = try await viewer.assets(allAssets, count: 500, deadline: .seconds(5))
        let observed = try await viewer.changeBroker.ask(FetchObserve(fetch: allAssets, token: first.token)).result
        var (model, token) = (Dictionary(uniqueKeysWithValues: first.assets.map { ($0.id, $0) }), first.token)
        for _ in 0..<4 {
            try? await Task.sleep(for: .milliseconds(Int.random(in: 100...600, using: &random)))
            let page = try await viewer.changeBroker.ask(FeedSince(token: token, limit: 1000), deadline: .seconds(5))
                .result
            for record in try page.records.map({ try ChangeRecord(json: $0) }) {
                for change in record.assets { model[change.id] = change.after }
            }
            token = page.token
            _ = try await viewer.changeBroker.ask(
                FetchDetails(observation: observed.details.observation, token: first.token),
                deadline: .seconds(5)
            )
            if let asset = model.keys.randomElement(using: &random) {
                let image = ImageRequest(asset: asset, targetSize: .size(width: 40, height: 40))
                _ = try await viewer.image(image, deadline: .seconds(5))
            }
        }
        let fresh = try await viewer.assets(allAssets, token: token, count: 500, deadline: .seconds(5)).assets
        guard Dictionary(uniqueKeysWithValues: fresh.map { ($0.id, $0) }) == model else {
            throw FixtureError(description: "the limited view at \(token) is not the one carried forward")
        }
        if random.one(in: 2) {
            _ = try await viewer.changeBroker.ask(FetchUnobserve(observation: observed.details.observation))
        }
    }

    // MARK: Kills

    /// Kills a worker of the thumbnailer, the editor or the catalog; another one repeats its job.
    private func killWorker(_ random: inout SeededRandom) async throws {
        guard let program = services.program(random.pick([.thumbnailer, .editor, .catalog])),
            let worker = ProcessStatus.children(of: program.processIdentifier).randomElement(using: &random)
        else { return }
        kill(worker, SIGKILL)
    }
}
