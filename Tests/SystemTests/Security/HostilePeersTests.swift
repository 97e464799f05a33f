import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Peers that violate ZeroMQ's protocol, against the real services.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct HostilePeersTests {
    /// Every socket of the services: its name, the service behind it, and the socket type that connects to it.
    private static let sockets = [
        ("catalog", "catalog", "DEALER"), ("thumbnailer", "thumbnailer", "DEALER"), ("editor", "editor", "DEALER"),
        ("change-broker", "change-broker", "DEALER"), ("feed", "change-broker", "SUB"), ("edits", "editor", "PUSH"),
    ]

    private func clients(_ library: PhotoLibrary) -> [ServiceClient] {
        [library.catalog, library.thumbnailer, library.editor, library.changeBroker]
    }

    /// Returns the resident memory of a service, in MiB.
    private func resident(_ services: SafelightFixture, _ name: String) -> Int {
        SafelightFixture.Service(rawValue: name).map { services.residentMemory($0) / 1024 } ?? 0
    }

    @Test func `a frame with a giant length ends its connection and nothing else`() async throws {
        let services = try SafelightFixture("giant")
        try services.start()
        let library = try services.library()
        for client in clients(library) { _ = try await client.health() }
        for (name, service, kind) in Self.sockets {
            let before = resident(services, service)
            for length: UInt64 in [17 << 20, 1 << 33, 1 << 40, UInt64(Int64.max), .max] {
                for more in [false, true] {
                    let peer = try RawZMTP(path: services.folder.file("run/\(name).sock"))
                    peer.greet(as: kind)
                    peer.send(RawZMTP.head(length: length, more: more) + [UInt8](repeating: 7, count: 1000))
                    #expect(peer.waitForEnd(seconds: 5), "\(name): \(length)")
                }
            }
            #expect(resident(services, service) < before + 32, "\(name)")
        }
        for client in clients(library) { _ = try await client.health() }
        #expect(
            SafelightFixture.Service.allCases.allSatisfy { services.program($0)?.isRunning == true },
            "\(services.logs)"
        )
        await library.close()
        #expect(services.stop() == [])
    }

    @Test func `an endless message costs bounded memory, and the service is back within a second`() async throws {
        let services = try SafelightFixture("endless", environment: ["SAFELIGHT_SERVICE_MEMORY_MIB": "400"])
        let up = try RunningProgram("safelight", ["up", "--ready-fd", "1"], environment: services.environment)
        #expect(up.waitForOutput("ready"), "\(up.errorText)")
        let library = try services.library()
        let created = try await library.perform([.createCollection(.init(ref: "a", title: "Kept"))])
        let before = try #require(try await library.catalog.processIdentifier())
        let part = RawZMTP.head(length: 1 << 20, more: true) + [UInt8](repeating: 7, count: 1 << 20)
        var (sent, peak) = (0, 0)
        // A closed connection does not mean that the catalog has ended; a refused one does.
        for _ in 0..<5 where sent < 4096 {
            guard let peer = try? RawZMTP(path: services.folder.file("run/catalog.sock")) else { break }
            peer.greet()
            while sent < 4096, peer.send(part) {
                sent += 1
                peak = max(peak, ProcessStatus.resident(of: before) / 1024)
            }
            TestPaths.report("the connection ended after \(sent) MiB: errno \(errno)")
        }
        let died = ContinuousClock().now
        TestPaths.report("an endless message: \(sent) MiB were received, the catalog's peak memory was \(peak) MiB")
        #expect(sent < 4096)
        #expect(peak < 800)
        var after: Int32?
        while after == nil || after == before {
            after = try? await library.catalog.processIdentifier()
            if ContinuousClock().now - died > .seconds(20) { break }
        }
        let away = ContinuousClock().now - died
        TestPaths.report("the catalog was unavailable for \(away)")
        #expect(after != nil && after != before)
        #expect(away < .seconds(2), "one second, and a margin for a loaded machine")
        #expect(try await library.currentToken().token == created.token, "nothing is lost")
        await library.close()
        up.signal(SIGINT)
        #expect(up.wait(seconds: 20) == 0, "\(up.errorText)")
    }

    @Test func `a thousand connections that never greet are closed, over ipc and over TCP`() async throws {
        let limit = TestPaths.raiseDescriptors(to: 4096)
        let count = min(1000, limit - 500)
        if count < 1000 { TestPaths.report("only \(count) connections: this process may open \(limit) files") }
        let keys = try TemporaryFolder("half")
        let services = try SafelightFixture(
            "half",
            environment: ["SAFELIGHT_LISTEN": "127.0.0.1:0", "SAFELIGHT_KEYS": keys.file("keys")]
        )
        #expect(try services.safelight(["keys", "server"]).status == 0)
        try services.start([.catalog])
        let library = try services.library()
        let before = (try await connections(library.catalog), resident(services, "catalog"))
        let pattern = /tcp:\/\/127\.0\.0\.1:([0-9]+)/
        _ = services.program(.catalog)?.wait { $0.errorText.contains(pattern) }
        let port = try #require(services.program(.catalog)?.errorText.firstMatch(of: pattern).flatMap { UInt16($0.1) })
        for isTCP in [false, true] {
            let peers = try (0..<count).map { _ in
                try isTCP ? RawZMTP(port: port) : RawZMTP(path: services.folder.file("run/catalog.sock"))
            }
            // Half of them send a part of a greeting and stop.
            for peer in peers.prefix(count / 2) { peer.send([0xFF, 0, 0, 0]) }
            var slowest = Duration.zero
            for _ in 0..<50 {
                let start = ContinuousClock().now
                _ = try await library.currentToken(deadline: .seconds(5))
                slowest = max(slowest, ContinuousClock().now - start)
            }
            let ended = peers.count { $0.waitForEnd(seconds: 20) }
            #expect(ended == count, "\(isTCP ? "TCP" : "ipc")")
            let growth = resident(services, "catalog") - before.1
            TestPaths.report(
                "\(isTCP ? "TCP" : "ipc"): \(ended) closed, slowest response \(slowest), memory \(growth) MiB more"
            )
            #expect(slowest < .seconds(2))
            #expect(growth < 64)
        }
        #expect(try await connections(library.catalog) <= before.0)
        await library.close()
        #expect(services.stop() == [])
    }

    private func connections(_ client: ServiceClient) async throws -> Int64 {
        try await client.metrics()["requests"]?["connections"]?.intValue ?? 0
    }
}
