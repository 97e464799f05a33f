import Foundation
import JSONValue
import TestSupport
import Testing

/// A script of plain pyzmq with keys, against the real executables over CURVE. Each part of it checks one point and
/// reports its name, in order.
struct GrantScript {
    let network: NetworkFixture

    /// Starts the services, with some variables in addition.
    init(environment: [String: String] = [:]) throws {
        network = try NetworkFixture(withEditor: true, withThumbnailer: true, environment: environment)
        for seed in 1...6 {
            let image = TestImages.jpeg(width: 64, height: 48, seed: UInt64(seed))
            try network.services.folder.write(image, to: "\(seed).jpg")
        }
        try network.services.folder.write(TestRaw.dng(width: 120, height: 80), to: "pair.dng")
    }

    /// Creates the keys of a client with `safelight keys create`.
    func createKeys(_ name: String, _ options: String...) throws {
        let creation = try network.services.safelight(["keys", "create", name] + options)
        try #require(creation.status == 0, "\(creation.errors)")
    }

    /// Runs the functions `parts` of a script and stops the services.
    ///
    /// - Parameter seconds: the time limit of the script
    func run(_ script: String, parts: [String], seconds: Double = 200) throws {
        let python = try Needed.python("zmq.auth")
        var environment = network.services.environment
        environment["FILES"] = network.services.folder.path
        environment["KEYS"] = network.keys.file("keys/made")
        environment["CATALOG"] = network.catalog
        environment["THUMBNAILER"] = network.thumbnailer
        environment["EDITOR"] = network.editor[0]
        environment["EDITS"] = network.editor[1]
        environment["BROKER"] = network.broker[0]
        environment["FEED"] = network.broker[1]
        let text = Self.prelude + script + "\nparts = [\(parts.joined(separator: ", "))]\n" + Self.ending
        let run = try RunningProgram(python, ["-c", text], environment: environment)
        let end = Date() + seconds
        while !run.wait(seconds: 0.05, until: { !$0.isRunning }), Date() < end { try restartRequestedService() }
        // Ends a script that hangs.
        let status = run.wait(seconds: 1)
        let (output, errors) = (run.outputText, run.errorText)
        #expect(status == 0, "\(errors)\n\(network.services.logs)")
        let lines = try output.split(separator: "\n").map { try JSON(parsing: String($0)) }
        #expect(lines.compactMap { $0["part"]?.stringValue } == parts, "\(output)\n\(errors)")
        for line in lines {
            #expect(line["problem"] == nil, "\(line["part"]?.text ?? ""): \(line["problem"]?.stringValue ?? "")")
            if let note = line["note"]?.stringValue { TestPaths.report(note) }
        }
        #expect(network.services.stop() == [])
    }

    /// Kills and restarts the service that the script names in the file `kill`, and answers with its new address.
    private func restartRequestedService() throws {
        let folder = network.services.folder
        guard let name = try? String(contentsOfFile: folder.file("kill"), encoding: .utf8), name.hasSuffix("\n"),
            let service = SafelightFixture.Service(rawValue: String(name.dropLast()))
        else { return }
        try FileManager.default.removeItem(atPath: folder.file("kill"))
        try network.services.restart(service)
        let address = /tcp:\/\/127\.0\.0\.1:[0-9]+/
        func readAddresses() -> [String] {
            network.services.program(service)?.errorText.matches(of: address).map { String($0.output) } ?? []
        }
        // The second address of the editor receives published edits; that of the broker is its feed.
        let count = service == .editor || service == .changeBroker ? 2 : 1
        _ = network.services.program(service)?.wait { _ in readAddresses().count >= count }
        try folder.write(Data("\(readAddresses().prefix(count).joined(separator: " "))\n".utf8), to: "killed")
    }

    private static let prelude = #"""
        import json, os, threading, time, traceback, zmq, zmq.auth

        context = zmq.Context.instance()
        addresses = {name: os.environ[name.upper()] for name in ("catalog", "thumbnailer", "editor", "broker")}
        local = {"catalog": "catalog", "thumbnailer": "thumbnailer", "editor": "editor", "broker": "change-broker"}
        SERVICES = list(addresses)


        class Refused(Exception):
            def __init__(self, error):
                super().__init__(error["data"]["name"])
                self.code, self.name, self.data = error["code"], error["data"]["name"], error["data"]


