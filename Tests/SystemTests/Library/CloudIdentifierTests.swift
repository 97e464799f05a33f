import TestSupport
import Testing

/// Identifiers that are the same in two copies of a library (T-39), compared by a script that uses both.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct CloudIdentifierTests {
    @Test(.spec("T-39")) func `cloud identifiers find the same photos in a second library`() throws {
        let (first, second) = (try SafelightFixture("cloud-1"), try SafelightFixture("cloud-2"))
        for seed in 1...3 {
            try first.folder.write(TestImages.jpeg(width: 64, height: 48, seed: UInt64(seed)), to: "\(seed).jpg")
        }
        for services in [first, second] { try services.start([.catalog]) }
        let python = try Needed.python("zmq")
        var environment = first.environment
        environment["FILES"] = first.folder.path
        environment["OTHER"] = second.environment["SAFELIGHT_RUN"]
        let run = try RunningProgram.run(python, ["-c", Self.script], environment: environment, seconds: 60)
        #expect(run.status == 0, "\(run.errors)\n\(first.logs)\n\(second.logs)")
        #expect(run.output.contains("done"))
        for services in [first, second] { #expect(services.stop() == []) }
    }

    private static let script = #"""
        import json, os, zmq

        context = zmq.Context.instance()


        def connect(folder):
            socket = context.socket(zmq.REQ)
            socket.linger, socket.rcvtimeo = 0, 30000
            socket.connect(f"ipc://{folder}/catalog.sock")
            return socket


        def call(socket, method, attachments=(), **params):
            request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            socket.send_multipart([json.dumps(request).encode(), *attachments])
            reply = json.loads(socket.recv_multipart()[0])
            assert "error" not in reply, reply
            return reply["result"]


        def new(socket, name, **more):
            with open(f"{os.environ['FILES']}/{name}", "rb") as opened:
                bytes = opened.read()
            request = {"type": "asset.create", "ref": "a", "resources": [{"attachment": 0}], **more}
            return call(socket, "changes.perform", [bytes], requests=[request])["placeholders"]["a"]


        here, there = connect(os.environ["SAFELIGHT_RUN"]), connect(os.environ["OTHER"])
        mine = {name: new(here, name) for name in ("1.jpg", "2.jpg", "3.jpg")}
        theirs = {name: new(there, name) for name in ("2.jpg", "1.jpg")}
        assert not set(mine.values()) & set(theirs.values())
        unknown = "a" + "0" * 26
        cloud = call(here, "ids.toCloud", ids=[*mine.values(), unknown])["mappings"]
        assert cloud.pop(unknown) == {"error": "identifier_not_found", "code": 3201}
        clouds = {name: cloud[id]["id"] for name, id in mine.items()}
        assert len(set(clouds.values())) == 3

        local = call(there, "ids.toLocal", cloudIds=[*clouds.values(), "nonsense"])["mappings"]
        assert local[clouds["1.jpg"]] == {"id": theirs["1.jpg"]} and local[clouds["2.jpg"]] == {"id": theirs["2.jpg"]}
        for missing in (clouds["3.jpg"], "nonsense"):
            assert local[missing] == {"error": "identifier_not_found", "code": 3201}, local[missing]

        # Two identical uploads: both are candidates, until one of them is in the trash.
        copy = new(there, "1.jpg", ifDuplicate="create")
        found = call(there, "ids.toLocal", cloudIds=[clouds["1.jpg"]])["mappings"][clouds["1.jpg"]]
        assert found == {"error": "multiple_identifiers", "code": 3202, "candidates": [theirs["1.jpg"], copy]}, found
        assert call(there, "ids.toCloud", ids=[copy])["mappings"][copy] == {"id": clouds["1.jpg"]}
        call(there, "changes.perform", requests=[{"type": "asset.trash", "ids": [copy]}])
        assert call(there, "ids.toLocal", cloudIds=[clouds["1.jpg"]])["mappings"][clouds["1.jpg"]] == {
            "id": theirs["1.jpg"]}

        # Editing keeps the identifier; a collection has its own.
        call(there, "changes.perform", requests=[{"type": "asset.update", "id": theirs["2.jpg"], "set": {"rating": 3}}])
        assert call(there, "ids.toCloud", ids=[theirs["2.jpg"]])["mappings"][theirs["2.jpg"]]["id"] == clouds["2.jpg"]
        album = call(here, "changes.perform", requests=[{"type": "collection.create", "ref": "c", "title": "A"}]
                     )["placeholders"]["c"]
        named = call(here, "ids.toCloud", ids=[album])["mappings"][album]["id"]
        assert call(here, "ids.toLocal", cloudIds=[named])["mappings"][named] == {"id": album}
        assert call(there, "ids.toLocal", cloudIds=[named])["mappings"][named]["code"] == 3201
        print("done")
        """#
}
