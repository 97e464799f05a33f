import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Two catalogs of one library on PostgreSQL, as processes.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct StandbyTests {
    @Test func `a writer that is stopped and goes on after the takeover changes nothing`() async throws {
        let place = try TemporaryFolder("standby")
        let store = ["SAFELIGHT_STORE": try PostgreSQLServer.shared().address(library: place.path)]
        let (one, two) = (
            try SafelightFixture("one", environment: store), try SafelightFixture("two", environment: store)
        )
        try one.start([.catalog])
        let first = try await one.library().perform([.createCollection(.init(title: "first"))])
        try two.start([.catalog])
        let standby = try two.library()
        await #expect(throws: RPCError.self) { try await standby.perform([.createCollection(.init(title: "refused"))]) }
        let stopped = try #require(one.program(.catalog))
        stopped.signal(SIGSTOP)
        let catalog = try #require(two.program(.catalog))
        #expect(catalog.wait(seconds: 60) { $0.errorText.contains("this catalog writes the library") })
        let second = try await standby.perform([.createCollection(.init(title: "second"))])
        #expect(second.sequence == first.sequence + 1)
        stopped.signal(SIGCONT)
        let late = try one.library("late")
        let error = await #expect(throws: RPCError.self) {
            try await late.perform([.createCollection(.init(title: "late"))], transaction: "late")
        }
        #expect(error?.errorCode == .libraryReadOnly, "\(error?.message ?? "")")
        let third = try await standby.perform([.createCollection(.init(title: "third"))])
        #expect(third.sequence == second.sequence + 1)
        // The former writer follows now.
        var fetch = FetchDescription(.collections)
        fetch.collectionType = "album"
        let albums = try await late.collections(fetch, atLeast: third.token).collections
        #expect(Set(albums.map(\.title)) == ["first", "second", "third"])
        #expect(one.stop() == [] && two.stop() == [])
    }

    @Test func `a file whose catalog was killed before its upload is uploaded when that catalog stands by`() throws {
        let place = try TemporaryFolder("standby")
        let objects = try S3Server()
        let store = try objects.environment.merging([
            "SAFELIGHT_STORE": try PostgreSQLServer.shared().address(library: place.path)
        ]) { $1 }
        let (one, two) = (
            try SafelightFixture("one", environment: store), try SafelightFixture("two", environment: store)
        )
        try one.start([.catalog])
        try objects.setFaults(#"{"status": 503, "code": "SlowDown"}"#)
        try one.folder.write(TestImages.jpeg(width: 600, height: 400), to: "photo.jpg")
        let imported = try one.safelight(["import", one.folder.file("photo.jpg")])
        #expect(imported.status == 0, "\(imported.errors)")
        try two.start([.catalog])
        one.killHard(.catalog)
        let writer = try #require(two.program(.catalog))
        #expect(writer.wait(seconds: 60) { $0.errorText.contains("this catalog writes the library") })
        try objects.setFaults("{}")
        try one.start([.catalog])
        let standby = try #require(one.program(.catalog))
        #expect(standby.wait(seconds: 60) { $0.errorText.contains("this catalog is a standby") })
        let end = ContinuousClock.now + .seconds(60)
        while ContinuousClock.now < end {
            let storage = try JSON(parsing: Array(two.safelight(["storage", "--json"]).output.utf8))
            if storage["waitingCount"]?.intValue == 0 { break }
        }
        let exported = try two.safelight(["export", "--download", "--output", two.folder.file("exported")])
        #expect(exported.status == 0, "\(exported.errors)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: two.folder.file("exported")).count == 1)
        #expect(!standby.errorText.contains("uploading failed"), "\(standby.errorText)")
        #expect(one.stop() == [] && two.stop() == [])
    }

    @Test func `a takeover of a server that lost changes ends the catalog, and its next start has another history`()
        async throws
    {
        let place = try TemporaryFolder("standby")
        let address = try PostgreSQLServer.shared().address(library: place.path)
        let store = ["SAFELIGHT_STORE": address]
        let (one, two) = (
            try SafelightFixture("one", environment: store), try SafelightFixture("two", environment: store)
        )
        try one.start([.catalog])
        let library = try one.library()
        let first = try await library.perform([.createCollection(.init(title: "first"))])
        try two.start([.catalog])
        let lost = try await library.perform([.createCollection(.init(title: "lost"))])
        var fetch = FetchDescription(.collections)
        fetch.collectionType = "album"
        #expect(try await two.library().collections(fetch, atLeast: lost.token).collections.count == 2)
        // A promoted replica looks like this if it had not received the last change.
        let writer = try #require(one.program(.catalog))
        writer.signal(SIGSTOP)
        try PostgreSQLServer.execute(
            """
            DELETE FROM collection WHERE title = 'lost'; DELETE FROM change WHERE sequence = \(lost.sequence);
            UPDATE library SET head = \(first.sequence)
            """,
            at: address
        )
        writer.killHard()
        let standby = try #require(two.program(.catalog))
        let status = standby.wait(seconds: 60)
        #expect(status != nil && status != 0)
        #expect(standby.errorText.contains("has lost the changes \(lost.sequence) to \(lost.sequence)"))
        try two.restart(.catalog)
        let again = try two.library("again")
        let next = try await again.perform([.createCollection(.init(title: "next"))])
        #expect(next.token.library != lost.token.library && next.sequence == lost.sequence + 1)
        let error = await #expect(throws: RPCError.self) { try await again.collections(fetch, atLeast: lost.token) }
        #expect(error?.errorCode == .tokenExpired, "\(error?.message ?? "")")
        #expect(two.stop() == [])
    }
}
