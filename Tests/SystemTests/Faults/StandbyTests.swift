import Contracts
import Foundation
import JSONValue
import Messaging
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Two catalogs of one library on PostgreSQL, as processes.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct StandbyTests {
    @Test func `a writer that is stopped and continues after the takeover changes nothing`() async throws {
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
        // The former writer is now the standby.
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
        // The state of a promoted replica that had not received the last change.
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
        #expect(next.token.library != lost.token.library && next.sequence > lost.sequence + 1)
        let error = await #expect(throws: RPCError.self) { try await again.collections(fetch, atLeast: lost.token) }
        #expect(error?.errorCode == .tokenExpired, "\(error?.message ?? "")")
        #expect(two.stop() == [])
    }

    /// Two catalogs that have their library in one database: the second one writes.
    private struct Cluster {
        let objects: S3Server
        let one: SafelightFixture
        let two: SafelightFixture
        /// The variables of a client with the addresses of both.
        let client: [String: String]
    }

    private func cluster() throws -> Cluster {
        let place = try TemporaryFolder("standby")
        let objects = try S3Server()
        let store = try objects.environment.merging([
            "SAFELIGHT_STORE": try PostgreSQLServer.shared().address(library: place.path)
        ]) { $1 }
        let (one, two) = (
            try SafelightFixture("one", environment: store), try SafelightFixture("two", environment: store)
        )
        try two.start([.catalog])
        try one.start([.catalog])
        let addresses = try [one, two].map { try $0.address("catalog").description }.joined(separator: ",")
        let client = one.environment.merging(["SAFELIGHT_CATALOG": addresses]) { $1 }
        return Cluster(objects: objects, one: one, two: two, client: client)
    }

    @Test
    func `a client with both addresses changes and imports through the writer, and continues with the other one`()
        async throws
    {
        let cluster = try cluster()
        let (one, two, client) = (cluster.one, cluster.two, cluster.client)
        func safelight(_ arguments: String...) throws -> (status: Int32?, output: String, errors: String) {
            try RunningProgram.run("safelight", arguments, environment: client, seconds: 60)
        }
        // The first one of the list is the standby.
        let status = try JSON(parsing: safelight("status", "catalog", "--json").output)
        #expect(status["services"]?["catalog"]?["role"] == "standby", "\(status)")
        let photo = try one.folder.write(TestImages.jpeg(width: 300, height: 200), to: "photo.jpg")
        let imported = try safelight("import", photo)
        #expect(imported.status == 0, "\(imported.errors)")
        #expect(try safelight("favorite", "photo.jpg").status == 0)
        // The file is on the writer's disk, and perhaps not at the object store yet.
        let exported = try safelight("export", "--output", one.folder.file("exported"))
        #expect(exported.status == 0, "\(exported.errors)")
        let script = """
            import asyncio, os, signal, sys, time, safelight
            from safelight import aio
            first, second = int(sys.argv[1]), int(sys.argv[2])
            library = safelight.Library(client="list")
            def change(title):
                with library.changing(transaction=title, deadline=60) as changes:
                    changes.create_album(title)
                assert [one.title for one in library.albums].count(title) == 1
            def read():
                start = time.monotonic()
                for _ in range(20):
                    assert library.count() == 1
                seconds = time.monotonic() - start
                assert seconds < 3, seconds
            assert len(library.fetch()[0].resource().read()) > 1000
            change("before")
            # The writer is stopped: the other catalog answers reads, and takes over.
            os.kill(second, signal.SIGSTOP)
            read()
            change("after")
            os.kill(second, signal.SIGCONT)
            # Now the catalog that has answered reads is stopped.
            os.kill(first, signal.SIGSTOP)
            read()
            os.kill(first, signal.SIGCONT)
            async def use():
                async with aio.AsyncLibrary(client="list") as library:
                    await library.perform([{"type": "collection.create", "title": "async"}], deadline=60)
                    os.kill(first, signal.SIGSTOP)
                    start = time.monotonic()
                    assert await library.fetch().count() == 1
                    seconds = time.monotonic() - start
                    assert seconds < 3, seconds
            asyncio.run(use())
            os.kill(first, signal.SIGCONT)
            print("done")
            """
        let paths = [TestPaths.package + "/Shared/python", TestEnvironment.text("PYTHONPATH")].compactMap { $0 }
        let numbers = try [one, two].map { "\(try #require($0.program(.catalog)).processIdentifier)" }
        let ran = try RunningProgram.run(
            try Needed.python(),
            ["-B", "-c", script] + numbers,
            environment: client.merging(["PYTHONPATH": paths.joined(separator: ":")]) { $1 },
            seconds: 120
        )
        for fixture in [one, two] { fixture.program(.catalog)?.signal(SIGCONT) }
        #expect(ran.output == "done\n", "\(ran.errors)")
        #expect(one.stop() == [] && two.stop() == [])
        withExtendedLifetime(cluster) {}
    }

    @Test func `services with both addresses follow the catalog that answers, and continue when the writer is killed`()
        async throws
    {
        let cluster = try cluster()
        let (one, two) = (cluster.one, cluster.two)
        let addresses = ["SAFELIGHT_CATALOG": cluster.client["SAFELIGHT_CATALOG"] ?? ""]
        let services = try SafelightFixture(
            "services",
            environment: addresses,
            arguments: [.thumbnailer: ["--remote-resources"], .editor: ["--remote-resources"]]
        )
        try services.start([.changeBroker, .thumbnailer, .editor])
        func safelight(_ arguments: String...) throws -> (status: Int32?, output: String, errors: String) {
            try RunningProgram.run("safelight", arguments, environment: services.environment, seconds: 60)
        }
        let photo = try one.folder.write(TestImages.jpeg(width: 300, height: 200), to: "photo.jpg")
        let token = try safelight("status", "--token").output.trimmingCharacters(in: .whitespacesAndNewlines)
        let imported = try safelight("import", photo)
        #expect(imported.status == 0, "\(imported.errors)")
        #expect(try safelight("warm", "--size", "64").status == 0)
        // Files that only the writer's host has would be lost with it.
        try await FeedChecker.until("all files are uploaded", seconds: 60) {
            try JSON(parsing: safelight("storage", "--json").output)["waitingCount"]?.intValue == 0
        }
        // The change-broker follows the first one of the list, which is the standby. It switches before its connection
        // would time out.
        let standby = try #require(one.program(.catalog))
        standby.signal(SIGSTOP)
        let start = ContinuousClock.now
        #expect(try safelight("album", "create", "while the first one stands still").status == 0)
        #expect(try safelight("watch", "--since", token, "--count", "2").status == 0)
        #expect(ContinuousClock.now - start < .seconds(10))
        standby.signal(SIGCONT)
        for (name, writer) in [("first", two), ("second", one)] {
            writer.killHard(.catalog)
            let edited = try safelight("edit", "photo.jpg", "--exposure", "0.5", "--download")
            #expect(edited.status == 0, "\(edited.errors)")
            let album = try safelight("album", "create", name)
            #expect(album.status == 0, "\(album.errors)")
            try writer.start([.catalog])
        }
        let watched = try safelight("watch", "--since", token, "--count", "6", "--json")
        #expect(
            watched.status == 0 && watched.output.split(separator: "\n").count == 6,
            "\(watched.output)\(watched.errors)"
        )
        #expect(services.stop() == [] && one.stop() == [] && two.stop() == [])
        withExtendedLifetime(cluster) {}
    }
}
