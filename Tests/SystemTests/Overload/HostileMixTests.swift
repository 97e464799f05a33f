import Messaging
import Contracts
import Foundation
import Hosting
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// A hostile client that runs every attack at once beside ten honest clients, which are plain pyzmq scripts.
///
/// Eight seconds in the short form; `SAFELIGHT_FUZZ_SECONDS=120` is the long one. `SAFELIGHT_ATTACKS` selects some of
/// the attacks. The limit of one second is for a release build; see ``TestPaths/bound(_:)``.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct HostileMixTests {
    private static let seconds = ProcessInfo.processInfo.environment["SAFELIGHT_FUZZ_SECONDS"].flatMap(Double.init) ?? 8
    private static let honest = 10

    /// The report of the honest clients, by kind of request.
    private struct Answers {
        var slowest: [String: Duration] = [:]
        var counts: [String: Int64] = [:]
        /// Errors and missing responses.
        var problems: [String]

        init(_ json: JSON) {
            for (kind, figures) in json["kinds"]?.objectValue?.members ?? [] {
                slowest[kind] = .microseconds(figures["slowest"]?.intValue ?? .max)
                counts[kind] = figures["count"]?.intValue
            }
            problems = json["problems"]?.arrayValue?.compactMap { $0.stringValue } ?? []
        }

        var lines: [String] {
            slowest.keys.sorted().map { "\($0): \(counts[$0] ?? 0) responses, slowest after \(slowest[$0] ?? .zero)" }
                + problems
        }
    }

    @Test func `no honest client waits more than a second, and no service ends`() async throws {
        let python = try Needed.python()
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
        let assets = try await importPhotos(library)
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

        // In a process of their own, because the attacks use much of this one's time.
        let input: JSON = [
            "folder": .string(services.folder.file("run")), "clients": JSON(Self.honest),
            "seconds": JSON(Int(Self.seconds)), "assets": .array(assets.map { .string($0.text) }),
        ]
        let honest = try RunningProgram(python, ["-c", Self.script], input: Data(input.bytes))
        let end = Date().addingTimeInterval(Self.seconds)
        let sent = await withTaskGroup(of: (Attack, Int).self) { group in
            for attack in Attack.chosen {
                group.addTask { (attack, await attack.run(target, until: end)) }
            }
            return await group.reduce(into: [Attack: Int]()) { sent, entry in sent[entry.0] = entry.1 }
        }
        #expect(honest.wait(seconds: 60) == 0, "\(honest.errorText)")
        let result = try Answers(JSON(parsing: Array(honest.outputText.utf8)))
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
        #expect(result.slowest.count == 9)
        #expect(result.problems == [])
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

    private static func thumbnail(of asset: ObjectID) -> ImageRequest {
        ImageRequest(
            asset: asset,
            targetSize: .size(width: 64, height: 64),
            resizeMode: .exact,
            deliveryMode: .highQualityFormat
        )
    }

    /// Imports two hundred photos, renders their thumbnails, and returns their identifiers.
    private func importPhotos(_ library: PhotoLibrary) async throws -> [ObjectID] {
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
        let counts: [(SafelightFixture.Service, Int)] = [
            (.catalog, 1), (.thumbnailer, 1), (.editor, 2), (.changeBroker, 2),
        ]
        return counts.flatMap { service, count -> [UInt16] in
            let loggedPorts = { (program: RunningProgram) in
                program.errorText.matches(of: /tcp:\/\/127\.0\.0\.1:([0-9]+)/).compactMap { UInt16($0.1) }
            }
            guard let program = services.program(service) else { return [] }
            // The log and the readiness line arrive over two pipes, in no particular order.
            _ = program.wait { loggedPorts($0).count >= count }
            return Array(loggedPorts(program).prefix(count))
        }
    }

    private func pids(_ library: PhotoLibrary) async throws -> [Int64] {
        var pids: [Int64] = []
        for client in [library.catalog, library.thumbnailer, library.editor, library.changeBroker] {
            pids.append(try await client.metrics()["process"]?["pid"]?.intValue ?? 0)
        }
        return pids
    }

    /// Ten clients, each on a thread with sockets of its own; each sends one request after another.
    private static let script = """
        import json, sys, threading, time, zmq
        given = json.load(sys.stdin)
        context = zmq.Context()
        kinds, problems, lock = {}, [], threading.Lock()

        class Client:
            def __init__(self, number):
                self.number, self.last = number, 0
                self.sockets = {}
                for service in ["catalog", "thumbnailer", "editor", "change-broker"]:
                    self.sockets[service] = socket = context.socket(zmq.DEALER)
                    socket.setsockopt(zmq.LINGER, 0)
                    socket.connect("ipc://%s/%s.sock" % (given["folder"], service))

            def ask(self, kind, service, method, **params):
                self.last += 1
                message = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}
                socket, started = self.sockets[service], time.monotonic()
                socket.send_json(message)
                arrived = socket.poll(30000)
                elapsed = int((time.monotonic() - started) * 1e6)
                answer = socket.recv_multipart()[0] if arrived else b"no response"
                with lock:
                    figures = kinds.setdefault(kind, {"count": 0, "slowest": 0})
                    figures["count"] += 1
                    figures["slowest"] = max(figures["slowest"], elapsed)
                    # Parsing large responses here would delay the other threads.
                    if b'"result"' not in answer[:100]: problems.append("%s: %s" % (kind, answer[:300]))
                return answer

            def run(self):
                end, round = time.monotonic() + given["seconds"], 0
                while time.monotonic() < end:
                    asset = given["assets"][(self.number * 7 + round) % len(given["assets"])]
                    for service in self.sockets: self.ask("health of " + service, service, "health")
                    token = json.loads(self.ask("changes.token", "catalog", "changes.token"))["result"]["token"]
                    self.ask("fetch.assets", "catalog", "fetch.assets", fetch={}, count=20)
                    self.ask("thumbnail", "thumbnailer", "image.request", asset=asset, resizeMode="exact",
                             targetSize={"width": 64, "height": 64}, deliveryMode="highQualityFormat")
                    self.ask("feed.since", "change-broker", "feed.since", token=token, limit=10)
                    self.ask("favorite", "catalog", "changes.perform", client="honest-%d" % self.number, requests=[
                        {"type": "asset.update", "id": asset, "set": {"isFavorite": round % 2 == 0}}])
                    round += 1

        clients = [threading.Thread(target=Client(number).run) for number in range(given["clients"])]
        for client in clients: client.start()
        for client in clients: client.join()
        json.dump({"kinds": kinds, "problems": problems}, sys.stdout)
        """
}
