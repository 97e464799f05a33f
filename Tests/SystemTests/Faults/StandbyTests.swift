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
        let folder = try TemporaryFolder("standby")
        let store = ["SAFELIGHT_STORE": try PostgreSQLServer.shared().address(library: folder.path)]
        let (hostA, hostB) = (
            try SafelightFixture("a", environment: store), try SafelightFixture("b", environment: store)
        )
        try hostA.start([.catalog])
        let first = try await hostA.library().perform([.createCollection(.init(title: "first"))])
        try hostB.start([.catalog])
        let standby = try hostB.library()
        await #expect(throws: RPCError.self) { try await standby.perform([.createCollection(.init(title: "refused"))]) }
        let stopped = try #require(hostA.program(.catalog))
        stopped.signal(SIGSTOP)
        let catalog = try #require(hostB.program(.catalog))
        #expect(catalog.wait(seconds: 60) { $0.errorText.contains("this catalog writes the library") })
        let second = try await standby.perform([.createCollection(.init(title: "second"))])
        #expect(second.sequence == first.sequence + 1)
        stopped.signal(SIGCONT)
        let late = try hostA.library("late")
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
        #expect(hostA.stop() == [] && hostB.stop() == [])
    }

    @Test func `a file whose catalog was killed before its upload is uploaded when that catalog stands by`() throws {
        let folder = try TemporaryFolder("standby")
        let objects = try S3Server()
        let store = try objects.environment.merging([
            "SAFELIGHT_STORE": try PostgreSQLServer.shared().address(library: folder.path)
        ]) { $1 }
        let (hostA, hostB) = (
            try SafelightFixture("a", environment: store), try SafelightFixture("b", environment: store)
        )
        try hostA.start([.catalog])
        try objects.setFaults(#"{"status": 503, "code": "SlowDown"}"#)
        try hostA.folder.write(TestImages.jpeg(width: 600, height: 400), to: "photo.jpg")
        let imported = try hostA.safelight(["import", hostA.folder.file("photo.jpg")])
        #expect(imported.status == 0, "\(imported.errors)")
        try hostB.start([.catalog])
        hostA.killHard(.catalog)
        let writer = try #require(hostB.program(.catalog))
        #expect(writer.wait(seconds: 60) { $0.errorText.contains("this catalog writes the library") })
        try objects.setFaults("{}")
        try hostA.start([.catalog])
        let standby = try #require(hostA.program(.catalog))
        #expect(standby.wait(seconds: 60) { $0.errorText.contains("this catalog is a standby") })
        let end = ContinuousClock.now + .seconds(60)
        while ContinuousClock.now < end {
            let storage = try JSON(parsing: Array(hostB.safelight(["storage", "--json"]).output.utf8))
            if storage["waitingCount"]?.intValue == 0 { break }
        }
        let exported = try hostB.safelight(["export", "--download", "--output", hostB.folder.file("exported")])
        #expect(exported.status == 0, "\(exported.errors)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: hostB.folder.file("exported")).count == 1)
        #expect(!standby.errorText.contains("uploading failed"), "\(standby.errorText)")
        #expect(hostA.stop() == [] && hostB.stop() == [])
    }

    @Test func `a takeover of a server that lost changes ends the catalog, and its next start has another history`()
        async throws
    {
        let folder = try TemporaryFolder("standby")
        let address = try PostgreSQLServer.shared().address(library: folder.path)
        let store = ["SAFELIGHT_STORE": address]
        let (hostA, hostB) = (
            try SafelightFixture("a", environment: store), try SafelightFixture("b", environment: store)
        )
        try hostA.start([.catalog])
        let library = try hostA.library()
        let first = try await library.perform([.createCollection(.init(title: "first"))])
        try hostB.start([.catalog])
        let lost = try await library.perform([.createCollection(.init(title: "lost"))])
        var fetch = FetchDescription(.collections)
        fetch.collectionType = "album"
        #expect(try await hostB.library().collections(fetch, atLeast: lost.token).collections.count == 2)
        // The state of a promoted replica that had not received the last change.
        let writer = try #require(hostA.program(.catalog))
        writer.signal(SIGSTOP)
        try PostgreSQLServer.execute(
            """
            DELETE FROM collection WHERE title = 'lost'; DELETE FROM change WHERE sequence = \(lost.sequence);
            UPDATE library SET head = \(first.sequence)
            """,
            at: address
        )
        writer.killHard()
        let standby = try #require(hostB.program(.catalog))
        let status = standby.wait(seconds: 60)
        #expect(status != nil && status != 0)
        #expect(standby.errorText.contains("has lost the changes \(lost.sequence) to \(lost.sequence)"))
        try hostB.restart(.catalog)
        let again = try hostB.library("again")
        let next = try await again.perform([.createCollection(.init(title: "next"))])
        #expect(next.token.library != lost.token.library && next.sequence > lost.sequence + 1)
        let error = await #expect(throws: RPCError.self) { try await again.collections(fetch, atLeast: lost.token) }
        #expect(error?.errorCode == .tokenExpired, "\(error?.message ?? "")")
        #expect(hostB.stop() == [])
    }

    /// Two catalogs that have their library in one database: the second one writes.
    private struct Cluster {
        let objects: S3Server
        let hostA: SafelightFixture
        let hostB: SafelightFixture
        /// The variables of a client with the addresses of both.
        let client: [String: String]
    }

    private func startCluster() throws -> Cluster {
        let folder = try TemporaryFolder("standby")
        let objects = try S3Server()
        let store = try objects.environment.merging([
            "SAFELIGHT_STORE": try PostgreSQLServer.shared().address(library: folder.path)
        ]) { $1 }
        let (hostA, hostB) = (
            try SafelightFixture("a", environment: store), try SafelightFixture("b", environment: store)
        )
        try hostB.start([.catalog])
        try hostA.start([.catalog])
        let addresses = try [hostA, hostB].map { try $0.address("catalog").description }.joined(separator: ",")
        let client = hostA.environment.merging(["SAFELIGHT_CATALOG": addresses]) { $1 }
        return Cluster(objects: objects, hostA: hostA, hostB: hostB, client: client)
    }

    @Test
    func `a client with both addresses changes and imports through the writer, and continues with the other one`()
        async throws
    {
        let cluster = try startCluster()
        let (hostA, hostB, client) = (cluster.hostA, cluster.hostB, cluster.client)
        func safelight(_ arguments: String...) throws -> (status: Int32?, output: String, errors: String) {
            try RunningProgram.run("safelight", arguments, environment: client, seconds: 60)
        }
        // The first one of the list is the standby.
        let status = try JSON(parsing: safelight("status", "catalog", "--json").output)
        #expect(status["services"]?["catalog"]?["role"] == "standby", "\(status)")
        let photo = try hostA.folder.write(TestImages.jpeg(width: 300, height: 200), to: "photo.jpg")
        let imported = try safelight("import", photo)
        #expect(imported.status == 0, "\(imported.errors)")
        #expect(try safelight("favorite", "photo.jpg").status == 0)
        // The file is on the writer's disk, and perhaps not at the object store yet.
        let exported = try safelight("export", "--output", hostA.folder.file("exported"))
        #expect(exported.status == 0, "\(exported.errors)")
        let script = """
            import asyncio, os, signal, sys, time, safelight
            from safelight import aio
            first, second = int(sys.argv[1]), int(sys.argv[2])
            library = safelight.Library(client="list")
            def change(title):
                with library.changing(transaction=title, deadline=60) as changes:
                    changes.create_album(title)
                assert [album.title for album in library.albums].count(title) == 1
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
        let numbers = try [hostA, hostB].map { "\(try #require($0.program(.catalog)).processIdentifier)" }
        let ran = try RunningProgram.run(
            try Needed.python(),
            ["-B", "-c", script] + numbers,
            environment: client.merging(PythonPackage.environment) { $1 },
            seconds: 120
        )
        for fixture in [hostA, hostB] { fixture.program(.catalog)?.signal(SIGCONT) }
        #expect(ran.output == "done\n", "\(ran.errors)")
        #expect(hostA.stop() == [] && hostB.stop() == [])
        withExtendedLifetime(cluster) {}
    }

    @Test func `services with both addresses follow the catalog that answers, and continue when the writer is killed`()
        async throws
    {
        let cluster = try startCluster()
        let (hostA, hostB) = (cluster.hostA, cluster.hostB)
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
        let photo = try hostA.folder.write(TestImages.jpeg(width: 300, height: 200), to: "photo.jpg")
        let token = try safelight("status", "--token").output.trimmingCharacters(in: .whitespacesAndNewlines)
        let imported = try safelight("import", photo)
        #expect(imported.status == 0, "\(imported.errors)")
        #expect(try safelight("warm", "--size", "64").status == 0)
        // Files that only the writer's host has would be lost with it.
        try await waitUntil("all files are uploaded", seconds: 60) {
            try JSON(parsing: safelight("storage", "--json").output)["waitingCount"]?.intValue == 0
        }
        // The change-broker follows the first one of the list, which is the standby. It switches before its connection
        // would time out.
        let standby = try #require(hostA.program(.catalog))
        standby.signal(SIGSTOP)
        let start = ContinuousClock.now
        #expect(try safelight("album", "create", "while the standby is stopped").status == 0)
        #expect(try safelight("watch", "--since", token, "--count", "2").status == 0)
        #expect(ContinuousClock.now - start < .seconds(10))
        standby.signal(SIGCONT)
        for (name, writer) in [("first", hostB), ("second", hostA)] {
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
        #expect(services.stop() == [] && hostA.stop() == [] && hostB.stop() == [])
        withExtendedLifetime(cluster) {}
    }
}
