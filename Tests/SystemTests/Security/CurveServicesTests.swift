import Contracts
import Foundation
import Hosting
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// The real services with CURVE over TCP enabled, on this machine's loopback address.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct CurveServicesTests {
    @Test func `over the network a listed key reads, writes under its identity and receives the feed`() async throws {
        let network = try NetworkFixture()
        #expect(try network.services.safelight(["keys", "create", "ann"]).status == 0)
        let library = try network.library("ann")
        var feed = library.changes(since: nil).makeAsyncIterator()
        guard case .caughtUp = try await feed.next() else {
            Issue.record("no feed")
            return
        }
        let created = try await library.perform([.createCollection(.init(ref: "album", title: "From afar"))])
        guard case .change(let record) = try await feed.next() else {
            Issue.record("no change")
            return
        }
        #expect(record.sequence == created.sequence)
        #expect(record.origin.identity == "key:ann")
        let path = await #expect(throws: RPCError.self) {
            try await library.perform([
                .createAsset(.init(ref: "a", resources: [NewResource(source: .path("/etc/passwd"))]))
            ])
        }
        #expect(path?.name == "access_denied")

        // The command line of a remote client, and one host for all services.
        let variables = network.variables("ann")
        let list = try RunningProgram.run("safelight", ["album", "list"], environment: variables)
        #expect(list.status == 0, "\(list.errors)")
        #expect(list.output.contains("From afar"))

        // After revocation its requests on the open connection are refused, and new connections get no answer.
        let reported = try network.services.safelight(["keys", "revoke", "ann"])
        #expect(reported.status == 0, "\(reported.errors)")
        while (try? await library.currentToken(deadline: .seconds(1))) != nil, !Task.isCancelled { await Task.yield() }
        let error = await #expect(throws: RPCError.self) { try await library.currentToken(deadline: .seconds(1)) }
        #expect(error?.name == "access_denied")
        let again = try RunningProgram.run("safelight", ["album", "list", "--wait", "1"], environment: variables)
        #expect(again.status == 1)
        await library.close()
        #expect(network.services.stop() == [])
    }

    @Test func `the first subscription with a new key is admitted at the first attempt`() async throws {
        let network = try NetworkFixture()
        #expect(try network.services.safelight(["keys", "create", "ann"]).status == 0)
        let folder = network.keyFolder("ann")
        let server = try Certificate(readingPublic: folder + "/server.key").publicKey
        let ann = try #require(KeyFolder.pair(folder + "/ann.key_secret"))
        let port = try #require(network.broker[1].split(separator: ":").last.flatMap { UInt16($0) })
        let library = try network.services.library()
        _ = try await library.changeBroker.ask(FeedHeadRequest())
        let started = ContinuousClock.now
        // The connection waits while the broker asks the catalog about the key, three seconds at most.
        #expect(throws: Never.self) { try RawCurve(port: port, as: "SUB", server: server, pair: ann) }
        #expect(ContinuousClock.now - started < .seconds(2))
        await library.close()
        #expect(network.services.stop() == [])
    }

    @Test func `a watch ends with the error when its key is revoked, even without further changes`() throws {
        let network = try NetworkFixture()
        for (name, arguments) in [("ann", ["watch"]), ("bob", ["watch", "--fetch"])] {
            #expect(try network.services.safelight(["keys", "create", name]).status == 0)
            let watch = try RunningProgram("safelight", arguments, environment: network.variables(name))
            // The command follows the library once it has printed a change.
            for number in 0..<100 where watch.outputText.isEmpty {
                _ = try network.services.safelight(["album", "create", "\(name) \(number)"])
            }
            #expect(!watch.outputText.isEmpty)
            #expect(try network.services.safelight(["keys", "revoke", name]).status == 0)
            #expect(watch.wait(seconds: 30) == 1)
            #expect(watch.errorText.contains("access_denied"), "\(watch.errorText)")
        }
        #expect(network.services.stop() == [])
    }

    @Test func `only keys on the services list may act on behalf of others`() async throws {
        let network = try NetworkFixture()
        for name in ["ann", "bob"] {
            #expect(try network.services.safelight(["keys", "create", name, "--domain", "requests"]).status == 0)
        }
        let created = try network.services.safelight(["keys", "create", "helper", "--domain", "requests,services"])
        #expect(created.status == 0, "\(created.errors)")
        let (ann, helper) = (try network.library("ann"), try network.library("helper"))
        let own = try network.services.library()
        func changeLibrary(_ library: PhotoLibrary) async throws {
            _ = try await library.perform([.createCollection(.init(ref: "a", title: "A"))], onBehalfOf: "key:bob")
        }
        let error = await #expect(throws: RPCError.self) { try await changeLibrary(ann) }
        #expect(error?.name == "access_denied")
        try await changeLibrary(helper)
        try await changeLibrary(own)
        // Edits that were accepted for a key are not applied once it is revoked.
        #expect(try network.services.safelight(["keys", "revoke", "bob"]).status == 0)
        let revoked = await #expect(throws: RPCError.self) { try await changeLibrary(own) }
        #expect(revoked?.name == "access_denied")
        _ = try await ann.perform([.createCollection(.init(ref: "a", title: "A"))])
        for library in [ann, helper, own] { await library.close() }
        #expect(network.services.stop() == [])
    }

    @Test func `plain pyzmq with the project's key files is answered, and with an unlisted key it is not`() throws {
        let python = try Needed.python("zmq.auth")
        let network = try NetworkFixture()
        #expect(try network.services.safelight(["keys", "create", "script", "--domain", "requests"]).status == 0)
        let folder = network.keyFolder("script")
        let script = """
            import json, sys, zmq, zmq.auth
            address, server, client = sys.argv[1:4]
            socket = zmq.Context().socket(zmq.REQ)
            # A client refused before it sends has no peer to send to, so sending times out as well.
            socket.linger, socket.sndtimeo, socket.rcvtimeo = 0, int(sys.argv[4]), int(sys.argv[4])
            socket.curve_serverkey, none = zmq.auth.load_certificate(server)
            assert none is None
            public, secret = zmq.auth.load_certificate(client)
            assert zmq.curve_public(secret) == public
            socket.curve_publickey, socket.curve_secretkey = public, secret
            socket.connect(address)
            try:
                socket.send_json({"jsonrpc": "2.0", "id": 1, "method": "changes.token"})
                print("token" in socket.recv_json()["result"])
            except zmq.Again: print("no answer")
            """
        func run(_ client: String, timeout: Int) throws -> String {
            let run = try RunningProgram.run(
                python,
                ["-c", script, network.catalog, folder + "/server.key", client, "\(timeout)"]
            )
            #expect(run.status == 0, "\(run.errors)")
            return run.output.trimmingCharacters(in: .whitespacesAndNewlines)
        }
        #expect(try run(folder + "/script.key_secret", timeout: 20_000) == "True")
        // The other direction: pyzmq creates the keys and `keys admit` lists them.
        let maker = "import sys, zmq.auth; zmq.auth.create_certificates(sys.argv[1], 'theirs')"
        #expect(try RunningProgram.run(python, ["-c", maker, network.keys.path]).status == 0)
        let theirs = network.keys.file("theirs.key")
        #expect(try run(theirs + "_secret", timeout: 1000) == "no answer")
        let admitted = try network.services.safelight(["keys", "admit", theirs, "--domain", "requests"])
        #expect(admitted.status == 0, "\(admitted.errors)")
        #expect(try run(theirs + "_secret", timeout: 20_000) == "True")
        #expect(network.services.stop() == [])
    }

    @Test func `keys are created once, listed, shown for copying, and errors name the remedy`() throws {
        let folder = try TemporaryFolder("keys")
        let variables = ["SAFELIGHT_KEYS": folder.file("keys")]
        func keys(_ arguments: String...) throws -> (status: Int32?, output: String, errors: String) {
            try RunningProgram.run("safelight", ["keys"] + arguments, environment: variables)
        }
        #expect(try keys("list").status == 1)
        #expect(try keys("create", "ann").errors.contains("safelight keys server"))
        #expect(try keys("server").output.contains("created"))
        #expect(try keys("server").output.contains("already"))
        #expect(try keys("create", "ann", "--domain", "feed,requests").status == 0)
        #expect(try keys("create", "ann").status == 1)
        #expect(try keys("create", "ann", "--if-missing").status == 0)
        #expect(try keys("create", "bob", "--domain", "everything").status == 2)
        let list = try keys("list").output
        #expect(list.contains("ann") && list.contains("requests, feed"))
        let shown = try keys("show", "ann").output
        #expect(shown.contains("public-key = ") && !shown.contains("secret-key"))
        #expect(try shown == String(contentsOfFile: folder.file("keys/clients/feed/ann.key"), encoding: .utf8))
        #expect(try keys("show", "server").output.contains("public-key"))
        #expect(try keys("revoke", "ann", "--domain", "feed").output.contains("feed"))
        #expect(try keys("revoke", "nobody").status == 1)
        // A service without keys does not listen on TCP.
        let catalog = try RunningProgram.run(
            "catalog",
            [],
            environment: [
                "SAFELIGHT_LISTEN": "127.0.0.1:0", "SAFELIGHT_KEYS": folder.file("none"),
                "SAFELIGHT_RUN": folder.file("run"), "SAFELIGHT_LIBRARY": folder.file("library"),
            ]
        )
        #expect(catalog.status != 0)
        #expect(catalog.errors.contains("safelight keys server"))
    }
}
