import Messaging
import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Many clients at once: each request gets exactly one response, and the thumbnailer neither grows nor leaks.
///
/// The short form has ten clients for three seconds; `SAFELIGHT_SOAK=50` has a hundred, each with ten open requests,
/// for two minutes.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct ImageLoadTests {
    /// The memory (PSS, in bytes) of a process with its workers, and the number of its own descriptors.
    private struct Usage {
        var bytes = 0
        var descriptors = 0

        init(_ process: Int32) {
            descriptors = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/fd").count) ?? 0
            let processes = [process] + ProcessStatus.children(of: process)
            bytes = processes.reduce(0) { $0 + ProcessStatus.proportional(of: $1) << 10 }
        }
    }

    @Test(.spec("P-25", "S-50", "D3", "P-26"))
    func `a thousand requests at a time get one response each, none degraded after it, in bounded memory`() async throws
    {
        let python = try Needed.python()
        let isLong = TestEnvironment.rounds(1) >= 50
        let services = try SafelightFixture("load")
        try services.start()
        let library = try services.library("load-test")
        let (good, broken) = try await importPhotos(services, library)
        let process = try #require(services.program(.thumbnailer)).processIdentifier
        for id in good {
            _ = try await library.image(
                ImageRequest(asset: id, targetSize: .size(width: 40, height: 40), resizeMode: .exact)
            )
        }
        let before = Usage(process)
        let input: JSON = [
            "endpoint": .string(library.thumbnailer.address.description), "good": .array(good.map { .string($0.text) }),
            "broken": .string(broken.text), "unknown": .string(ObjectID.none.text), "clients": isLong ? 100 : 10,
            "outstanding": 10, "seconds": isLong ? 120 : 3,
        ]
        let program = try RunningProgram(python, ["-c", Self.script], input: Data(input.bytes))
        var largest = before
        while program.isRunning {
            try await Task.sleep(for: .milliseconds(500))
            let now = Usage(process)
            largest.bytes = max(largest.bytes, now.bytes)
            largest.descriptors = max(largest.descriptors, now.descriptors)
        }
        #expect(program.wait(seconds: 5) == 0, "\(program.errorText)")
        let reported = try JSON(parsing: Array(program.outputText.utf8))
        TestPaths.report(
            "load: \(program.outputText.trimmingCharacters(in: .whitespacesAndNewlines)); PSS of service and workers "
                + "\(before.bytes >> 20) MiB before, \(largest.bytes >> 20) MiB at most"
        )
        #expect(reported["problems"]?.arrayValue == [])
        #expect(reported["asked"] == reported["answered"])
        for outcome in ["image", "user_cancelled", "identifier_not_found", "resource_changed"] {
            #expect(reported["outcomes"]?[outcome]?.intValue ?? 0 > 0, "\(outcome)")
        }
        // The bound covers the memory cache, responses waiting to be sent, and the workers' own memory.
        #expect(largest.bytes < before.bytes + 700 << 20)
        var after = Usage(process)
        for _ in 0..<100 where after.descriptors > before.descriptors + 4 {
            try await Task.sleep(for: .milliseconds(100))
            after = Usage(process)
        }
        #expect(after.descriptors <= before.descriptors + 4, "\(before.descriptors) before, \(after.descriptors) after")
        let metrics = try await library.thumbnailer.metrics()
        #expect(metrics["cache"]?["underWay"] == 0 && metrics["workers"]?["queued"] == 0)
        #expect(metrics["workers"]?["crashed"] == 0)
        await library.close()
        #expect(services.stop() == [])
    }

    /// Imports valid photos, and one whose stored bytes are then damaged.
    private func importPhotos(_ services: SafelightFixture, _ library: PhotoLibrary) async throws -> (
        [ObjectID], ObjectID
    ) {
        var ids: [ObjectID] = []
        for seed in 0..<9 {
            let bytes = TestImages.jpeg(width: 480, height: 320, seed: UInt64(seed))
            let path = try services.folder.write(bytes, to: "photos/\(seed).jpg")
            let result = try await library.perform(
                [.createAsset(.init(ref: "a", resources: [NewResource(source: .path(path))]))],
                transaction: "photo-\(seed)"
            )
            ids.append(try #require(result.id("a")))
        }
        var fetch = FetchDescription(.assets)
        fetch.ids = [ids[8]]
        let asset = try #require(try await library.assets(fetch, count: 1).assets.first)
        let digest = try #require(asset.resources.first?.digest)
        let store = services.folder.file("library")
        let name = try #require(
            FileManager.default.subpaths(atPath: store)?.first { ($0 as NSString).lastPathComponent.contains(digest) }
        )
        chmod("\(store)/\(name)", 0o600)
        try Data(TestImages.jpeg(width: 480, height: 320, seed: 99)).write(
            to: URL(fileURLWithPath: "\(store)/\(name)")
        )
        return (Array(ids.prefix(8)), ids[8])
    }

    /// Opens a socket for each client, and counts every message of every request until no more arrive.
    private static let script = """
        import json, random, sys, time, zmq
        given = json.load(sys.stdin)
        context = zmq.Context()
        context.set(zmq.MAX_SOCKETS, 2000)
        poller = zmq.Poller()
        choose = random.Random(6)
        asked = answered = degraded = bytes_in = 0
        outcomes, problems, times = {}, [], []
        sockets = {}
        for _ in range(given["clients"]):
            socket = context.socket(zmq.DEALER)
            socket.setsockopt(zmq.LINGER, 0)
            socket.connect(given["endpoint"])
            poller.register(socket, zmq.POLLIN)
            sockets[socket] = {"next": 0, "open": {}, "done": set(), "cancels": []}

        def send(socket, message):
            socket.send(json.dumps(dict({"jsonrpc": "2.0"}, **message)).encode())

        def ask(socket):
            global asked
            state = sockets[socket]
            state["next"] += 1
            number = state["next"]
            kind = choose.random()
            asset = choose.choice(given["good"])
            side = choose.choice([40, 64, 128, 256])
            if kind < 0.08: asset = given["broken"]
            elif kind < 0.10: asset = given["unknown"]
            elif kind < 0.45: side = choose.randint(20, 1200)
            params = {"asset": asset, "targetSize": {"width": side, "height": side}, "resizeMode": "exact",
                      "deliveryMode": choose.choice(["opportunistic", "highQualityFormat", "fastFormat"])}
            send(socket, {"id": number, "method": "image.request", "params": params})
            if 0.35 < kind < 0.47:
                state["cancels"].append((time.monotonic() + choose.random() * 0.3, number))
            state["open"][number] = time.monotonic()
            asked += 1

        def take(socket, frames, is_over):
            global answered, degraded, bytes_in
            state = sockets[socket]
            message = json.loads(frames[0])
            bytes_in += sum(map(len, frames[1:]))
            if "method" in message:
                number = message["params"]["id"]
                if number not in state["open"]: problems.append("degraded after the response")
                degraded += 1
                return
            number = message["id"]
            sent = state["open"].pop(number, None)
            if sent is None:
                problems.append("second response" if number in state["done"] else "response to no request")
                return
            times.append(time.monotonic() - sent)
            state["done"].add(number)
            answered += 1
            name = "image" if "result" in message else message["error"]["data"]["name"]
            outcomes[name] = outcomes.get(name, 0) + 1
            if name == "image" and message["result"]["size"] != sum(map(len, frames[1:])):
                problems.append("bytes are missing")
            if not is_over: ask(socket)

        for socket in sockets:
            for _ in range(given["outstanding"]): ask(socket)
        end = time.monotonic() + given["seconds"]
        quiet = None
        while True:
            now = time.monotonic()
            ready = poller.poll(50)
            for socket, _ in ready:
                for _ in range(20):
                    try: frames = socket.recv_multipart(zmq.NOBLOCK)
                    except zmq.Again: break
                    take(socket, frames, now > end)
            for socket, state in sockets.items():
                while state["cancels"] and state["cancels"][0][0] < now:
                    _, number = state["cancels"].pop(0)
                    if number in state["open"]: send(socket, {"method": "rpc.cancel", "params": {"id": number}})
            if now > end and all(not state["open"] for state in sockets.values()):
                # A message that arrives from now on is one too many.
                quiet = quiet or now
                if now - quiet > 1: break
            if now > end + 60:
                problems.append("%d without a response" % sum(len(s["open"]) for s in sockets.values()))
                break
        times.sort()
        print(json.dumps({"asked": asked, "answered": answered, "degraded": degraded, "outcomes": outcomes,
                          "problems": sorted(set(problems)), "mebibytes": bytes_in >> 20,
                          "medianMs": round(1000 * times[len(times) // 2]),
                          "p99Ms": round(1000 * times[len(times) * 99 // 100])}))
        """
}
