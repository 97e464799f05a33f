import Basics
import Contracts
import Foundation
import JSONValue
import Messaging
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// A catalog whose database server is not available when it starts.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct AbsentDatabaseTests {
    @Test func `the catalog reports an offline library, and serves it once the server is available`() async throws {
        let server = try PostgreSQLServer()
        let services = try SafelightFixture(
            "absent",
            environment: ["SAFELIGHT_STORE": try server.address(schema: "absent")]
        )
        try server.kill()
        try services.start([.catalog, .changeBroker])
        let library = try services.library()
        let health = try await library.catalog.health(deadline: .seconds(10))
        #expect(!health.isHealthy && health.problems.contains { $0.contains("Start PostgreSQL") }, "\(health.problems)")
        let error = await #expect(throws: RPCError.self) {
            try await library.collections(FetchDescription(.collections))
        }
        #expect(error?.errorCode == .libraryOffline)
        let status = try await library.catalog.ask(LibraryStatus()).result
        #expect(status.state == .offline && !status.isReadable)

        try server.restart()
        var isHealthy = false
        while !isHealthy {
            isHealthy = (try? await library.catalog.health(deadline: .seconds(2)).isHealthy) ?? false
            try await Task.sleep(for: .milliseconds(50))
        }
        let result = try await library.perform([.createCollection(.init(ref: "a", title: "Alps"))])
        let albums = try await library.collections(FetchDescription(.collections)).collections
        #expect(albums.contains { $0.title == "Alps" })
        // The change-broker follows the catalog from then on; until it has reached it, it is `unavailable`.
        while try await newestSequence(library) ?? -1 < result.token.sequence {
            try await Task.sleep(for: .milliseconds(50))
        }
        await library.close()
        #expect(services.stop() == [])
    }

    @Test func `the catalog reports the loss of the database server while it runs, and its return`() async throws {
        let server = try PostgreSQLServer()
        let services = try SafelightFixture("absent-later", environment: ["SAFELIGHT_STORE": server.address])
        try services.start([.catalog, .changeBroker])
        let library = try services.library()
        let result = try await library.perform([.createCollection(.init(ref: "a", title: "Alps"))])
        let before = try await library.catalog.ask(LibraryStatus()).result
        #expect(before.state == .available && before.isReadable && before.isWritable)
        #expect(try services.safelight(["status", "--json"]).output.contains("database server") == false)

        try server.kill()
        let away = try await library.catalog.ask(LibraryStatus(after: before.since), deadline: .seconds(20)).result
        // The role of this catalog may change before the server counts as unavailable.
        let status =
            away.state != .available
            ? away : try await library.catalog.ask(LibraryStatus(after: away.since), deadline: .seconds(20)).result
        #expect(status.state == .offline && !status.isReadable && !status.isWritable, "\(status)")
        let problem = try #require(status.problems.first)
        #expect(problem.name == "library_offline")
        #expect(problem.message.contains("database server") && !problem.message.contains("mount"), "\(problem)")
        let error = await #expect(throws: RPCError.self) {
            try await library.collections(FetchDescription(.collections))
        }
        #expect(error?.errorCode == .libraryOffline)
        #expect(error?.message.contains("database server") == true && error?.message.contains("mount") == false)
        let health = try await library.catalog.health(deadline: .seconds(10))
        #expect(!health.isHealthy && health.problems.contains { $0.contains("database server") }, "\(health.problems)")
        let shown = try services.safelight(["status"])
        #expect((shown.output + shown.errors).contains("database server"), "\(shown)")

        try server.restart()
        var now = status
        while now.state != .available || !now.isWritable {
            now = try await library.catalog.ask(LibraryStatus(after: now.since), deadline: .seconds(20)).result
            try #require(now.state == .available || !now.isWritable)
        }
        var next: PerformChanges.Result?
        while next == nil {
            next = try? await library.perform([.createCollection(.init(ref: "b", title: "Lakes"))])
        }
        #expect(next?.sequence == result.sequence + 1)
        #expect(try await library.catalog.health(deadline: .seconds(10)).isHealthy)
        await library.close()
        #expect(services.stop() == [])
    }

    /// Returns the newest sequence of the feed; nil while the change-broker has not reached the catalog.
    private func newestSequence(_ library: PhotoLibrary) async throws(RPCError) -> Int64? {
        do {
            return try await library.changeBroker.ask(FeedHeadRequest()).result.sequence
        } catch {
            guard error.errorCode == .unavailable else { throw error }
            return nil
        }
    }

    @Test func `a waiting catalog ends on SIGTERM, and at once if the database server refuses it`() throws {
        let server = try PostgreSQLServer()
        let services = try SafelightFixture("absent-end", environment: ["SAFELIGHT_STORE": server.address])
        try server.kill()
        try services.start([.catalog])
        #expect(services.stop() == [])
        try server.restart()
        let address = server.address.replacingOccurrences(of: "/postgres?", with: "/nowhere?")
        let refused = try RunningProgram.run("catalog", ["--store", address], environment: services.environment)
        #expect(refused.status != 0 && refused.errors.contains("does not exist"), "\(refused.errors)")
    }

    @Test(arguments: ["LATIN1", "SQL_ASCII"])
    func `a catalog does not start with a database whose encoding is not UTF8`(encoding: String) throws {
        let server = try PostgreSQLServer()
        let name = "other_\(encoding.lowercased())"
        try PostgreSQLServer.execute(
            "CREATE DATABASE \(name) ENCODING '\(encoding)' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'",
            at: server.address
        )
        let services = try SafelightFixture("absent-\(name)", environment: ["SAFELIGHT_STORE": server.address])
        let address = server.address.replacingOccurrences(of: "/postgres?", with: "/\(name)?")
        let refused = try RunningProgram.run(
            "catalog",
            ["--store", address],
            environment: services.environment,
            seconds: 20
        )
        #expect(refused.status.map { $0 != 0 } == true, "\(refused.errors)")
        #expect(refused.errors.contains("createdb --encoding=UTF8"), "\(refused.errors)")
        #expect(refused.errors.contains(encoding), "\(refused.errors)")
    }
}
