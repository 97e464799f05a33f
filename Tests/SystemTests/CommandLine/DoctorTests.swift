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

    @Test func `doctor reports no problem for healthy services, and names what was done to the files of a library`()
        throws
    {
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

        let root = services.folder.file("library/resources")
        let files = try FileManager.default.subpathsOfDirectory(atPath: root).filter { $0.hasSuffix("/") == false }
            .map { root + "/" + $0 }.filter { ($0 as NSString).lastPathComponent.count == 64 }.sorted()
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
}
