import Contracts
import Foundation
import Hosting
import JSONValue
import Messaging
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// A hostile client that runs every attack at once beside ten honest clients.
///
/// Eight seconds in the short form; `SAFELIGHT_FUZZ_SECONDS=120` is the long one. `SAFELIGHT_ATTACKS` selects some of
/// the attacks. The limit of one second is for a release build; see ``TestPaths/bound(_:)``.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct HostileMixTests {
    private static let seconds = ProcessInfo.processInfo.environment["SAFELIGHT_FUZZ_SECONDS"].flatMap(Double.init) ?? 8
    private static let honest = 10

    /// The honest clients' response counts and slowest response times, by kind of request.
    private struct Answers: Sendable {
        var slowest: [String: Duration] = [:]
        var counts: [String: Int] = [:]
        var errors: [String: Int] = [:]

        var lines: [String] {
            slowest.keys.sorted().map { "\($0): \(counts[$0] ?? 0) responses, slowest after \(slowest[$0] ?? .zero)" }
                + errors.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value) times" }
        }
    }

    @Test func `no honest client waits more than a second, and no service ends`() async throws {
        let keys = try TemporaryFolder("mix-keys")
        let services = try SafelightFixture(
            "mix",
            environment: ["SAFELIGHT_LISTEN": "127.0.0.1:0", "SAFELIGHT_KEYS": keys.file("keys")]
        )
        #expect(try services.safelight(["keys", "server"]).status == 0)
        #expect(try services.safelight(["keys", "create", "eve", "--domain", "requests"]).status == 0)
        // Start before this process raises its own descriptor limit, so that the services have the limit that users
        // have.
        try services.start()
        _ = TestPaths.raiseDescriptors(to: 4096)
        let library = try services.library()
        let assets = try await pictures(library)
        let target = AttackTarget(
            services: services,
            ports: ports(services),
            keys: try Keys(
                server: Certificate(readingPublic: keys.file("keys/made/eve/server.key")).publicKey.text,
                pair: #require(KeyFolder.pair(keys.file("keys/made/eve/eve.key_secret")))
            ),
            assets: assets,
            token: try await library.currentToken().token.description,
            random: SeededRandom(named: "hostile mix")
        )
        #expect(target.ports.count == 6, "\(services.logs)")
        let before = try await pids(library)

        let answers = AwaitableValue(Answers())
        let begin = AwaitableValue(false)
        let end = Date().addingTimeInterval(Self.seconds)
        let sent = await withTaskGroup(of: (Attack, Int)?.self) { group in
            for number in 0..<Self.honest {
                group.addTask {
                    await honest(services, number, assets, begin, answers, end)
                    return nil
                }
            }
            for attack in Attack.chosen {
                group.addTask { (attack, await attack.run(target, until: end)) }
            }
            begin.withLock { $0 = true }
            return await group.reduce(into: [Attack: Int]()) { sent, one in
                if let (attack, count) = one { sent[attack] = count }
            }
        }
        let result = answers.current
        for line in result.lines { TestPaths.report(line) }
        for (attack, count) in sent.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            TestPaths.report("\(attack.rawValue): \(count) sent")
            #expect(count > 0, "\(attack.rawValue) did nothing")
        }
        for (kind, time) in result.slowest {
            // A change may wait for two commits of a thousand assets, each of 1.5 s in a debug build.
            let bound = TestPaths.bound(.seconds(1), debugFactor: kind == "favorite" ? 8 : 4)
            #expect(time < bound, "\(kind)")
        }
        #expect(result.errors.isEmpty)
        #expect(
            SafelightFixture.Service.allCases.allSatisfy { services.program($0)?.isRunning == true },
            "\(services.logs)"
        )
        let after = try? await pids(library)
        #expect(after == before, "the same processes are running")
        let quarantined = try? await library.catalog.ask(ListQuarantine()).result.count
        #expect(quarantined == 0, "no image was quarantined")
        await library.close()
        #expect(services.stop() == [])
    }

    /// Runs one honest client: it connects, then sends one request after another until the time is over.
    private func honest(
        _ services: SafelightFixture,
        _ number: Int,
        _ assets: [ObjectID],
        _ begin: AwaitableValue<Bool>,
        _ answers: AwaitableValue<Answers>,
        _ end: Date
    ) async {
        guard let library = try? services.library("honest-\(number)") else {
            answers.withLock { $0.errors["no connection", default: 0] += 1 }
            return
        }
        func timed(_ kind: String, _ ask: () async throws -> Void) async {
            let begun = ContinuousClock().now
            var problem: String?
            do { try await ask() } catch { problem = (error as? RPCError)?.errorCode?.rawValue ?? "\(error)" }
            let time = ContinuousClock().now - begun
            answers.withLock { answers in
                answers.slowest[kind] = max(answers.slowest[kind] ?? .zero, time)
                answers.counts[kind, default: 0] += 1
                if let problem { answers.errors["\(kind) \(problem)", default: 0] += 1 }
            }
        }
        var token: ChangeToken?
        var round = 0
        await begin.wait { $0 }
        while Date() < end {
            let asset = assets[(number * 7 + round) % assets.count]
            await timed("connect and health") {
                for client in [library.catalog, library.thumbnailer, library.editor, library.changeBroker] {
                    _ = try await client.health(deadline: .seconds(30))
                }
            }
            await timed("currentToken") { token = try await library.currentToken().token }
            await timed("fetch") {
                _ = try await library.assets(FetchDescription(.assets), count: 20)
            }
            await timed("thumbnail") {
                _ = try await library.thumbnailer.ask(Self.thumbnail(of: asset))
            }
            await timed("feed.since") {
                _ = try await library.changeBroker.ask(FeedSince(token: token, limit: 10))
            }
            await timed("favorite") {
                let change = ChangeRequest.updateAsset(
                    .init(id: .id(asset), set: AssetPatch(isFavorite: round % 2 == 0))
                )
                _ = try await library.catalog.ask(PerformChanges(requests: [change], client: "honest-\(number)"))
            }
            round += 1
        }
        await library.close()
    }

    private static func thumbnail(of asset: ObjectID) -> ImageRequest {
        ImageRequest(
            asset: asset,
            targetSize: .size(width: 64, height: 64),
            resizeMode: .exact,
            deliveryMode: .highQualityFormat
        )
    }

    /// Imports two hundred photos, renders their thumbnails, and returns their identifiers.
    private func pictures(_ library: PhotoLibrary) async throws -> [ObjectID] {
        var ids: [ObjectID] = []
        for start in stride(from: 0, to: 200, by: 50) {
            let result = try await library.perform(
                (0..<50).map { .createAsset(.init(ref: "p\($0)", resources: [NewResource(source: .attachment($0))])) },
                attachments: (0..<50).map { TestImages.jpeg(width: 160, height: 120, seed: UInt64(start + $0)) }
            )
            ids += try (0..<50).map { try #require(result.id("p\($0)")) }
        }
        for id in ids { _ = try await library.thumbnailer.ask(Self.thumbnail(of: id)) }
        return ids
    }

    private func ports(_ services: SafelightFixture) -> [UInt16] {
        let wanted: [(SafelightFixture.Service, Int)] = [
            (.catalog, 1), (.thumbnailer, 1), (.editor, 2), (.changeBroker, 2),
        ]
        return wanted.flatMap { service, count -> [UInt16] in
            let found = { (program: RunningProgram) in
                program.errorText.matches(of: /tcp:\/\/127\.0\.0\.1:([0-9]+)/).compactMap { UInt16($0.1) }
            }
            guard let program = services.program(service) else { return [] }
            // The log and the readiness line arrive over two pipes, in no particular order.
            _ = program.wait { found($0).count >= count }
            return Array(found(program).prefix(count))
        }
    }

    private func pids(_ library: PhotoLibrary) async throws -> [Int64] {
        var pids: [Int64] = []
        for client in [library.catalog, library.thumbnailer, library.editor, library.changeBroker] {
            pids.append(try await client.metrics()["process"]?["pid"]?.intValue ?? 0)
        }
        return pids
    }
}
