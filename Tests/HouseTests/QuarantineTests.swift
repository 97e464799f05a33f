import Contracts
import Foundation
import JSONValue
import Messaging
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Bytes that hang or kill workers, in the real house (fault F4; DESIGN 4.4). Workers are stopped and killed from
/// outside, which is what a decoder's endless loop and crash look like to the service.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct QuarantineTests {
    private func workers(_ client: ServiceClient) async throws -> [Int32] {
        let figures = try await client.figures()["workers"]
        return figures?["pids"]?.arrayValue?.compactMap(\.intValue).map { Int32($0) } ?? []
    }

    private func number(_ name: String, _ client: ServiceClient) async throws -> Int64 {
        try await client.figures()["workers"]?[name]?.intValue ?? 0
    }

    private func asset(_ house: RunningHouse, _ library: PhotoLibrary, seed: UInt64) async throws -> ObjectID {
        let path = try house.folder.write(TestPictures.jpeg(seed: seed), to: "p\(seed).jpg")
        let result = try await library.perform([
            .createAsset(.init(ref: "a", resources: [NewResource(source: .path(path))]))
        ])
        return try #require(result.id("a"))
    }

    private func image(_ id: ObjectID, side: Int, _ library: PhotoLibrary) async -> RPCError? {
        do throws(RPCError) {
            _ = try await library.thumbnailer.ask(
                ImageRequest(asset: id, targetSize: .size(width: side, height: side))
            )
            return nil
        } catch {
            return error
        }
    }

    @Test func `a job whose worker is killed is done by another one, and the request is answered once`() async throws {
        let house = try RunningHouse("redo")
        try house.start()
        let library = try house.library()
        let id = try await asset(house, library, seed: 1)
        for (client, name) in [(library.thumbnailer, "picture"), (library.editor, "edit")] {
            let stopped = try await workers(client)
            for pid in stopped { kill(pid, SIGSTOP) }
            let started = ContinuousClock().now
            async let answer: RPCError? =
                name == "picture" ? image(id, side: 64, library) : edit(id, library)
            while try await number("busy", client) == 0 { await Task.yield() }
            // All at one moment for the service, or the job would go to one that is killed next, and twice is too often.
            let service = house.program(name == "picture" ? .thumbnailer : .editor)
            service?.signal(SIGSTOP)
            while !isStopped(service) { await Task.yield() }
            for pid in stopped { kill(pid, SIGKILL) }
            while !stopped.allSatisfy(isGone) { await Task.yield() }
            service?.signal(SIGCONT)
            let error = await answer
            #expect(error == nil, "\(name): \(String(describing: error))")
            #expect(ContinuousClock().now - started < .seconds(3))
            #expect(try await number("crashed", client) == 1)
        }
        // The edit is there once.
        #expect(try await library.asset(id).hasAdjustments)
        #expect(try await library.currentToken().token.sequence == 2)
        #expect(try await library.catalog.ask(ListQuarantine()).result.count == 0)
        await library.close()
        #expect(house.stop() == [])
    }

    /// Whether every thread of a program stands still: one takes the signal, and the others run until it has.
    private func isStopped(_ program: RunningProgram?) -> Bool {
        guard let program else { return true }
        let tasks = "/proc/\(program.processIdentifier)/task"
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: tasks)) ?? []
        return threads.allSatisfy { thread in
            (try? String(contentsOfFile: "\(tasks)/\(thread)/stat", encoding: .utf8))?.contains(") T ") ?? true
        }
    }

    /// Whether a process has ended with all of its threads, though its parent has not heard of it: until the last one is
    /// gone its socket is open, and takes a job.
    private func isGone(_ pid: Int32) -> Bool {
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/task").count) ?? 0
        return threads <= 1
            && (try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8))?.contains(") Z ") ?? true
    }

    private func edit(_ id: ObjectID, _ library: PhotoLibrary) async -> RPCError? {
        do throws(RPCError) {
            _ = try await library.editor.ask(
                ApplyEdit(asset: id, adjustments: AdjustmentList(operations: [.exposure(0.5)]))
            )
            return nil
        } catch {
            return error
        }
    }

    @Test func `bytes that hang twice are set aside, by name, through restarts, until it is lifted`() async throws {
        let house = try RunningHouse("poison", environment: ["SAFELIGHT_JOB_SECONDS": "1"])
        try house.start()
        let library = try house.library()
        let (id, good) = (try await asset(house, library, seed: 1), try await asset(house, library, seed: 2))
        let count = try await workers(library.thumbnailer).count
        var stopped: Set<Int32> = []
        for side in [50, 60] {
            // The one that was ended is replaced behind the answer.
            var pids = try await workers(library.thumbnailer)
            while pids.count < count || stopped.isSubset(of: pids) && !stopped.isEmpty {
                await Task.yield()
                pids = try await workers(library.thumbnailer)
            }
            for pid in pids { kill(pid, SIGSTOP) }
            stopped.formUnion(pids)
            let error = await image(id, side: side, library)
            // One request may have worked on the bytes twice: on the preview and on the picture.
            let ends: [Refusal] = side == 50 ? [.workerTimeout] : [.workerTimeout, .quarantined]
            #expect(error?.refusal.map(ends.contains) == true, "\(side): \(String(describing: error))")
        }
        let before = try await number("started", library.thumbnailer)
        for side in 70..<90 {
            let error = await image(id, side: side, library)
            #expect(error?.refusal == .quarantined)
            #expect(error?.data["reason"]?.stringValue?.contains("1 s") == true, "\(String(describing: error))")
        }
        #expect(await edit(id, library)?.refusal == .quarantined, "the editor knows it from the catalog")
        for pid in try await workers(library.thumbnailer) { kill(pid, SIGCONT) }
        #expect(await image(good, side: 50, library) == nil)
        // Only those that were killed were replaced; the refusals cost none.
        #expect(try await number("started", library.thumbnailer) <= before + 1)

        let shown = try house.safelight(["show", id.text])
        #expect(shown.output.contains("set aside") && shown.output.contains("1 s"), "\(shown.output)")
        let json = try JSON(parsing: Array(house.safelight(["show", id.text, "--json"]).output.utf8))
        #expect(json["quarantined"]?.arrayValue?.first?["name"] == "worker_timeout")
        for service in [RunningHouse.Service.catalog, .thumbnailer, .editor] { try house.restart(service) }
        #expect(await image(id, side: 91, library)?.refusal == .quarantined)
        let list = try house.safelight(["quarantine", "list"])
        #expect(list.output.contains(id.text) && list.output.contains("thumbnailer"), "\(list.output)")

        // The same bytes again: the import says why, and no worker opens them.
        let again = try house.safelight(["import", house.folder.file("p1.jpg")])
        #expect(again.status == 0 || again.errors.contains("quarantined"), "\(again.errors)")

        #expect(try house.safelight(["quarantine", "lift", id.text]).output.contains("1 file"))
        #expect(await image(id, side: 92, library) == nil)
        #expect(try house.safelight(["quarantine", "list"]).output.contains("nothing"))
        await library.close()
        #expect(house.stop() == [])
    }
}
