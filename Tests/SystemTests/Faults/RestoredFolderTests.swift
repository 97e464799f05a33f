import JSONValue
import Contracts
import Foundation
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// An older copy of the whole library folder, including the head file, that replaces the library.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct RestoredFolderTests {
    private static func change(_ count: Int, _ library: PhotoLibrary) async throws -> [ChangeToken] {
        var tokens: [ChangeToken] = []
        for number in 0..<count {
            let request = ChangeRequest.createCollection(.init(ref: "a", title: "\(number)"))
            tokens.append(try await library.perform([request]).token)
        }
        return tokens
    }

    private static func run(_ arguments: [String]) throws {
        let run = try RunningProgram.run("/usr/bin/env", arguments)
        #expect(run.status == 0, "\(arguments): \(run.errors)")
    }

    /// Returns stopped services whose library was copied before its last five changes, and the tokens of these changes.
    private static func makeServicesWithCopy() async throws -> (services: SafelightFixture, lost: [ChangeToken]) {
        let services = try SafelightFixture("folder")
        try services.start([.catalog])
        var library = try services.library()
        _ = try await change(3, library)
        await library.close()
        #expect(services.stop() == [])
        try run(["cp", "-a", services.folder.file("library"), services.folder.file("copy")])
        try services.start([.catalog])
        library = try services.library()
        let lost = try await change(5, library)
        await library.close()
        #expect(services.stop() == [])
        return (services, lost)
    }

    @Test(arguments: [true, false])
    func `an older copy of the folder begins a new history, in which no sequence is assigned twice`(isNew: Bool)
        async throws
    {
        let (services, lost) = try await Self.makeServicesWithCopy()
        let folder = services.folder.file("library")
        // The folder is replaced as a whole, or the copy is written over the existing files.
        if isNew { try Self.run(["rm", "-r", folder]) }
        for ending in ["-wal", "-shm"] { unlink(folder + "/library.sqlite" + ending) }
        try Self.run(["cp", "-aT", services.folder.file("copy"), folder])

        try services.start([.catalog, .changeBroker])
        let library = try services.library()
        let head = try await library.currentToken().token
        let last = try #require(lost.last)
        #expect(head.library != last.library)
        #expect(head.sequence > last.sequence)
        for token in lost {
            let error = await #expect(throws: RPCError.self) {
                try await library.catalog.ask(ChangesSince(token: token))
            }
            #expect(error?.errorCode == .tokenExpired)
        }
        let next = try await Self.change(1, library)
        #expect(next.first?.sequence == head.sequence + 1)
        await library.close()
        #expect(services.stop() == [])
        let log = services.program(.catalog)?.errorText ?? ""
        #expect(log.contains("begins a new history") && log.contains("restored"), "\(log)")

        // This happens once: afterwards the library belongs to this folder.
        try services.start([.catalog])
        let again = try services.library()
        #expect(try await again.currentToken().token.library == head.library)
        await again.close()
        #expect(services.stop() == [])
    }

    @Test func `after a rename of the folder, a restart and a kill the history continues`() async throws {
        let services = try SafelightFixture("folder")
        try services.start([.catalog])
        let library = try services.library()
        let token = try #require(try await Self.change(3, library).last)
        for isKilled in [true, false] {
            if isKilled { services.killHard(.catalog) } else { #expect(services.stop() == []) }
            try services.start([.catalog])
            #expect(try await library.currentToken().token == token)
        }
        await library.close()
        #expect(services.stop() == [])
        let elsewhere = services.folder.file("elsewhere")
        try FileManager.default.moveItem(atPath: services.folder.file("library"), toPath: elsewhere)
        let moved = try SafelightFixture("moved", environment: ["SAFELIGHT_LIBRARY": elsewhere])
        try moved.start([.catalog])
        let same = try moved.library()
        #expect(try await same.currentToken().token == token)
        await same.close()
        #expect(moved.stop() == [])
    }

    @Test func `a missing head file begins a new history`() async throws {
        let (services, lost) = try await Self.makeServicesWithCopy()
        unlink(services.folder.file("library/head"))
        try services.start([.catalog])
        let library = try services.library()
        let head = try await library.currentToken().token
        #expect(head.library != lost.last?.library && head.sequence > lost.last?.sequence ?? .max)
        await library.close()
        #expect(services.stop() == [])
    }
}
