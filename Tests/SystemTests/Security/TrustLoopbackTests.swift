import Foundation
import TestSupport
import Testing

/// TCP without keys, even on the loopback address: every local user could connect.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct TrustLoopbackTests {
    @Test func `a service refuses a loopback address without keys, and its error names the remedy`() throws {
        let services = try SafelightFixture("loopback")
        for (name, flag) in [("catalog", "--catalog"), ("change-broker", "--feed"), ("editor", "--edits")] {
            let run = try RunningProgram.run(
                name,
                [flag, "tcp://127.0.0.1:0", "--ready-fd", "1"],
                environment: services.environment,
                seconds: 10
            )
            #expect(run.status != 0 && run.status != nil, "\(name)")
            #expect(!run.output.contains("ready"), "\(name)")
            #expect(run.errors.contains("--trust-loopback") && run.errors.contains("--listen"), "\(run.errors)")
        }
    }

    @Test func `with --trust-loopback a service listens there with a warning, and clients need the flag too`() throws {
        let services = try SafelightFixture("loopback")
        let catalog = try RunningProgram(
            "catalog",
            ["--catalog", "tcp://127.0.0.1:0", "--trust-loopback", "--ready-fd", "1"],
            environment: services.environment
        )
        #expect(catalog.waitForOutput("ready"), "\(catalog.errorText)")
        let pattern = /tcp:\/\/127\.0\.0\.1:[0-9]+/
        #expect(catalog.wait { $0.errorText.contains("service started") })
        let address = try #require(
            catalog.errorText.split(separator: "\n").last { $0.contains("service started") }?.firstMatch(of: pattern)
        )
        #expect(catalog.errorText.contains("every local user"))
        func list(_ extra: [String: String]) throws -> (status: Int32?, output: String, errors: String) {
            try RunningProgram.run(
                "safelight",
                ["album", "list", "--catalog", String(address.output), "--wait", "5"],
                environment: services.environment.merging(extra) { $1 }
            )
        }
        let refused = try list([:])
        #expect(refused.status == 1)
        #expect(refused.errors.contains("--trust-loopback") && refused.errors.contains("--server-key"))
        let served = try list(["SAFELIGHT_TRUST_LOOPBACK": "true"])
        #expect(served.status == 0, "\(served.errors)")
        catalog.signal(SIGTERM)
        #expect(catalog.wait(seconds: 20) == 0)
    }
}
