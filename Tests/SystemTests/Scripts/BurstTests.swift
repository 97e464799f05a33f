import Foundation
import JSONValue
import TestSupport
import Testing

/// A client with plain pyzmq that sends many requests at once, without limiting their number.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct BurstTests {
    @Test(.spec("P-25"))
    func `a thousand images requested at once on one socket are all delivered, and others are served meanwhile`() throws
    {
        let python = try Needed.python()
        let services = try SafelightFixture("burst")
        for number in 1...20 {
            try services.folder.write(
                TestImages.jpeg(width: 160, height: 120, date: "2024:05:01 12:00:00", seed: UInt64(number)),
                to: "photos/\(number).jpg"
            )
        }
        try services.start()
        try #require(try services.safelight(["import", services.folder.file("photos")]).status == 0)
        let path = try services.folder.write(Array(Self.script.utf8), to: "burst.py")
        let run = try RunningProgram.run(python, ["-B", "-u", path], environment: services.environment, seconds: 200)
        #expect(run.status == 0, "\(run.output.suffix(2000))\n\(run.errors.suffix(2000))\n\(services.logs)")
        TestPaths.report(run.output.split(separator: "\n").joined(separator: "; "))
        #expect(services.stop() == [])
    }

    private static let script = #"""
        import collections, json, os, time, zmq

        def connect(service):
            socket = zmq.Context.instance().socket(zmq.DEALER)
            socket.linger, socket.rcvtimeo = 0, 120_000
            socket.connect(f"ipc://{os.environ['SAFELIGHT_RUN']}/{service}.sock")
            return socket

        def send(socket, number, method, params):
            socket.send_json({"jsonrpc": "2.0", "id": number, "method": method, "params": params})

        catalog = connect("catalog")
        send(catalog, 0, "fetch.assets", {})
        assets = [asset["id"] for asset in json.loads(catalog.recv())["result"]["assets"]]
        assert len(assets) == 20

        # One thousand different images, all requested before the first is read.
        burst, other, started = connect("thumbnailer"), connect("thumbnailer"), time.monotonic()
        for number in range(1000):
            size = 20 + number // 20
            send(burst, number, "image.request", {"asset": assets[number % 20], "targetSize": {"width": size, "height": size},
                "deliveryMode": "highQualityFormat"})
        answers, slowest, done = collections.Counter(), 0, set()
        while len(done) < 1000:
            # Another client's requests are answered while the thousand wait.
            if len(done) % 100 == 0:
                asked = time.monotonic()
                send(other, len(done), "health", {})
                assert "result" in json.loads(other.recv_multipart()[0])
                slowest = max(slowest, time.monotonic() - asked)
            frames = burst.recv_multipart()
            reply = json.loads(frames[0])
            if "method" in reply: continue
            assert reply["id"] not in done, reply
            done.add(reply["id"])
            answers[reply["error"]["data"]["name"] if "error" in reply else "image"] += 1
            if "result" in reply: assert frames[1][:2] == b"\xff\xd8", reply
        print(dict(answers), f"{time.monotonic() - started:.1f} s, others waited at most {slowest:.2f} s")
        send(other, "f", "figures", {})
        figures = json.loads(other.recv())["result"]["requests"]
        print({name: figures.get(name) for name in ("waiting", "requestsWaited", "open")})
        assert answers == {"image": 1000}, answers
        assert figures["waiting"] == 0 and figures["requestsWaited"] > 0, figures

        # The same for a plain read of the catalog.
        for number in range(3000): send(catalog, number, "fetch.counts", {"fetches": [{}]})
        replies = [json.loads(catalog.recv()) for _ in range(3000)]
        assert all("result" in reply for reply in replies), [reply for reply in replies if "error" in reply][:3]
        """#
}
