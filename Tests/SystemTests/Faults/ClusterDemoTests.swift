import Foundation
import TestSupport
import Testing

/// The demo of a library on many hosts, in its short form. It takes a minute and a half and needs root, so it runs only
/// if `SAFELIGHT_SOAK` is set.
@Suite(
    .serialized,
    .timeLimit(.minutes(10)),
    .enabled(if: TestEnvironment.text("SAFELIGHT_SOAK") != nil, "it takes minutes; SAFELIGHT_SOAK=1 runs it"),
    .enabled(if: getuid() == 0, "network namespaces need root")
)
struct ClusterDemoTests {
    /// Returns the processes whose arguments name a folder of the demo.
    private func processes() throws -> [String] {
        try RunningProgram.run("/bin/ps", ["-eo", "args"]).output.split(separator: "\n").map(String.init)
            .filter { $0.contains("/tmp/safelight-cluster-") }
    }

    private func folders() throws -> Set<String> {
        Set(try FileManager.default.contentsOfDirectory(atPath: "/tmp").filter { $0.hasPrefix("safelight-cluster-") })
    }

    private func script() throws -> String {
        for program in ["ip", "etcd", "patroni"] { _ = try Needed.program(program) }
        return TestPaths.package + "/compose/cluster-demo.sh"
    }

    /// The arguments of the demo: its programs, and the folder of the Python packages that `make setup` installs.
    private var arguments: [String] {
        let packages = TestEnvironment.text("PYTHONPATH").map { [$0] } ?? []
        return ["--short", TestPaths.executables] + packages
    }

    @Test func `changes continue after the writing catalog and the primary host die, each delivered once`() throws {
        let before = try folders()
        let run = try RunningProgram.run(try script(), arguments, seconds: 400)
        #expect(run.status == 0, "\(run.output.suffix(4000))\(run.errors.suffix(4000))")
        #expect(run.output.contains("the second change-broker delivered each of them once, in order"))
        for part in ["the writing catalog was killed", "the primary's host was lost"] {
            let line = try #require(run.output.split(separator: "\n").first { $0.hasPrefix(part) }, "\(part)")
            TestPaths.report(String(line))
            let seconds = try #require(line.firstMatch(of: /no change for ([0-9.]+) s/).flatMap { Double($0.1) })
            // Twice Patroni's ttl, and a generous allowance for a busy machine.
            #expect(seconds < (part.contains("catalog") ? 20 : 60), "\(line)")
        }
        #expect(try folders() == before && processes().isEmpty)
    }

    @Test func `an interrupted demo leaves no process and no file`() throws {
        let before = try folders()
        let demo = try RunningProgram(try script(), arguments)
        #expect(demo.wait(seconds: 120) { $0.outputText.contains("Starting an S3 server") }, "\(demo.errorText)")
        demo.signal(SIGINT)
        #expect(demo.wait(seconds: 60) == 130)
        #expect(try folders() == before && processes().isEmpty)
    }
}
