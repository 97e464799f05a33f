import Contracts
import Foundation
import Hosting
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// A client with a listed key that violates ZeroMQ's protocol over the network.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct HostileCurveTests {
    @Test func `giant frames from a listed key end its connection and nothing else`() async throws {
        let network = try NetworkFixture(withEditor: true, withThumbnailer: true)
        #expect(try network.services.safelight(["keys", "create", "ann"]).status == 0)
        let server = try Certificate(readingPublic: network.keyFolder("ann") + "/server.key").publicKey
        let ann = try #require(KeyFolder.pair(network.keyFolder("ann") + "/ann.key_secret"))
        let library = try network.library("ann")
        _ = try await library.currentToken()
        let endpoints: [(SafelightFixture.Service, String, String)] = [
            (.catalog, network.catalog, "DEALER"), (.thumbnailer, network.thumbnailer ?? "", "DEALER"),
            (.editor, network.editor[0], "DEALER"), (.editor, network.editor[1], "PUSH"),
            (.changeBroker, network.broker[0], "DEALER"), (.changeBroker, network.broker[1], "SUB"),
        ]
        for (service, address, kind) in endpoints {
            let port = try #require(address.split(separator: ":").last.flatMap { UInt16($0) })
            let pid = network.services.program(service)?.processIdentifier ?? 0
            let before = ProcessStatus.resident(of: pid) / 1024
            for length: UInt64 in [17 << 20, 1 << 33, 1 << 40, UInt64(Int64.max), .max] {
                let peer = try RawCurve(port: port, as: kind, server: server, pair: ann)
                peer.sendPlain(RawZMTP.head(length: length, more: false) + [UInt8](repeating: 7, count: 1000))
                #expect(peer.waitForEnd(seconds: 5), "\(address) \(length)")
            }
            // A CURVE box with invalid content, and one that repeats an old nonce.
            let peer = try RawCurve(port: port, as: kind, server: server, pair: ann)
            peer.sendPlain([0, 40, 7] + Array("MESSAGE".utf8) + [UInt8](repeating: 0xFF, count: 32))
            #expect(peer.waitForEnd(seconds: 5), "\(address)")
            #expect(ProcessStatus.resident(of: pid) / 1024 < before + 32, "\(address)")
        }
        _ = try await library.currentToken()
        #expect(network.services.logs.contains("terminated immediately") == false)
        await library.close()
        #expect(network.services.stop() == [])
    }

    @Test func `a message without an end from a listed key ends its connection and nothing else`() async throws {
        let started = ContinuousClock.now
        let keys = try TemporaryFolder("endless-keys")
        let services = try SafelightFixture(
            "endless",
            environment: [
                "SAFELIGHT_SERVICE_MEMORY_MIB": "1024", "SAFELIGHT_LISTEN": "127.0.0.1:0",
                "SAFELIGHT_KEYS": keys.file("keys"),
            ]
        )
        #expect(try services.safelight(["keys", "server"]).status == 0)
        #expect(try services.safelight(["keys", "create", "ann"]).status == 0)
        let folder = keys.file("keys/made/ann")
        let server = try Certificate(readingPublic: folder + "/server.key").publicKey
        let ann = try #require(KeyFolder.pair(folder + "/ann.key_secret"))
        let up = try RunningProgram("safelight", ["up", "--ready-fd", "1"], environment: services.environment)
        #expect(up.waitForOutput("ready"), "\(up.errorText)")
        let library = try services.library()
        let asset = try await library.createAsset(TestImages.jpeg(width: 64, height: 48, seed: 1))
        let created = try await library.currentToken().token
        func ports(_ service: String) -> [UInt16] {
            up.errorText.split(separator: "\n").filter { $0.contains("\(service) service started") }.last
                .map { $0.matches(of: /tcp:\/\/127\.0\.0\.1:([0-9]+)/).compactMap { UInt16($0.1) } } ?? []
        }
        // Request sockets accept larger frames than the socket for published edits, which accepts larger ones than the
        // feed.
        for (service, client, kind, number, size) in [
            ("catalog", library.catalog, "DEALER", 0, 1 << 20), ("editor", library.editor, "PUSH", 1, 1 << 15),
            ("change-broker", library.changeBroker, "SUB", 1, 400),
        ] {
            _ = up.wait { _ in ports(service).count > number }
            let port = try #require(ports(service).dropFirst(number).first)
            let before = try #require(try await client.processIdentifier())
            let resident = ProcessStatus.resident(of: before) / 1024
            let endless = try RawCurve(port: port, as: kind, server: server, pair: ann)
            let part = [UInt8](repeating: 7, count: size)
            let connected = ContinuousClock.now
            var (parts, peak) = (0, 0)
            while parts * size < 4 << 30, endless.send(part, more: true) {
                parts += 1
                if (parts * size) >> 20 != ((parts - 1) * size) >> 20 {
                    peak = max(peak, ProcessStatus.resident(of: before) / 1024)
                }
            }
            TestPaths.report(
                "\(service): connected after \(connected - started), \((parts * size) >> 20) MiB of one message sent in "
                    + "\(ContinuousClock.now - connected), peak memory \(peak) MiB"
            )
            #expect(parts * size < 4 << 30)
            // The connections are checked at intervals: bytes that arrive between two checks come on top of the limit.
            #expect(peak < resident + 500)
            #expect(try await client.processIdentifier() == before, "the service has not ended")
            #expect(!up.errorText.contains("terminated immediately"))
        }
        // The acknowledged change is stored, and an edit is applied.
        #expect(try await library.currentToken().token == created)
        let publisher = try EditPublisher(library: library)
        async let running: Void = publisher.run()
        try await publisher.publish(
            PublishEdit(id: "one", asset: asset, adjustments: AdjustmentList(operations: [.exposure(0.5)]))
        )
        await publisher.finish()
        var states: [PublishedEditState] = []
        for await status in publisher.updates { states.append(status.edit.state) }
        try await running
        #expect(states.last == .applied)
        TestPaths.report("edited after \(ContinuousClock.now - started)")
        await library.close()
        up.signal(SIGINT)
        #expect(up.wait(seconds: 20) == 0, "\(up.errorText)")
    }
}
