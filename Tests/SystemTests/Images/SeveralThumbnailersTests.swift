import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Three thumbnailers for one library, as on three other machines, behind one list of addresses.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct SeveralThumbnailersTests {
    private static let count = 120
    /// The minimum share of each of the three, which should be a third.
    private static let least = 16

    private let folder: TemporaryFolder
    private let network: NetworkFixture

    init() throws {
        folder = try TemporaryFolder("several")
        network = try NetworkFixture()
        let creation = try network.services.safelight(["keys", "create", "host", "--domain", "requests,feed,services"])
        guard creation.status == 0 else { throw FixtureError(description: creation.errors) }
    }

    private func address(_ host: Int) -> String { "ipc://\(folder.file("run\(host)"))/thumbnailer.sock" }

    private func start(_ host: Int) throws -> RunningProgram {
        let environment = network.variables("host").merging([
            "SAFELIGHT_RUN": folder.file("run\(host)"), "XDG_CACHE_HOME": folder.file("cache\(host)"),
            "SAFELIGHT_THUMBNAILER": address(host), "SAFELIGHT_REMOTE_RESOURCES": "true",
            "PATH": network.services.environment["PATH"] ?? "",
        ]) { $1 }
        let program = try RunningProgram("thumbnailer", ["--ready-fd", "1"], environment: environment)
        guard program.waitForOutput("ready") else { throw FixtureError(description: program.errorText) }
        return program
    }

    /// The environment of a client with the addresses of all three.
    private var environment: [String: String] {
        network.services.environment.merging([
            "SAFELIGHT_THUMBNAILER": (0..<3).map(address).joined(separator: ",")
        ]) { $1 }
    }

    /// Waits until a client is connected to all three, because it requests an image from the next instance if one is
    /// not connected.
    private func connect(_ library: PhotoLibrary) async throws {
        for instance in library.thumbnailer.instances { _ = try await instance.health(deadline: .seconds(30)) }
    }

    private func assets(_ library: PhotoLibrary) async throws -> [ObjectID] {
        var changes: [ChangeRequest] = []
        for number in 0..<Self.count {
            let photo = TestImages.jpeg(width: 160, height: 120, seed: UInt64(number))
            let path = try network.services.folder.write(photo, to: "\(number).jpg")
            changes.append(.createAsset(.init(ref: "a\(number)", resources: [NewResource(source: .path(path))])))
        }
        let result = try await library.perform(changes)
        return try (0..<Self.count).map { try #require(result.id("a\($0)")) }
    }

    /// Requests all images at the same time.
    ///
    /// - Returns: the names of errors
    private func request(_ ids: [ObjectID], side: Int, _ library: PhotoLibrary) async -> [String] {
        await withTaskGroup(of: String?.self) { group in
            for id in ids {
                group.addTask {
                    do throws(RPCError) {
                        let image = ImageRequest(
                            asset: id,
                            targetSize: .size(width: side, height: side),
                            deliveryMode: .highQualityFormat
                        )
                        _ = try await library.thumbnailer.ask(image)
                        return nil
                    } catch {
                        return error.name
                    }
                }
            }
            return await group.reduce(into: []) { if let name = $1 { $0.append(name) } }
        }
    }

    /// Returns the number of images that each instance has rendered since its start.
    private func renders(_ library: PhotoLibrary) async throws -> [Int] {
        var counts: [Int] = []
        for instance in library.thumbnailer.instances {
            counts.append(Int(try await instance.metrics()["renders"]?.intValue ?? -1))
        }
        return counts
    }

    @Test func `each image is rendered by one instance, and when one ends the others render its images`() async throws {
        var programs = try (0..<3).map(start)
        let library = try NetworkFixture.library(variables: environment)
        let ids = try await assets(library)

        try await connect(library)
        #expect(await request(ids, side: 64, library) == [])
        let first = try await renders(library)
        #expect(first.reduce(0, +) == Self.count, "\(first)")
        #expect(first.allSatisfy { $0 >= Self.least }, "equal parts: \(first)")
        // Another client finds all of them in the caches.
        let other = try NetworkFixture.library(variables: environment)
        try await connect(other)
        #expect(await request(ids, side: 64, other) == [])
        #expect(try await renders(library) == first)

        // Killed during requests: each of them is answered, and the caches of the others stay as they were.
        async let errors = request(ids, side: 96, library)
        try await waitUntil("images are being made", seconds: 30) {
            try await self.renders(library)[1] > first[1]
        }
        programs[1].killHard()
        #expect(await errors == [])
        #expect(await request(ids, side: 64, library) == [])
        let rest = Array(library.thumbnailer.instances.enumerated()).filter { $0.offset != 1 }.map(\.element)
        var rendered = 0
        for instance in rest { rendered += Int(try await instance.metrics()["renders"]?.intValue ?? -1) }
        // Both sizes of the images of the killed one, and the other size of those of the rest.
        let (own, lost) = (first[0] + first[2], first[1])
        #expect((own * 2 + lost...own * 2 + lost * 2).contains(rendered), "\(rendered) of \(first)")

        // After a restart it gets its assets back and has their images in its disk cache.
        programs[1] = try start(1)
        try await waitUntil("the clients are connected again", seconds: 30) {
            (try? await library.thumbnailer.instances[1].health()) != nil
        }
        #expect(await request(ids, side: 64, library) == [])
        let again = try await library.thumbnailer.instances[1].metrics()
        #expect(again["renders"] == 0 && again["diskHits"] == JSON(lost), "\(again["renders"] ?? .null) of \(lost)")

        // Stopped during requests, as for an upgrade: none fails.
        async let stopped = request(ids, side: 112, library)
        try await waitUntil("images are being made", seconds: 30) { try await self.renders(library)[1] > 0 }
        programs[1].signal(SIGTERM)
        #expect(await stopped == [])
        #expect(programs[1].wait(seconds: 20) == 0, "\(programs[1].errorText)")

        for program in programs { program.killHard() }
        let request = ImageRequest(asset: ids[0], targetSize: .size(width: 50, height: 50))
        let error = await #expect(throws: RPCError.self) {
            try await library.thumbnailer.ask(request, deadline: .seconds(1))
        }
        #expect(error?.errorCode == .deadlineExceeded || error?.errorCode == .connectionLost, "\(error?.name ?? "")")
        for client in [library, other] { await client.close() }
        #expect(network.services.stop() == [])
    }

    private func python(
        _ script: String,
        _ arguments: [String]
    ) throws -> (status: Int32?, output: String, errors: String) {
        try RunningProgram.run(
            try Needed.python(),
            ["-B", "-c", script] + arguments,
            environment: environment.merging(PythonPackage.environment) { $1 },
            seconds: 60
        )
    }

    @Test func `commands and Python use all instances of the list`() async throws {
        let programs = try (0..<3).map(start)
        let library = try NetworkFixture.library(variables: environment)
        let ids = try await assets(library)
        func safelight(_ arguments: String...) throws -> (status: Int32?, output: String, errors: String) {
            try RunningProgram.run("safelight", arguments, environment: environment, seconds: 60)
        }
        let warmed = try safelight("warm", "--size", "64")
        #expect(warmed.status == 0, "\(warmed.errors)")
        let counts = try await renders(library)
        #expect(counts.reduce(0, +) == Self.count && counts.allSatisfy { $0 >= Self.least }, "\(counts)")

        let status = try safelight("status", "thumbnailer", "--json")
        #expect(status.status == 0, "\(status.output)\(status.errors)")
        let services = try #require(try JSON(parsing: status.output)["services"]?.objectValue)
        #expect(services.members.map(\.name).sorted() == ["thumbnailer"] + (1...2).map { "thumbnailer \(address($0))" })
        let doctor = try safelight("doctor").output
        for host in 0..<3 { #expect(doctor.contains("responds at \(address(host))"), "\(doctor)") }
        let metrics = try safelight("status", "thumbnailer", "--prometheus").output.split(separator: "\n")
        #expect(metrics.count { $0.hasPrefix("safelight_up{") } == 3)
        #expect(Set(metrics).count == metrics.count, "each series is printed once")

        let script = """
            import asyncio, sys, safelight
            from safelight import aio
            # Waits for all three connections: without one, an image is requested from the next thumbnailer.
            library = safelight.Library(client="several", wait=60)
            for instance in library.thumbnailer.instances:
                instance._wait = 60
                instance.request("health")
            for asset in sys.argv[1:]:
                assert library.thumbnail(asset, (64, 64), resize="fast").is_cache_hit, asset
            async def thumbnails():
                async with aio.AsyncLibrary(client="several", wait=60) as library:
                    for instance in library.thumbnailer._instances.members:
                        instance._wait = 60
                        await instance.request("health")
                    for asset in sys.argv[1:]:
                        assert (await library.thumbnail(asset, (64, 64), resize="fast")).is_cache_hit, asset
            asyncio.run(thumbnails())
            print("all found")
            """
        let run = try python(script, ids.map(\.text))
        #expect(run.output == "all found\n", "\(run.errors)")
        #expect(try await renders(library) == counts)

        // Python continues while one is killed.
        let continuing = """
            import os, signal, sys, safelight
            library = safelight.Library(client="several", wait=60)
            for number, asset in enumerate(sys.argv[2:]):
                if number == 20:
                    os.kill(int(sys.argv[1]), signal.SIGKILL)
                library.thumbnail(asset, 100)
            print("all found")
            """
        let arguments = ["\(programs[2].processIdentifier)"] + ids.map(\.text)
        let rest = try python(continuing, arguments)
        #expect(rest.output == "all found\n", "\(rest.errors)")

        // One instance does not run: the status names it, and everything else works.
        programs[2].killHard()
        let down = try safelight("status", "thumbnailer", "--wait", "1")
        #expect(down.status == 1 && down.output.contains(address(2)), "\(down.output)")
        #expect(try safelight("warm", "--size", "80").status == 0)
        await library.close()
        for program in programs.dropLast() { program.killHard() }
        #expect(network.services.stop() == [])
    }
}
