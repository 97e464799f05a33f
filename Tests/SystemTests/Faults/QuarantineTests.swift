import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Bytes that hang or kill workers, with the real services. An image whose decoding takes longer than the
/// time limit of a job hangs a worker; a worker killed from outside does not count as a failure of the bytes.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct QuarantineTests {
    /// Waits until no worker of a service is busy, starting or ending, and returns the workers.
    private func workers(_ client: ServiceClient) async throws -> [Int32] {
        while true {
            let metrics = try #require(try await client.metrics()["workers"])
            let count = try #require(metrics["workers"]?.intValue)
            if metrics["idle"]?.intValue == count {
                return try #require(metrics["pids"]?.arrayValue).compactMap(\.intValue).map { Int32($0) }
            }
            await Task.yield()
        }
    }

    private func number(_ name: String, _ client: ServiceClient) async throws -> Int64 {
        try await client.metrics()["workers"]?[name]?.intValue ?? 0
    }

    /// Returns the number of workers that a service has started, and the outcomes of their jobs, once all are idle.
    private func jobs(_ client: ServiceClient) async throws -> [Int64] {
        _ = try await workers(client)
        var numbers: [Int64] = []
        for name in ["started", "completed", "refused", "crashed", "timedOut", "cancelled"] {
            numbers.append(try await number(name, client))
        }
        return numbers
    }

    private func createAsset(_ services: SafelightFixture, _ library: PhotoLibrary, seed: UInt64) async throws
        -> ObjectID
    {
        try await library.createAsset(
            path: services.folder.write(TestImages.jpeg(seed: seed), to: "p\(seed).jpg")
        )
    }

    /// Imports an image whose decoding takes a worker some seconds.
    private func createSlowAsset(_ services: SafelightFixture, _ library: PhotoLibrary) async throws -> ObjectID {
        try await library.createAsset(
            path: services.folder.write(TestImages.largeBlackPNG(side: 9900), to: "slow.png")
        )
    }

    private func requestImage(_ id: ObjectID, side: Int, _ library: PhotoLibrary) async -> RPCError? {
        await library.thumbnailer.rpcError(of: ImageRequest(asset: id, targetSize: .size(width: side, height: side)))
    }

    @Test func `a job whose worker is killed is repeated by another one, and the request is answered once`()
        async throws
    {
        let services = try SafelightFixture("redo")
        try services.start()
        let library = try services.library()
        let id = try await createAsset(services, library, seed: 1)
        for (client, name) in [(library.thumbnailer, "image"), (library.editor, "edit")] {
            let stopped = try await workers(client)
            try await stop(stopped)
            let started = ContinuousClock().now
            async let answer: RPCError? =
                name == "image" ? requestImage(id, side: 64, library) : edit(id, library)
            while try await number("busy", client) == 0, !Task.isCancelled { await Task.yield() }
            let service = try #require(services.program(name == "image" ? .thumbnailer : .editor))
            while !isWaitingForWorkers(service), !Task.isCancelled { await Task.yield() }
            // The service must see them die at the same time: otherwise it could give the job to a worker that is
            // killed next, and a job fails after two deaths.
            try await stop([service.processIdentifier])
            for pid in stopped { kill(pid, SIGKILL) }
            while !stopped.allSatisfy(hasEnded), !Task.isCancelled { await Task.yield() }
            service.signal(SIGCONT)
            let error = await answer
            #expect(error == nil, "\(name): \(String(describing: error))")
            #expect(ContinuousClock().now - started < .seconds(3))
            #expect(try await number("crashed", client) == 1)
        }
        // The edit is applied once.
        #expect(try await library.asset(id).hasAdjustments)
        #expect(try await library.currentToken().token.sequence == 2)
        #expect(try await library.catalog.ask(ListQuarantine()).result.count == 0)
        await library.close()
        #expect(services.stop() == [])
    }

    /// Stops processes and waits until each of their threads is stopped: one thread receives the signal, and the others
    /// run until then.
    private func stop(_ processes: [Int32]) async throws {
        for process in processes { kill(process, SIGSTOP) }
        while !processes.allSatisfy({ threads(of: $0).allSatisfy { $0.state == "T" } }), !Task.isCancelled {
            await Task.yield()
        }
    }

    /// Returns true if all threads that serve a worker are asleep, so that they have nothing left to send.
    private func isWaitingForWorkers(_ service: RunningProgram) -> Bool {
        threads(of: service.processIdentifier).allSatisfy { !$0.name.hasPrefix("worker-") || $0.state == "S" }
    }

    private func threads(of process: Int32) -> [(name: Substring, state: Substring)] {
        let tasks = "/proc/\(process)/task"
        return ((try? FileManager.default.contentsOfDirectory(atPath: tasks)) ?? []).compactMap { thread in
            // proc_pid_stat(5): number (name) state …
            guard let stat = try? String(contentsOfFile: "\(tasks)/\(thread)/stat", encoding: .utf8),
                let start = stat.firstIndex(of: "("), let end = stat.lastIndex(of: ")")
            else { return nil }
            return (stat[stat.index(after: start)..<end], stat[end...].dropFirst(2).prefix(1))
        }
    }

    /// Returns true if a process has ended with all of its threads, even if its parent has not reaped it: while a
    /// thread remains, its socket is open and accepts a job.
    private func hasEnded(_ pid: Int32) -> Bool {
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/task").count) ?? 0
        return threads <= 1
            && (try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8))?.contains(") Z ") ?? true
    }

    private func edit(_ id: ObjectID, _ library: PhotoLibrary) async -> RPCError? {
        await library.editor.rpcError(
            of: ApplyEdit(asset: id, adjustments: AdjustmentList(operations: [.exposure(0.5)]))
        )
    }

    @Test func `bytes that hang twice are quarantined, across restarts, until the quarantine is lifted`() async throws {
        let services = try SafelightFixture("poison", environment: ["SAFELIGHT_JOB_SECONDS": "1"])
        try services.start()
        let library = try services.library()
        let (id, good) = (
            try await createSlowAsset(services, library), try await createAsset(services, library, seed: 2)
        )
        var timeouts = 0
        for side in 1...60 {
            let error = await requestImage(id, side: side, library)
            if side == 1 { #expect(error?.errorCode == .workerTimeout, "\(String(describing: error))") }
            guard error?.errorCode == .workerTimeout else {
                #expect(error?.errorCode == .quarantined, "\(side): \(String(describing: error))")
                break
            }
            timeouts += 1
        }
        // There are more timeouts only on a machine so busy that the worker hardly ran in its time.
        #expect((2..<60).contains(timeouts))
        let before = try await number("started", library.thumbnailer)
        for side in 70..<90 {
            let error = await requestImage(id, side: side, library)
            #expect(error?.errorCode == .quarantined)
            #expect(error?.data["reason"]?.stringValue?.contains("1 s") == true, "\(String(describing: error))")
        }
        #expect(await edit(id, library)?.errorCode == .quarantined, "the editor learns it from the catalog")
        #expect(await requestImage(good, side: 50, library) == nil)
        // Only killed workers were replaced; refused requests cost none.
        #expect(try await number("started", library.thumbnailer) <= before + 1)

        let shown = try services.safelight(["show", id.text])
        #expect(shown.output.contains("quarantined") && shown.output.contains("1 s"), "\(shown.output)")
        let json = try JSON(parsing: Array(services.safelight(["show", id.text, "--json"]).output.utf8))
        #expect(json["quarantined"]?.arrayValue?.first?["name"] == "worker_timeout")
        for service in [SafelightFixture.Service.catalog, .thumbnailer, .editor] { try services.restart(service) }
        #expect(await requestImage(id, side: 91, library)?.errorCode == .quarantined)
        let list = try services.safelight(["quarantine", "list"])
        #expect(list.output.contains(id.text) && list.output.contains("thumbnailer"), "\(list.output)")

        // The same bytes are in the library, so importing them again needs no worker.
        let jobs = try await jobs(library.catalog)
        let again = try services.safelight(["import", services.folder.file("slow.png")])
        #expect(again.status == 0 || again.errors.contains("quarantined"), "\(again.errors)")
        #expect(try await self.jobs(library.catalog) == jobs)

        #expect(try services.safelight(["quarantine", "lift", id.text]).output.contains("1 file"))
        // With more time the same bytes are decoded.
        services.killHard(.thumbnailer)
        let slower = try RunningProgram(
            "thumbnailer",
            ["--ready-fd", "1", "--job-seconds", "60"],
            environment: services.environment
        )
        #expect(slower.waitForOutput("ready"))
        #expect(await requestImage(id, side: 92, library) == nil)
        #expect(try services.safelight(["quarantine", "list"]).output.contains("nothing"))
        await library.close()
        slower.signal(SIGTERM)
        #expect(slower.wait(seconds: 20) == 0)
        #expect(services.stop() == [])
    }
}
