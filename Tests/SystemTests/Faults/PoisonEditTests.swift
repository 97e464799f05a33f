import Basics
import Contracts
import Foundation
import JSONValue
import Logging
import Messaging
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Published edits that cannot be applied: each fails with a named error, and the others continue.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct PoisonEditTests {
    private static let bright = AdjustmentList(operations: [.exposure(0.5)])

    private static func createImage(_ library: PhotoLibrary, _ width: Int = 64, seed: UInt64 = 1) async throws
        -> ObjectID
    {
        try await library.createAsset(TestImages.jpeg(width: width, height: width * 3 / 4, seed: seed))
    }

    /// Polls until the edits are finished, without sending them again.
    private static func waitUntilEnded(_ ids: [String], in library: PhotoLibrary) async throws -> [String:
        PublishedEdit]
    {
        var ended: [String: PublishedEdit] = [:]
        for _ in 0..<600 where ended.count < ids.count {
            let status = try await library.catalog.ask(EditsStatus(ids: ids)).result
            for known in status.edits where known.edit.state != .accepted { ended[known.edit.id] = known.edit }
            if ended.count < ids.count { try await Task.sleep(for: .milliseconds(50)) }
        }
        return ended
    }

    private static func makePusher(_ services: SafelightFixture, _ thread: PollThread) throws -> Pusher {
        try Pusher(address: services.address("edits"), thread: thread)
    }

    @Test func `each broken edit fails with a named error and the queue continues`() async throws {
        let services = try SafelightFixture("poison")
        try services.start([.catalog, .changeBroker])
        // An editor with a short `--patience`.
        let editor = try RunningProgram(
            "editor",
            ["--ready-fd", "1", "--patience", "1"],
            environment: services.environment
        )
        #expect(editor.waitForOutput("ready"))
        let library = try services.library()
        let asset = try await Self.createImage(library)
        var random = SeededRandom(named: "poison edits")
        let unknownID = ObjectID(.asset, milliseconds: 1, using: &random)
        let thread = try PollThread(name: "test")
        let pusher = try Self.makePusher(services, thread)
        func edit(_ id: String, _ asset: ObjectID, after: String? = nil, _ mode: AdjustmentMode = .replace)
            -> PublishEdit
        {
            PublishEdit(id: id, asset: asset, adjustments: Self.bright, after: after, mode: mode)
        }
        func makeMessage(_ id: String, _ adjustments: JSON) -> Bytes {
            let params: JSON = ["id": .string(id), "asset": .string(asset.text), "adjustments": adjustments]
            return (["jsonrpc": "2.0", "method": "edits.publish", "params": params] as JSON).bytes
        }
        var conditional = edit("stale", asset)
        conditional.ifContentRevision = Revision(999_999)
        let frames: [Bytes] = [
            Array("garbage".utf8), [0xFF, 0, 1], [], Array("{}".utf8), Array("[1, 2]".utf8),
            makeMessage("range", ["version": 1, "operations": [["operation": "exposure", "value": 1000]]]),
            makeMessage("shape", "bright"),
            edit("gone", unknownID).frame,
            edit("orphan", asset, after: "nobody").frame,
            conditional.frame,
            edit("appended", asset, after: "range", .append).frame,
            edit("replaced", asset, after: "range").frame,
            edit("good", asset).frame,
        ]
        for frame in frames { try await pusher.push([frame]) }
        try await pusher.push([edit("framed", asset).frame, [1, 2, 3]])
        let expected = [
            "range": "invalid_params", "shape": "invalid_params", "gone": "identifier_not_found",
            "orphan": "missing_predecessor", "stale": "conflict", "appended": "predecessor_failed",
            "framed": "invalid_request", "replaced": nil, "good": nil,
        ]
        let ended = try await Self.waitUntilEnded(Array(expected.keys), in: library)
        for (id, name) in expected {
            #expect(ended[id]?.state == (name == nil ? .applied : .failed), "\(id): \(String(describing: ended[id]))")
            #expect(ended[id]?.errorName == name)
            #expect((ended[id]?.errorMessage == nil) == (name == nil))
        }
        let metrics = try await library.editor.metrics()["published"]
        #expect(metrics?["unreadable"] == 5, "\(String(describing: metrics))")
        #expect(metrics?["waiting"] == 0)

        // Sending an edit again changes nothing; other content under a known id is reported once and changes nothing.
        let head = try await library.currentToken().token
        for _ in 0..<3 { try await pusher.push([edit("good", asset).frame]) }
        for _ in 0..<3 { try await pusher.push([edit("good", unknownID).frame]) }
        try await pusher.push([edit("last", asset).frame])
        #expect(try await Self.waitUntilEnded(["last"], in: library)["last"]?.state == .applied)
        var reused: [PublishedEdit] = []
        try await waitUntil("the reused id is reported") {
            let page = try await library.changeBroker.ask(FeedSince(token: head, limit: 100, topics: ["edit.good"]))
                .result
            reused = try page.records.flatMap { try ChangeRecord(json: $0).edits }
            return !reused.isEmpty
        }
        #expect(reused.map(\.errorName) == ["id_reused"])
        #expect(reused.map(\.state) == [.applied], "the state of the edit, which did not fail after it was applied")
        #expect(reused.first?.refusedDigest?.isEmpty == false)
        #expect(try await Self.waitUntilEnded(["good"], in: library)["good"]?.state == .applied)
        // Their log stays short: a line a second at most.
        #expect(editor.errorText.split(separator: "\n").count { $0.contains("has no id to fail") } < 5)

        await pusher.close()
        await thread.shutdown()
        await library.close()
        editor.signal(SIGTERM)
        #expect(editor.wait(seconds: 20) == 0)
        #expect(services.stop() == [])
    }

    @Test func `an edit whose photo kills the worker fails after two workers, and the next one is applied`()
        async throws
    {
        let services = try SafelightFixture("crash")
        try services.start([.catalog, .changeBroker, .editor])
        let library = try services.library()
        let (large, small) = (try await Self.createImage(library, 3600), try await Self.createImage(library, seed: 2))
        let thread = try PollThread(name: "test")
        let pusher = try Self.makePusher(services, thread)
        // This simulates a decoder that crashes: its process disappears during the job. Workers are stopped as soon as
        // they appear, so that one of them is always in the middle of a job when it is killed.
        func workers() async throws -> (pids: [Int32], isBusy: Bool) {
            let metrics = try await library.editor.metrics()["workers"]
            let pids = (metrics?["pids"]?.arrayValue ?? []).compactMap { $0.intValue.flatMap(Int32.init(exactly:)) }
            for pid in pids { kill(pid, SIGSTOP) }
            return (pids, metrics?["busy"] != 0)
        }
        _ = try await workers()
        try await pusher.push([PublishEdit(id: "poison", asset: large, adjustments: Self.bright).frame])
        var end: PublishedEdit?
        let latest = ContinuousClock.now + .seconds(60)
        while end == nil, ContinuousClock.now < latest {
            let (pids, isBusy) = try await workers()
            if isBusy, let pid = pids.first { kill(pid, SIGKILL) }
            let status = try await library.catalog.ask(EditsStatus(ids: ["poison"])).result
            end = status.edits.first.flatMap { $0.edit.state == .accepted ? nil : $0.edit }
        }
        for pid in try await workers().pids { kill(pid, SIGCONT) }
        #expect(end?.state == .failed)
        #expect(end?.errorName == "worker_crashed")
        try await pusher.push([PublishEdit(id: "next", asset: small, adjustments: Self.bright).frame])
        #expect(try await Self.waitUntilEnded(["next"], in: library)["next"]?.state == .applied)
        await pusher.close()
        await thread.shutdown()
        await library.close()
        #expect(services.stop() == [])
    }

    @Test func `over the network an edits key publishes under its identity, and other keys are ignored`()
        async throws
    {
        let python = try Needed.python("zmq.auth")
        let network = try NetworkFixture(withEditor: true)
        #expect(try network.services.safelight(["keys", "create", "ann"]).status == 0)
        #expect(try network.services.safelight(["keys", "create", "eve", "--domain", "requests,feed"]).status == 0)
        let library = try network.services.library()
        let asset = try await Self.createImage(library)
        #expect(network.editor.count == 2)
        func script(_ name: String) throws -> RunningProgram {
            var variables = network.variables(name)
            variables["SAFELIGHT_EDITS"] = network.editor.last
            let edit = PublishEdit(id: "from-\(name)", asset: asset, adjustments: Self.bright)
            return try RunningProgram(
                python,
                ["-u", TestPaths.package + "/compose/examples/publish_edits.py"],
                environment: variables,
                input: Data(edit.json.bytes + [10])
            )
        }
        let eve = try script("eve")
        let ann = try script("ann")
        #expect(ann.wait(seconds: 60) == 0, "\(ann.errorText)")
        #expect(ann.outputText.contains("from-ann applied"), "\(ann.outputText)")
        #expect(eve.isRunning)
        eve.killHard()
        #expect(eve.outputText.isEmpty, "\(eve.outputText)")
        let page = try await library.catalog.ask(ChangesSince(token: nil, limit: 100)).result
        let records = try page.records.map { try ChangeRecord(json: $0) }.filter { !$0.edits.isEmpty }
        #expect(records.map { $0.edits.map(\.state) } == [[.accepted], [.applied]])
        #expect(records.allSatisfy { $0.origin.onBehalfOf == "key:ann" && $0.edits.first?.id == "from-ann" })
        await library.close()
        #expect(network.services.stop() == [])
    }
}
