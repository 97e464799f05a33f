import JSONValue
import Contracts
import Hosting
import Synchronization
import TestSupport
import Testing

@testable import Thumbnailer

@Suite(.timeLimit(.minutes(1)))
struct CoalescingWorkQueueTests {
    /// Work that starts, waits to be released, and records how it ended.
    private final class WorkProbe: Sendable {
        let begun = TaskBarrier(2)
        let letOn = TaskBarrier(2)
        private let counts = Mutex((begun: 0, cancelled: 0))

        var metrics: (begun: Int, cancelled: Int) { counts.withLock { $0 } }

        func work(_ key: Int) async -> Result<Int, RPCError> {
            counts.withLock { $0.begun += 1 }
            await begun.pass()
            await withTaskCancellationHandler {
                await letOn.pass()
            } onCancel: {
                counts.withLock { $0.cancelled += 1 }
                Task { await letOn.pass() }
            }
            return .success(key * 2)
        }
    }

    private func work(
        limit: Int,
        _ one: @escaping @Sendable (Int) async -> Result<Int, RPCError>
    ) -> CoalescingWorkQueue<Int, Int, Int> {
        CoalescingWorkQueue(limit: limit, width: 4, group: { $0 }) { keys in
            var outcomes: [Result<Int, RPCError>] = []
            for key in keys { outcomes.append(await one(key)) }
            return outcomes
        }
    }

    @Test func `concurrent requests for the same work share one outcome`() async throws {
        let bench = WorkProbe()
        let shared = work(limit: 4) { await bench.work($0) }
        try await withThrowingTaskGroup(of: Int.self) { group in
            let running = Task { await shared.run() }
            for _ in 0..<20 { group.addTask { try await shared.value(21) } }
            await bench.begun.pass()
            while shared.metrics.joinCount < 19, !Task.isCancelled { await Task.yield() }
            await bench.letOn.pass()
            for try await value in group { #expect(value == 42) }
            #expect(bench.metrics.begun == 1)
            #expect(shared.metrics.count == 0)
            running.cancel()
            await running.value
        }
    }

    @Test func `work without waiters is cancelled and its slot is free again`() async throws {
        let bench = WorkProbe()
        let shared = work(limit: 1) { await bench.work($0) }
        let running = Task { await shared.run() }
        let callers = (0..<3).map { _ in Task { await Self.errorCode(of: shared, 1) } }
        await bench.begun.pass()
        while shared.metrics.joinCount < 2, !Task.isCancelled { await Task.yield() }
        callers[0].cancel()
        #expect(await callers[0].value == .userCancelled)
        #expect(bench.metrics.cancelled == 0, "two callers still wait")
        #expect(await Self.errorCode(of: shared, 2) == .busy)
        callers[1].cancel()
        callers[2].cancel()
        #expect(await callers[1].value == .userCancelled)
        #expect(await callers[2].value == .userCancelled)
        while shared.metrics.count > 0, !Task.isCancelled { await Task.yield() }
        #expect(bench.metrics.cancelled == 1)
        #expect(try await shared.value(2) == 4)
        running.cancel()
        await running.value
    }

    @Test func `waiting callers get interrupted when the service stops`() async throws {
        let begun = TaskBarrier(2)
        let shared = CoalescingWorkQueue<Int, Int, Int>(limit: 4, width: 1, group: { $0 }) { keys in
            await begun.pass()
            // Returns when the work is cancelled.
            await AwaitableValue(false).wait { $0 }
            return keys.map { _ in .failure(.requestCancelled) }
        }
        let running = Task { await shared.run() }
        let served = Task { await Self.errorCode(of: shared, 1) }
        await begun.pass()
        let queued = Task { await Self.errorCode(of: shared, 2) }
        while shared.metrics.due < 1, !Task.isCancelled { await Task.yield() }
        running.cancel()
        await running.value
        #expect(await served.value == .interrupted, "its work had begun")
        #expect(await queued.value == .interrupted, "its work was waiting in the queue")
        #expect(await Self.errorCode(of: shared, 1) == .interrupted)
    }

    @Test func `items of one group run together, and prefetch runs after interactive work`() async throws {
        let batches = Mutex<[[Int]]>([])
        let gate = TaskBarrier(2)
        let shared = CoalescingWorkQueue<Int, Int, Int>(limit: 100, width: 1, batch: 8, group: { $0 / 10 }) { keys in
            let isFirst = batches.withLock { batches in
                batches.append(keys.sorted())
                return batches.count == 1
            }
            if isFirst { await gate.pass() }
            return keys.map { .success($0) }
        }
        let running = Task { await shared.run() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { _ = try await shared.value(1) }
            while batches.withLock({ $0.isEmpty }), !Task.isCancelled { await Task.yield() }
            group.addTask { for outcome in await shared.values([31, 32, 33]) { _ = try outcome.get() } }
            while shared.metrics.due < 3, !Task.isCancelled { await Task.yield() }
            group.addTask { _ = try await shared.value(21) }
            while shared.metrics.due < 4, !Task.isCancelled { await Task.yield() }
            group.addTask { _ = try await shared.value(22) }
            while shared.metrics.due < 5, !Task.isCancelled { await Task.yield() }
            await gate.pass()
            try await group.waitForAll()
        }
        #expect(batches.withLock { $0 } == [[1], [21, 22], [31, 32, 33]])
        running.cancel()
        await running.value
    }

    @Test func `work that a batch leaves is run again in the name of its client`() async throws {
        let batches = Mutex<[[Int]]>([])
        let sources = Mutex<Set<WorkSource>>([])
        let shared = CoalescingWorkQueue<Int, Int, Int>(limit: 100, width: 1, batch: 8, group: { _ in 0 }) { keys in
            batches.withLock { $0.append(keys.sorted()) }
            _ = sources.withLock { $0.insert(.current) }
            return keys.map { keys.count > 1 ? nil : .success($0) }
        }
        let callers = Task {
            await WorkSource.$current.withValue(.identity("a")) { await shared.values([1, 2, 3]) }
        }
        while shared.metrics.due < 3, !Task.isCancelled { await Task.yield() }
        let running = Task { await shared.run() }
        let outcomes = await callers.value
        #expect(try outcomes.map { try $0.get() } == [1, 2, 3])
        #expect(batches.withLock { $0 } == [[1, 2, 3], [1], [2], [3]])
        #expect(sources.withLock { $0 } == [.identity("a")])
        running.cancel()
        await running.value
    }

    @Test func `every worker failure has an error name`() {
        let failures: [(WorkerFailure, ErrorCode)] = [
            (.crashed(signal: 11), .workerCrashed), (.exited(code: 1), .workerCrashed),
            (.killed, .workerCrashed), (.timedOut(seconds: 60, phase: .working), .limitExceeded),
            (.timedOut(seconds: 60), .workerTimeout), (.malformedResult("?"), .workerCrashed),
            (.refused(name: "invalid_resource", message: "cut"), .invalidResource),
            (.refused(name: "too_large", message: "large"), .limitExceeded),
            (.refused(name: "io_error", message: "disk"), .internalError),
            (.resultTooLarge(limit: 1), .limitExceeded), (.queueFull(limit: 1), .busy),
            (.unavailable("no"), .unavailable), (.cancelled, .userCancelled),
        ]
        for (failure, refusal) in failures { #expect(failure.rpcError.errorCode == refusal) }
    }

    private static func errorCode(of shared: CoalescingWorkQueue<Int, Int, Int>, _ key: Int) async -> ErrorCode? {
        do throws(RPCError) {
            _ = try await shared.value(key)
            return nil
        } catch {
            return error.errorCode
        }
    }
}
