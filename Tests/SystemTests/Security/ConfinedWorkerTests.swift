import Foundation
import Hosting
import JSONValue
import Logging
import PhotoClient
import TestSupport
import Testing

/// Workers of the real executables attempt operations that hostile bytes could make them run.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct ConfinedWorkerTests {
    private static let refusals = ["Operation not permitted", "Permission denied", "Function not implemented"]

    private func pool(_ program: String) -> WorkerPool {
        var limits = WorkerLimits()
        limits.memoryBytes = 3 << 30
        limits.fileSizeBytes = 64 << 10
        return WorkerPool(
            executable: TestPaths.executables + "/" + program,
            count: 1,
            limits: limits,
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        )
    }

    private func status(of pid: Int64) throws -> [Substring: String] {
        let text = try String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)
        let lines = text.split(separator: "\n").map { $0.split(separator: ":", maxSplits: 1) }
        return Dictionary(lines.filter { $0.count == 2 }.map { ($0[0], $0[1].trimmingCharacters(in: .whitespaces)) }) {
            first,
            _ in first
        }
    }

    @Test(arguments: ["thumbnailer", "editor", "catalog"])
    func `a worker can neither open files, connect, run programs nor reach other processes`(program: String)
        async throws
    {
        let services = try SafelightFixture("confined")
        try services.start([.catalog])
        let key = try services.folder.write(Array("secret".utf8), to: "keys/server.key_secret")
        let folders = [services.folder.file("library"), services.folder.file("keys"), "/proc/self", "/etc", "/"]
        let files = [
            services.folder.file("run") + "/catalog.sock", services.folder.file("library") + "/library.sqlite", key,
            "/etc/passwd", "/proc/self/environ",
        ]
        let pool = pool(program)
        try await pool.start()
        let pid = try #require(pool.metrics()["pids"]?.arrayValue?.first?.intValue)
        let result = try await pool.run(
            WorkerJob(
                method: Confinement.attemptsMethod,
                params: ["paths": JSON(files + folders), "isThorough": true]
            )
        )
        let attempts = try #require(result.result["attempts"]?.objectValue?.members)
        #expect(attempts.count > 70)
        for attempt in attempts {
            let text = attempt.value.stringValue ?? ""
            // Listing a path that is a regular file fails with ENOTDIR even without confinement.
            let isFile = attempt.name.hasPrefix("list") && files.contains { attempt.name.hasSuffix($0) }
            #expect(Self.refusals.contains(text) || isFile && text == "Not a directory", "\(attempt.name): \(text)")
        }
        let status = try status(of: pid)
        for set in ["CapEff", "CapPrm", "CapInh", "CapAmb"] { #expect(status[Substring(set)] == "0000000000000000") }
        if getuid() == 0 { #expect(status["CapBnd"] == "0000000000000000") }
        #expect(status["NoNewPrivs"] == "1")
        #expect(status["Seccomp"] == "2", "a filter")
        #expect(pool.confinement?.isComplete == true, "\(String(describing: pool.confinement))")
        await pool.stop(graceSeconds: 1)
        #expect(services.stop() == [])
    }

    @Test func `figures, --check and doctor report how workers are confined`() async throws {
        let services = try SafelightFixture("confinement")
        try services.start()
        let library = try services.library()
        for client in [library.catalog, library.thumbnailer, library.editor] {
            let confinement = try await client.metrics()["workers"]?["confinement"]?.stringValue
            for part in ["Landlock (version", "seccomp"] {
                #expect(confinement?.contains(part) == true, "\(confinement ?? "")")
            }
        }
        for service in ServiceName.allCases {
            let check = try RunningProgram.run(service.rawValue, ["--check"], environment: services.environment)
            let settings = try JSON(parsing: Array(check.output.utf8))
            #expect(check.status == 0 && settings["service"]?.stringValue == service.rawValue, "\(check.errors)")
            let members = ["service", "endpoints", "library", "limits", "memory", "confinement"]
            #expect(settings.objectValue?.members.map(\.name) == members, "the same form everywhere")
            #expect(settings["limits"]?["maxConnections"] == 4096 && settings["memory"]?["requestBytes"] != nil)
            let confinement = settings["confinement"]
            if service == .changeBroker {
                #expect(confinement == .null, "it has no workers")
            } else {
                #expect(confinement?.stringValue?.contains("Landlock (version") == true, "\(check.output)")
            }
        }
        let doctor = try JSON(parsing: Array(services.safelight(["doctor", "--json"]).output.utf8))
        let findings = doctor["findings"]?.arrayValue?.filter { $0["subject"] == "workers" } ?? []
        #expect(findings.contains { $0["level"] == "ok" && $0["text"]?.stringValue?.contains("Landlock") == true })
        await library.close()
        #expect(services.stop() == [])
    }
}
