import Contracts
import Foundation
import JSONValue
import PhotoClient
import TestSupport
import Testing

/// Services with a low descriptor limit, and peers that open more connections than it allows.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct DescriptorLimitTests {
    private static let connections = 1500

    /// A catalog and a change-broker with a limit of 512 open files, which also listen on TCP.
    private struct Services {
        let keys: TemporaryFolder
        let services: SafelightFixture
        let programs: [RunningProgram]

        init() throws {
            #expect(TestPaths.raiseDescriptors(to: 4096) >= 2 * DescriptorLimitTests.connections)
            keys = try TemporaryFolder("descriptors")
            services = try SafelightFixture(
                "descriptors",
                environment: ["SAFELIGHT_LISTEN": "127.0.0.1:0", "SAFELIGHT_KEYS": keys.file("keys")]
            )
            #expect(try services.safelight(["keys", "server"]).status == 0)
            #expect(try services.safelight(["keys", "create", "ann"]).status == 0)
            var programs: [RunningProgram] = []
            for (name, endpoints) in [("catalog", 1), ("change-broker", 2)] {
                let program = try RunningProgram(
                    "/usr/bin/prlimit",
                    ["--nofile=512:512", TestPaths.executables + "/" + name, "--ready-fd", "1"],
                    environment: services.environment
                )
                #expect(program.waitForOutput("ready"), "\(program.errorText)")
                // The log and the readiness line arrive over two pipes, in no particular order.
                _ = program.wait { Self.ports($0).count == endpoints }
                programs.append(program)
            }
            self.programs = programs
        }

        static func ports(_ program: RunningProgram) -> [UInt16] {
            program.errorText.matches(of: /tcp:\/\/127\.0\.0\.1:([0-9]+)/).compactMap { UInt16($0.1) }
        }

        var areRunning: Bool { programs.allSatisfy { $0.isRunning } }
        var logs: String { programs.map(\.errorText).joined(separator: "\n") }
        var catalogPort: UInt16 { Self.ports(programs[0]).first ?? 0 }
        var feedPort: UInt16 { Self.ports(programs[1]).last ?? 0 }

        /// The environment with which the command line reaches the catalog over TCP.
        var remote: [String: String] {
            let folder = keys.file("keys/made/ann")
            return services.environment.merging([
                "SAFELIGHT_CATALOG": "tcp://127.0.0.1:\(catalogPort)", "SAFELIGHT_SERVER_KEY": folder + "/server.key",
                "SAFELIGHT_CLIENT_KEY": folder + "/ann.key_secret",
            ]) { $1 }
        }

        /// Calls both services with a new connection.
        func askLocally() async throws {
            let library = try services.library()
            _ = try await library.catalog.health(deadline: .seconds(10))
            _ = try await library.changeBroker.health(deadline: .seconds(10))
            await library.close()
        }

        func stop() {
            for program in programs.reversed() {
                program.signal(SIGTERM)
                #expect(program.wait(seconds: 20) == 0, "\(program.errorText)")
            }
        }
    }

    @Test func `1,500 connections over TCP leave a service with 512 descriptors running and serving local clients`()
        async throws
    {
        let services = try Services()
        for port in [services.catalogPort, services.feedPort] {
            let peers = try (0..<Self.connections).map { _ in try RawZMTP(port: port) }
            for peer in peers.prefix(200) { peer.send([0xFF, 0, 0, 0]) }
            for _ in 0..<20 { try await services.askLocally() }
            #expect(services.areRunning, "\(services.logs)")
            withExtendedLifetime(peers) {}
        }
        // After the flood a client with a key is served as before.
        let run = try RunningProgram.run("safelight", ["album", "list", "--wait", "20"], environment: services.remote)
        #expect(run.status == 0, "\(run.errors)")
        let metrics = try await connections(services)
        #expect(metrics["mostTCP"]?.intValue == 256)
        #expect((metrics["refusedTCP"]?.intValue ?? 0) > 1000, "\(metrics)")
        services.stop()
    }

    @Test func `1,500 connections over ipc leave a service with 512 descriptors running`() async throws {
        let services = try Services()
        for name in ["catalog", "change-broker", "feed"] {
            let path = services.services.folder.file("run/\(name).sock")
            let peers = (0..<Self.connections).compactMap { _ in try? RawZMTP(path: path) }
            #expect(peers.count > 400)
            // Refused connections have been closed by the service.
            #expect(peers.last?.waitForEnd(seconds: 10) == true, "\(name)")
            #expect(services.areRunning, "\(services.logs)")
        }
        try await services.askLocally()
        services.stop()
    }

    private func connections(_ services: Services) async throws -> JSONObject {
        let library = try services.services.library()
        let metrics = try await library.catalog.metrics()
        await library.close()
        return metrics["connections"]?.objectValue ?? [:]
    }
}
