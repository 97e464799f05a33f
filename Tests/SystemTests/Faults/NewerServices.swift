import Foundation
import TestSupport
import Testing

/// A simulation of a future version of the services: a proxy that adds an unknown member to every object of replies,
/// notifications and feed messages, and sends notifications of an unknown method.
struct NewerServices {
    private let folder: TemporaryFolder
    private let program: RunningProgram
    /// The variables of a client that reaches the services through the proxy.
    let environment: [String: String]

    /// - Parameter addresses: the addresses of the real sockets by variable, for example `SAFELIGHT_CATALOG`
    init(_ addresses: [String: String]) throws {
        let folder = try TemporaryFolder("newer")
        var fronts: [String: String] = [:]
        var arguments: [String] = []
        for (variable, address) in addresses.sorted(by: { $0.key < $1.key }) {
            let front = "ipc://" + folder.file(variable.dropFirst("SAFELIGHT_".count).lowercased() + ".sock")
            fronts[variable] = front
            arguments += [variable == "SAFELIGHT_FEED" ? "feed" : "requests", front, address]
        }
        program = try RunningProgram(try Needed.python(), ["-u", "-c", Self.script] + arguments)
        guard program.waitForOutput("ready") else {
            throw FixtureError(description: "the proxy did not start: \(program.errorText)")
        }
        self.folder = folder
        environment = fronts
    }

    /// Ends the proxy. Returns the number of messages that it changed.
    func stop() -> Int {
        program.signal(SIGTERM)
        program.wait(seconds: 10)
        #expect(program.errorText == "")
        return program.outputText.split(separator: "\n").last.flatMap { Int($0) } ?? 0
    }

    private static let script = #"""
        import json, signal, sys, zmq

        # Objects whose members are names of the caller, and texts of adjustments, whose format has a version of
        # its own.
        MAPS = {"placeholders", "can", "mappings", "byMediaType", "failed", "adjustments", "figures"}
        FUTURE = {"version": 2, "list": [1, None, "x"]}
        context = zmq.Context.instance()
        changed = 0


        def newer(value, isMap=False):
            if isinstance(value, list):
                return [newer(item) for item in value]
            if not isinstance(value, dict):
                return value
            members = {name: newer(item, name in MAPS) for name, item in value.items()}
            return members if isMap else {"aFuture": FUTURE, **members, "zFuture": FUTURE}


        def rewritten(frame):
            global changed
            message = json.loads(frame)
            changed += 1
            for member in ("result", "error", "params"):
                if member in message:
                    message[member] = newer(message[member])
            return json.dumps(message).encode()


        class Requests:
            """Each client has a connection of its own to the service."""

            def __init__(self, front, back, poller):
                self.front, self.back, self.poller, self.clients = context.socket(zmq.ROUTER), back, poller, {}
                self.front.bind(front)
                poller.register(self.front, zmq.POLLIN)

            def ready(self, events):
                if self.front in events:
                    identity, *frames = self.front.recv_multipart()
                    if identity not in self.clients:
                        self.clients[identity] = context.socket(zmq.DEALER)
                        self.clients[identity].linger = 0
                        self.clients[identity].connect(self.back)
                        self.poller.register(self.clients[identity], zmq.POLLIN)
                    self.clients[identity].send_multipart(frames)
                for identity, socket in self.clients.items():
                    if socket in events:
                        first, *rest = socket.recv_multipart()
                        unknown = {"jsonrpc": "2.0", "method": "future.event", "params": {"id": 0, "state": "new"}}
                        self.front.send_multipart([identity, json.dumps(unknown).encode()])
                        self.front.send_multipart([identity, rewritten(first), *rest])


        class Feed:
            def __init__(self, front, back, poller):
                self.front, self.back = context.socket(zmq.XPUB), context.socket(zmq.XSUB)
                self.front.bind(front)
                self.back.connect(back)
                for socket in (self.front, self.back):
                    poller.register(socket, zmq.POLLIN)

            def ready(self, events):
                global changed
                if self.front in events:
                    self.back.send_multipart(self.front.recv_multipart())
                if self.back in events:
                    topic, body, *rest = self.back.recv_multipart()
                    changed += 1
                    self.front.send_multipart([topic, json.dumps(newer(json.loads(body))).encode(), *rest])


        def end(*_):
            print(changed, flush=True)
            import os
            os._exit(0)


        signal.signal(signal.SIGTERM, end)
        poller = zmq.Poller()
        arguments = sys.argv[1:]
        parts = [{"feed": Feed, "requests": Requests}[arguments[at]](arguments[at + 1], arguments[at + 2], poller)
                 for at in range(0, len(arguments), 3)]
        print("ready", flush=True)
        while True:
            events = dict(poller.poll())
            for part in parts:
                part.ready(events)
        """#
}
