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
        let released = TaskBarrier(2)
        private let counts = Mutex((begun: 0, cancelled: 0))

        var metrics: (begun: Int, cancelled: Int) { counts.withLock { $0 } }

        func work(_ key: Int) async -> Result<Int, RPCError> {
            counts.withLock { $0.begun += 1 }
            await begun.pass()
            await withTaskCancellationHandler {
                await released.pass()
            } onCancel: {
                counts.withLock { $0.cancelled += 1 }
                Task { await released.pass() }
            }
            return .success(key * 2)
        }
    }

    private func makeQueue(
        limit: Int,
        _ work: @escaping @Sendable (Int) async -> Result<Int, RPCError>
    ) -> CoalescingWorkQueue<Int, Int, Int> {
        CoalescingWorkQueue(limit: limit, maxBatches: 4, group: { $0 }) { keys in
            var outcomes: [Result<Int, RPCError>] = []
            for key in keys { outcomes.append(await work(key)) }
            return outcomes
        }
    }

    @Test func `concurrent requests for the same work share one outcome`() async throws {
        let probe = WorkProbe()
        let queue = makeQueue(limit: 4) { await probe.work($0) }
        try await withThrowingTaskGroup(of: Int.self) { group in
            let running = Task { await queue.run() }
            for _ in 0..<20 { group.addTask { try await queue.value(21) } }
            await probe.begun.pass()
            while queue.metrics.joinCount < 19, !Task.isCancelled { await Task.yield() }
            await probe.released.pass()
            for try await value in group { #expect(value == 42) }
            #expect(probe.metrics.begun == 1)
            #expect(queue.metrics.count == 0)
            running.cancel()
            await running.value
        }
    }

    @Test func `work without waiters is cancelled and its slot is free again`() async throws {
        let probe = WorkProbe()
        let queue = makeQueue(limit: 1) { await probe.work($0) }
        let running = Task { await queue.run() }
        let callers = (0..<3).map { _ in Task { await Self.errorCode(of: queue, 1) } }
        await probe.begun.pass()
        while queue.metrics.joinCount < 2, !Task.isCancelled { await Task.yield() }
        callers[0].cancel()
        #expect(await callers[0].value == .userCancelled)
        #expect(probe.metrics.cancelled == 0, "two callers still wait")
        #expect(await Self.errorCode(of: queue, 2) == .busy)
        callers[1].cancel()
        callers[2].cancel()
        #expect(await callers[1].value == .userCancelled)
        #expect(await callers[2].value == .userCancelled)
        while queue.metrics.count > 0, !Task.isCancelled { await Task.yield() }
        #expect(probe.metrics.cancelled == 1)
        #expect(try await queue.value(2) == 4)
        running.cancel()
        await running.value
    }

    @Test func `waiting callers get interrupted when the service stops`() async throws {
        let begun = TaskBarrier(2)
        let queue = CoalescingWorkQueue<Int, Int, Int>(limit: 4, maxBatches: 1, group: { $0 }) { keys in
            await begun.pass()
            // Returns when the work is cancelled.
            await AwaitableValue(false).wait { $0 }
            return keys.map { _ in .failure(.requestCancelled) }
        }
        let running = Task { await queue.run() }
        let served = Task { await Self.errorCode(of: queue, 1) }
        await begun.pass()
        let queued = Task { await Self.errorCode(of: queue, 2) }
        while queue.metrics.due < 1, !Task.isCancelled { await Task.yield() }
        running.cancel()
        await running.value
        #expect(await served.value == .interrupted, "its work had begun")
        #expect(await queued.value == .interrupted, "its work was waiting in the queue")
        #expect(await Self.errorCode(of: queue, 1) == .interrupted)
    }

    @Test func `items of one group run together, and prefetch runs after interactive work`() async throws {
        let batches = Mutex<[[Int]]>([])
        let gate = TaskBarrier(2)
        let queue = CoalescingWorkQueue<Int, Int, Int>(limit: 100, maxBatches: 1, batchSize: 8, group: { $0 / 10 }) {
            keys in
            let isFirst = batches.withLock { batches in
                batches.append(keys.sorted())
                return batches.count == 1
            }
            if isFirst { await gate.pass() }
            return keys.map { .success($0) }
        }
        let running = Task { await queue.run() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { _ = try await queue.value(1) }
            while batches.withLock({ $0.isEmpty }), !Task.isCancelled { await Task.yield() }
            group.addTask { for outcome in await queue.values([31, 32, 33]) { _ = try outcome.get() } }
            while queue.metrics.due < 3, !Task.isCancelled { await Task.yield() }
            group.addTask { _ = try await queue.value(21) }
            while queue.metrics.due < 4, !Task.isCancelled { await Task.yield() }
            group.addTask { _ = try await queue.value(22) }
            while queue.metrics.due < 5, !Task.isCancelled { await Task.yield() }
            await gate.pass()
            try await group.waitForAll()
        }
        #expect(batches.withLock { $0 } == [[1], [21, 22], [31, 32, 33]])
        running.cancel()
        await running.value
    }

    @Test func `work that a batch leaves unfinished is run again for its client`() async throws {
        let batches = Mutex<[[Int]]>([])
        let sources = Mutex<Set<WorkSource>>([])
        let queue = CoalescingWorkQueue<Int, Int, Int>(limit: 100, maxBatches: 1, batchSize: 8, group: { _ in 0 }) {
            keys in
            batches.withLock { $0.append(keys.sorted()) }
            _ = sources.withLock { $0.insert(.current) }
            return keys.map { keys.count > 1 ? nil : .success($0) }
        }
        let callers = Task {
            await WorkSource.$current.withValue(.identity("a")) { await queue.values([1, 2, 3]) }
        }
        while queue.metrics.due < 3, !Task.isCancelled { await Task.yield() }
        let running = Task { await queue.run() }
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

    private static func errorCode(of queue: CoalescingWorkQueue<Int, Int, Int>, _ key: Int) async -> ErrorCode? {
        do throws(RPCError) {
            _ = try await queue.value(key)
            return nil
        } catch {
            return error.errorCode
        }
    }
}
