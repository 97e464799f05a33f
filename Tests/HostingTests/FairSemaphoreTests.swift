import Basics
import Hosting
import TestSupport
import Testing

/// Tests that permits are limited, are given to the sources in turn, and are not lost when a waiting task is cancelled.
@Suite(.timeLimit(.minutes(1)))
struct FairSemaphoreTests {
    @Test func `a source with much work does not delay another one`() async {
        let semaphore = FairSemaphore<String>(permits: 1)
        let (isHeld, gate) = (Promise<Void>(), Promise<Void>())
        let order = AwaitableValue<[String]>([])
        let waiting = AwaitableValue(0)
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                _ = await semaphore.withPermit(for: "first") {
                    isHeld.fulfill(())
                    await gate.value()
                }
            }
            await isHeld.value()
            for (number, source) in (["many", "many", "many", "one"]).enumerated() {
                group.addTask {
                    waiting.withLock { $0 += 1 }
                    _ = await semaphore.withPermit(for: source) { order.withLock { $0.append(source) } }
                }
                await waiting.wait { $0 == number + 1 }
            }
            // The tasks have started; they enter the queue shortly afterwards.
            while semaphore.waitingCount < 4, !Task.isCancelled { await Task.yield() }
            gate.fulfill(())
        }
        #expect(order.current.firstIndex(of: "one") ?? 9 <= 1, "\(order.current)")
        #expect(order.current.count == 4)
    }

    @Test func `a source has no more permits than its own limit, in order, and leaves the rest to others`() async {
        let semaphore = FairSemaphore<String>(permits: 3, permitsPerSource: 2)
        let running = AwaitableValue<[String]>([])
        let gates = (0..<4).map { _ in Promise<Void>() }
        let many = (0..<4).map { number in
            Task {
                await semaphore.withPermit(for: "many") {
                    running.withLock { $0.append("many \(number)") }
                    await gates[number].value()
                }
            }
        }
        // Two run, although there is a third permit.
        while semaphore.waitingCount < 2, !Task.isCancelled { await Task.yield() }
        #expect(await semaphore.withPermit(for: "one") { running.current.count } == 2)
        for gate in gates { gate.fulfill(()) }
        for task in many { _ = await task.value }
        #expect(running.current.count == 4 && semaphore.waitingCount == 0)
        // A task that waits because of the limit of its source leaves the queue when it is cancelled.
        let more = (0..<2).map { _ in Promise<Void>() }
        let holders = more.map { gate in Task { await semaphore.withPermit(for: "many") { await gate.value() } } }
        let cancelled = Task { await semaphore.withPermit(for: "many") { 1 } }
        while semaphore.waitingCount < 1, !Task.isCancelled { await Task.yield() }
        cancelled.cancel()
        _ = await cancelled.value
        #expect(semaphore.waitingCount == 0)
        for gate in more { gate.fulfill(()) }
        for task in holders { _ = await task.value }
    }

    @Test func `a cancelled waiter leaves the queue at once`() async {
        let semaphore = FairSemaphore<Int>(permits: 1)
        let (isHeld, gate) = (Promise<Void>(), Promise<Void>())
        let holder = Task {
            await semaphore.withPermit(for: 0) {
                isHeld.fulfill(())
                await gate.value()
            }
        }
        await isHeld.value()
        // Two of one source and one of another: the remaining tasks keep their turns.
        let waiting = [1, 1, 2].map { source in Task { await semaphore.withPermit(for: source) { source } } }
        while semaphore.waitingCount < 3, !Task.isCancelled { await Task.yield() }
        waiting[2].cancel()
        #expect(await waiting[2].value == nil)
        #expect(semaphore.waitingCount == 2, "the permit is still in use, and no other task has got it")
        waiting[0].cancel()
        #expect(await waiting[0].value == nil)
        #expect(semaphore.waitingCount == 1)
        gate.fulfill(())
        await holder.value
        #expect(await waiting[1].value == 1)
        #expect(semaphore.waitingCount == 0)
    }

    @Test func `a cancelled waiter returns nil, and its permit goes to the next one`() async {
        let semaphore = FairSemaphore<Int>(permits: 1)
        let (isHeld, gate) = (Promise<Void>(), Promise<Void>())
        let holder = Task {
            await semaphore.withPermit(for: 0) {
                isHeld.fulfill(())
                await gate.value()
                return 0
            }
        }
        await isHeld.value()
        let cancelled = Task { await semaphore.withPermit(for: 1) { 1 } }
        let next = Task { await semaphore.withPermit(for: 2) { 2 } }
        while semaphore.waitingCount < 2, !Task.isCancelled { await Task.yield() }
        cancelled.cancel()
        #expect(await cancelled.value == nil)
        gate.fulfill(())
        #expect(await holder.value == 0)
        #expect(await next.value == 2)
        #expect(await semaphore.withPermit(for: 3) { 3 } == 3, "the permit was returned")
    }
}
