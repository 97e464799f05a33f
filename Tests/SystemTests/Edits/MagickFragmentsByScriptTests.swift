import Contracts
import Foundation
import JSONValue
import TestSupport
import Testing

/// The parameter `magick`, sent by a plain pyzmq script that checks nothing itself: every fragment is translated or
/// refused with a named error, by `edits.apply`, by `edits.preview` and by `edits.publish`.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct MagickFragmentsByScriptTests {
    private static let script = """
        import json, sys, time, zmq

        run, file, asset = sys.argv[1:]
        texts = json.load(open(file))
        context = zmq.Context()


        def connected(kind, name):
            socket = context.socket(kind)
            socket.linger = 0
            socket.rcvtimeo = 60000
            socket.connect(f"ipc://{run}/{name}.sock")
            return socket


        editor, catalog = connected(zmq.REQ, "editor"), connected(zmq.REQ, "catalog")
        edits = connected(zmq.PUSH, "edits")


        def ask(socket, method, params):
            socket.send_json({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
            reply = json.loads(socket.recv_multipart()[0])
            return reply.get("result"), reply.get("error")


        def report(method, index, result, name, message):
            print(json.dumps({"method": method, "index": index, "result": result, "name": name, "message": message}))


        for index, text in enumerate(texts):
            for method, params in [
                ("edits.apply", {"asset": asset, "magick": text, "dryRun": True}),
                ("edits.preview", {"asset": asset, "magick": text, "maximumSide": 256}),
            ]:
                result, error = ask(editor, method, params)
                report(method, index, result, error and error["data"]["name"], error and error["message"])

        waiting = {f"fragment-{index}": index for index in range(len(texts))}
        end = time.monotonic() + 120
        while waiting and time.monotonic() < end:
            result, error = ask(catalog, "edits.status", {"ids": list(waiting)})
            for edit in result["edits"]:
                if edit["state"] != "accepted":
                    index = waiting.pop(edit["id"])
                    report("edits.publish", index, edit, edit.get("errorName"), edit.get("errorMessage"))
            # A push has no reply: an edit is sent again until its status is known.
            for name in result["unknown"]:
                params = {"id": name, "asset": asset, "magick": texts[waiting[name]]}
                edits.send_json({"jsonrpc": "2.0", "method": "edits.publish", "params": params})
            time.sleep(0.2)
        """

    @Test(.spec("S-88")) func `a script's options of convert are translated or refused by every method`() throws {
        let python = try Needed.python()
        let services = try SafelightFixture("fragments")
        try services.folder.write(TestImages.jpeg(width: 240, height: 160), to: "photos/a.jpg")
        try services.start()
        #expect(try services.safelight(["import", services.folder.file("photos")]).status == 0)
        let id = try services.safelight(["fetch", "--ids"]).output.trimmingCharacters(in: .whitespacesAndNewlines)
        let (accepted, refused) = (MagickFragments.accepted, MagickFragments.refused)
        #expect(accepted.count >= 50 && refused.count >= 50)
        let texts = JSON.array((accepted + refused.map(\.text)).map { .string($0) })
        let file = try services.folder.write(texts.bytes, to: "texts.json")
        let run = try RunningProgram.run(
            python,
            ["-c", Self.script, services.folder.file("run"), file, id],
            environment: services.environment,
            seconds: 240
        )
        var counts: [String: Int] = [:]
        for line in run.output.split(separator: "\n") {
            let reply = try JSON(parsing: Array(line.utf8))
            let method = reply["method"]?.stringValue ?? ""
            let index = Int(reply["index"]?.intValue ?? 0)
            let (name, message) = (reply["name"]?.stringValue, reply["message"]?.stringValue ?? "")
            counts[method, default: 0] += 1
            if index < accepted.count {
                #expect(name == nil, "\(method) \(accepted[index]): \(message)")
                if method == "edits.publish" { #expect(reply["result"]?["state"] == "applied") }
            } else {
                let fragment = refused[index - accepted.count]
                let label = "\(method) \(fragment.text.prefix(60))"
                #expect(name == "invalid_params", "\(label): \(line.prefix(300))")
                #expect(message.contains(fragment.errorPart), "\(label): \(message.prefix(300))")
            }
        }
        let all = accepted.count + refused.count
        #expect(counts == ["edits.apply": all, "edits.preview": all, "edits.publish": all], "\(run.errors)")
        // The history has no part of a refused fragment: each step is an accepted one.
        let history = try services.safelight(["history", id, "--json"]).output
        for fragment in ["passwd", "msl", "reboot"] { #expect(!history.contains(fragment)) }
        #expect(services.stop() == [])
    }
}
