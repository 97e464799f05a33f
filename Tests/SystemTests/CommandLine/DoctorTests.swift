import Foundation
import JSONValue
import TestSupport
import Testing

/// `safelight doctor` beside running services, and on a library with damaged files.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct DoctorTests {
    private func doctor(_ services: SafelightFixture, _ arguments: String...) throws -> (
        status: Int32?, findings: [JSON]
    ) {
        let run = try services.safelight(["doctor", "--json"] + arguments)
        let json = try JSON(parsing: Array(run.output.utf8))
        return (run.status, json["findings"]?.arrayValue ?? [])
    }

    private func problems(_ findings: [JSON]) -> [String] {
        findings.filter { $0["level"] == "problem" }.compactMap { $0["text"]?.stringValue }
    }

    @Test func `doctor reports no problem for healthy services, and names missing and damaged files`() throws {
        let services = try SafelightFixture("doctor")
        for seed in 1...4 { try services.folder.write(TestImages.jpeg(seed: UInt64(seed)), to: "p/\(seed).jpg") }
        try services.start()
        #expect(try services.safelight(["import", services.folder.file("p")]).status == 0)
        let well = try doctor(services)
        #expect(problems(well.findings) == [])
        #expect(well.status == 0 || well.status == 1)
        for subject in ["catalog", "editor", "policy", "store", "libzmq"] {
            #expect(well.findings.contains { $0["subject"] == .string(subject) && $0["level"] == "ok" }, "\(subject)")
        }
        // One of the running services is missing.
        services.killHard(.editor)
        #expect(try problems(doctor(services).findings).contains { $0.contains("does not respond") })
        #expect(services.stop() == [])

        let files = try services.storedFiles
        #expect(files.count == 4)
        try FileManager.default.removeItem(atPath: files[0])
        var bytes = try Data(contentsOf: URL(filePath: files[1]))
        try (bytes + [0]).write(to: URL(filePath: files[1]))
        bytes = try Data(contentsOf: URL(filePath: files[2]))
        bytes[bytes.count / 2] ^= 1
        try bytes.write(to: URL(filePath: files[2]))
        let shallow = try doctor(services)
        #expect(shallow.status == 2)
        #expect(problems(shallow.findings).count == 2)
        let deep = problems(try doctor(services, "--deep").findings)
        #expect(deep.count == 3)
        for file in files.prefix(3) {
            #expect(deep.contains { $0.contains((file as NSString).lastPathComponent) })
        }
    }

    @Test func `doctor names the sockets that were deleted while their services run`() throws {
        let services = try SafelightFixture("doctor-sockets")
        try services.start()
        let run = services.folder.file("run")
        let sockets = try FileManager.default.contentsOfDirectory(atPath: run).filter { $0.hasSuffix(".sock") }.sorted()
        #expect(sockets.count == 6, "\(sockets)")
        for socket in sockets { try FileManager.default.removeItem(atPath: "\(run)/\(socket)") }
        let report = try doctor(services)
        #expect(report.status == 2)
        for socket in sockets {
            #expect(
                problems(report.findings).contains { $0.contains("\(run)/\(socket)") && $0.contains("process") },
                "\(socket): \(report.findings)"
            )
        }
        #expect(!report.findings.contains { $0["text"]?.stringValue?.contains("not running") == true })
        #expect(services.stop() == [])
        let stopped = try doctor(services)
        #expect(stopped.findings.contains { $0["text"]?.stringValue?.contains("not running") == true })
        #expect(!problems(stopped.findings).contains { $0.contains(".sock") }, "\(stopped.findings)")
    }

    @Test func `doctor asks for the address whose password the catalog hides, and reports no lost library`() throws {
        let server = try PostgreSQLServer(settings: [])
        let address = try server.address(schema: "hidden") + "&password=secret"
        let services = try SafelightFixture("doctor-hidden", environment: ["SAFELIGHT_STORE": address])
        try services.start()
        var environment = services.environment
        environment["SAFELIGHT_STORE"] = nil
        let run = try RunningProgram.run("safelight", ["doctor", "--json"], environment: environment)
        let findings = try JSON(parsing: Array(run.output.utf8))["findings"]?.arrayValue ?? []
        // The server of the tests does not wait for the disk (fsync is off), which doctor reports too.
        #expect(problems(findings).allSatisfy { $0.contains("fsync=off") }, "\(findings)")
        let store = findings.first { $0["subject"] == "store" }
        #expect(store?["level"] == "warning" && store?["advice"]?.stringValue?.contains("SAFELIGHT_STORE") == true)
        #expect(findings.contains { $0["subject"] == "library" && $0["level"] == "ok" }, "\(findings)")
        #expect(services.stop() == [])
    }

    @Test func `doctor checks the settings of PostgreSQL, its rows and the files of a library there`() throws {
        let server = try PostgreSQLServer(settings: ["fsync=on"])
        let address = try server.address(schema: "doctor")
        let services = try SafelightFixture("doctor-pg", environment: ["SAFELIGHT_STORE": address])
        for seed in 1...4 { try services.folder.write(TestImages.jpeg(seed: UInt64(seed)), to: "p/\(seed).jpg") }
        try services.start()
        #expect(try services.safelight(["import", services.folder.file("p")]).status == 0)
        #expect(try services.safelight(["album", "create", "Alps"]).status == 0)
        func text(_ findings: [JSON], _ subject: String) -> String? {
            findings.first { $0["subject"] == .string(subject) && $0["level"] == "ok" }?["text"]?.stringValue
        }
        // Beside the running services and without them.
        for isRunning in [true, false] {
            if !isRunning { #expect(services.stop() == []) }
            let well = try doctor(services).findings
            #expect(problems(well).filter { !$0.contains("respond") } == [])
            #expect(text(well, "database")?.contains("acknowledged changes are on the disks of the server") == true)
            #expect(text(well, "postgresql")?.hasPrefix("version ") == true)
            #expect(text(well, "store")?.hasPrefix("4 files") == true)
            #expect(text(well, "library")?.isEmpty == false)
            #expect(text(well, "sqlite") == nil)
        }
        for (setting, value) in [("synchronous_commit", "off"), ("full_page_writes", "off")] {
            try PostgreSQLServer.execute("ALTER SYSTEM SET \(setting) = \(value)", at: address)
            try PostgreSQLServer.execute("SELECT pg_reload_conf()", at: address)
            // A new session has the setting once the server has read its file.
            var texts: [String] = []
            for _ in 0..<20 where !texts.contains(where: { $0.contains("\(setting)=\(value)") }) {
                texts = problems(try doctor(services).findings)
            }
            #expect(texts.contains { $0.contains("\(setting)=\(value)") }, "\(texts)")
            try PostgreSQLServer.execute("ALTER SYSTEM RESET \(setting)", at: address)
        }
        try FileManager.default.removeItem(atPath: #require(try services.storedFiles.first))
        #expect(problems(try doctor(services).findings).contains { $0.contains("1 files of assets are missing") })
        try PostgreSQLServer.execute("DELETE FROM change WHERE sequence = 1", at: address)
        #expect(problems(try doctor(services).findings).contains { $0.contains("damaged: change: there are") })

        // A page of the table of assets is overwritten on the disk.
        try PostgreSQLServer.execute("CHECKPOINT", at: address)
        let path = try PostgreSQLServer.text("SELECT pg_relation_filepath('asset')", at: address)
        try server.kill()
        let file = try FileHandle(forUpdating: URL(filePath: server.folder.file("data/" + path)))
        try file.write(contentsOf: Data(repeating: 0xFF, count: 8192))
        try file.close()
        try server.restart()
        #expect(problems(try doctor(services).findings).contains { $0.contains("asset: invalid page in block 0") })
        // If the server does not answer, doctor reports that it cannot check the library.
        try server.kill()
        #expect(problems(try doctor(services).findings).contains { $0.contains("it cannot be checked") })
    }
}
