import Foundation
import Hosting
import Messaging
import TestSupport
import Testing

@testable import CommandLine

@Suite(.timeLimit(.minutes(1)))
struct MachineChecksTests {
    @Test func `a lock is not mistaken for that of a file with the same inode number on another filesystem`() throws {
        let folder = try TemporaryFolder("locks")
        let run = RunFolder(path: folder.path)
        let address = try run.address(of: .catalog)
        let lock = try EndpointLock.acquire(address, for: .catalog)
        defer { withExtendedLifetime(lock) {} }
        let checks = MachineChecks(library: folder.file("library"), run: run, keys: nil, now: 0)
        func sockets() -> [String] { checks.findings().filter { $0.subject == "socket" }.map(\.text) }
        // There is no socket, and the service seems to run.
        let process = ProcessInfo.processInfo.processIdentifier
        #expect(sockets().count == 1 && sockets().allSatisfy { $0.contains("process \(process)") })
        // The file now looks as if its service had ended, while a file of another filesystem is locked.
        let file = try #require(address.path) + ".lock"
        try Data("\(process + 1)\n".utf8).write(to: URL(filePath: file))
        #expect(sockets() == [])
        // It may be the lock of a process that has this number in another container.
        let locks = checks.findings().filter { $0.subject == "lock" }.map(\.text)
        #expect(locks.count == 1 && locks.allSatisfy { $0.contains("may be locked") }, "\(locks)")
    }

    @Test func `a run folder that was deleted while the catalog runs is a problem`() throws {
        let folder = try TemporaryFolder("deleted-run")
        let address = try RunFolder(path: folder.path).address(of: .catalog)
        let lock = try EndpointLock.acquire(address, for: .catalog)
        defer { withExtendedLifetime(lock) {} }
        let library = folder.file("library")
        try FileManager.default.createDirectory(atPath: library, withIntermediateDirectories: true)
        let checks = MachineChecks(library: library, run: RunFolder(path: folder.file("run")), keys: nil, now: 0)
        func finding() throws -> Finding { try #require(checks.findings().first { $0.subject == "run folder" }) }
        #expect(try finding().level == .warning)
        // The file is locked like the lock of a library whose catalog runs.
        let file = try #require(address.path) + ".lock"
        #expect(link(file, library + "/lock") == 0)
        let process = ProcessInfo.processInfo.processIdentifier
        let found = try finding()
        #expect(found.level == .problem && found.text.contains("process \(process)"))
        #expect(found.advice.contains("end the services"))
    }

    @Test func `no check advises to remove the run folder, because services may be running in it`() throws {
        let folder = try TemporaryFolder("run")
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: folder.path)
        let checks = MachineChecks(library: folder.path, run: RunFolder(path: folder.path), keys: nil, now: 0)
        let finding = try #require(checks.findings().first { $0.subject == "run folder" })
        #expect(finding.level == .problem)
        #expect(!finding.advice.contains("remove"))
    }
}