        def secure(socket, name):
            folder = f"{os.environ['KEYS']}/{name}"
            socket.curve_serverkey, _ = zmq.auth.load_certificate(f"{folder}/server.key")
            socket.curve_publickey, socket.curve_secretkey = zmq.auth.load_certificate(f"{folder}/{name}.key_secret")


        def connect(name, service, kind=zmq.DEALER):
            socket = context.socket(kind)
            socket.linger, socket.rcvtimeo = 0, 30000
            if name is None:
                socket.connect(f"ipc://{os.environ['SAFELIGHT_RUN']}/{local[service]}.sock")
            else:
                secure(socket, name)
                socket.connect(addresses[service])
            return socket


        class Client:
            """A client with a key, or the owner on this machine without a name."""

            def __init__(self, name=None):
                self.name, self.sockets, self.last = name, {}, 0

            def send(self, service, method, attachments=(), **params):
                if service not in self.sockets:
                    self.sockets[service] = connect(self.name, service)
                self.last += 1
                request = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}
                self.sockets[service].send_multipart([json.dumps(request).encode(), *attachments])
                return self.last

            def receive(self, service, seconds=30):
                socket = self.sockets[service]
                if not socket.poll(int(seconds * 1000)):
                    return None
                return json.loads(socket.recv_multipart()[0])

            def call(self, service, method, attachments=(), **params):
                id = self.send(service, method, attachments, **params)
                while True:
                    reply = self.receive(service)
                    assert reply, f"{method}: no reply"
                    if reply.get("id") != id or "method" in reply:
                        continue
                    if "error" in reply:
                        raise Refused(reply["error"])
                    return reply["result"]

            def refusal(self, *arguments, **params):
                try:
                    self.call(*arguments, **params)
                except Refused as error:
                    return error.name

            def perform(self, *requests, attachments=(), **params):
                return self.call("catalog", "changes.perform", attachments, requests=list(requests), **params)

            def open(self, purpose="tests", **params):
                return self.call("catalog", "session.open", client="script", purpose=purpose, **params)

            def in_background(self, function, *arguments, **params):
                """Calls a method of this client in a thread; returns a function that waits for its outcome."""
                outcome = []

                def run():
                    try:
                        outcome.append(function(*arguments, **params))
                    except Refused as error:
                        outcome.append(error)

                thread = threading.Thread(target=run)
                thread.start()

                def wait():
                    thread.join(40)
                    return outcome[0]

                return wait


        owner = Client()


        def file(name):
            with open(f"{os.environ['FILES']}/{name}", "rb") as opened:
                return opened.read()


        def create(name, ref="a", **more):
            return {"type": "asset.create", "ref": ref, "resources": [{"attachment": 0}], **more}


        def assets(client=owner, **fetch):
            return client.call("catalog", "fetch.assets", fetch={"kind": "assets", **fetch})["assets"]


        def equal(actual, expected):
            assert actual == expected, f"{actual} is not {expected}"


        def kill(service, *clients):
            """Kills a service and waits until it runs again; clients connect to its new address."""
            folder = os.environ["FILES"]
            with open(f"{folder}/kill", "w") as file:
                file.write(f"{local[service]}\n")
            while True:
                try:
                    with open(f"{folder}/killed") as file:
                        address = file.read()
                    if address.endswith("\n"):
                        break
                except FileNotFoundError:
                    pass
                time.sleep(0.02)
            os.remove(f"{folder}/killed")
            addresses[service], *more = address.split()
            for name in {"editor": ["EDITS"], "broker": ["FEED"]}.get(service, []):
                os.environ[name] = more.pop(0)
            for client in clients:
                if service in client.sockets:
                    client.sockets.pop(service).close()


        def pending(seconds=15):
            """Waits until something waits for the owner."""
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                answer = owner.call("catalog", "grants.pending")
                if answer["grants"] or answer["questions"]:
                    return answer
                time.sleep(0.02)
            raise AssertionError("nothing waits for the owner")


        def decide(method, **params):
            return owner.call("catalog", f"grants.{method}", **params)

        """#

    private static let ending = #"""
        for part in parts:
            line = {"part": part.__name__}
            try:
                note = part()
                if note:
                    line["note"] = note
            except Exception:
                line["problem"] = traceback.format_exc()
            print(json.dumps(line), flush=True)
        os._exit(0)
        """#
}
