import Contracts
import Dispatch
import Foundation
import Hosting
import JSONValue
import Storage
import Synchronization
import TestSupport
import Testing

/// Tests of the fairness and the limits of blocking disk work.
@Suite(.timeLimit(.minutes(1)))
struct BlockingIOExecutorTests {
    /// Blocks threads until it is opened.
    private final class Barrier: Sendable {
        private let semaphore = DispatchSemaphore(value: 0)
        private let blockedCount = AwaitableValue(0)

        func block() {
            blockedCount.withLock { $0 += 1 }
            semaphore.wait()
        }

        func wait(forBlocked count: Int) async { await blockedCount.wait { $0 >= count } }
        func open(_ count: Int) { for _ in 0..<count { semaphore.signal() } }
    }

    @Test func `the queue is round-robin between sources and keeps the order of each`() {
        var queue = FairQueue<String, Int>()
        for number in 0..<4 { queue.append(number, from: "many") }
        queue.append(10, from: "one")
        queue.append(20, from: "two")
        #expect(queue.count == 6)
        #expect(queue.count(of: "many") == 4 && queue.count(of: "none") == 0)
        #expect(queue.popFirst { $0 > 0 } == nil)
        var order: [Int] = []
        while let next = queue.popFirst() { order.append(next) }
        #expect(order == [0, 10, 20, 1, 2, 3])
        #expect(queue.isEmpty && queue.popFirst() == nil)
        queue.append(1, from: "many")
        #expect(queue.popFirst() == 1)
    }

    @Test func `outdated elements are skipped or removed, and the sources keep their turns`() {
        var queue = FairQueue<String, Int>()
        for number in [1, 2, 3] { queue.append(number, from: "a") }
        for number in [11, 12] { queue.append(number, from: "b") }
        queue.insert(4, from: "a") { $0 > 2 }
        queue.insert(5, from: "c", isNext: true) { _ in true }
        queue.insert(13, from: "b", isNext: true) { _ in false }
        // b has 11, 12, 13; c has 5; a has 1, 2, 4, 3.
        queue.skip { [11, 12, 13, 5, 1].contains($0) }
        #expect(queue.count == 3 && queue.popFirst() == 2)
        queue.append(21, from: "d")
        queue.removeAll { $0 == 21 || $0 == 4 }
        #expect(queue.count == 1 && queue.popFirst() == 3 && queue.isEmpty)
        queue.skip { _ in true }
        queue.insert(6, from: "a") { _ in true }
        #expect(queue.popFirst() == 6)
    }

    @Test func `short work runs while all threads for long work are blocked`() async throws {
        let blockingIO = BlockingIOExecutor()
        let barrier = Barrier()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<10 { group.addTask { try await blockingIO.run(.long) { barrier.block() } } }
            // The lane uses no more than its threads.
            await barrier.wait(forBlocked: 2)
            let values = [try await blockingIO.run { 7 }, try await blockingIO.run(.upkeep) { 8 }]
            #expect(values == [7, 8])
            while blockingIO.metrics["long"]?["waiting"]?.intValue != 8, !Task.isCancelled { await Task.yield() }
            barrier.open(10)
            try await group.waitForAll()
        }
        #expect(blockingIO.metrics["long"]?["jobs"] == 0 && blockingIO.metrics["long"]?["waiting"] == 0)
    }

    @Test func `jobs of other sources run between the steps of a long job`() async throws {
        let blockingIO = BlockingIOExecutor()
        let done = AwaitableValue<[String]>([])
        let barrier = Barrier()
        try await withThrowingTaskGroup(of: Void.self) { group in
            // One of the two threads is blocked all the time.
            group.addTask { try await blockingIO.run(.long) { barrier.block() } }
            await barrier.wait(forBlocked: 1)
            group.addTask { try await blockingIO.run(.long) { barrier.block() } }
            await barrier.wait(forBlocked: 2)
            for number in 0..<20 {
                group.addTask {
                    try await blockingIO.run(.long, for: .identity("many")) {
                        done.withLock { $0.append("many \(number)") }
                    }
                }
            }
            while blockingIO.metrics["long"]?["waiting"]?.intValue != 20, !Task.isCancelled { await Task.yield() }
            group.addTask {
                try await blockingIO.run(.long, for: .identity("one")) { done.withLock { $0.append("one") } }
            }
            while blockingIO.metrics["long"]?["waiting"]?.intValue != 21, !Task.isCancelled { await Task.yield() }
            barrier.open(1)
            await done.wait { $0.count == 21 }
            barrier.open(1)
            try await group.waitForAll()
        }
        #expect(done.current.firstIndex(of: "one") == 1)
    }

    @Test func `a full lane refuses jobs with busy, but not the steps of accepted jobs`() async throws {
        let blockingIO = BlockingIOExecutor(limit: 2)
        let barrier = Barrier()
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<2 {
                group.addTask {
                    try await blockingIO.job(.long) { steps in
                        try await steps.run { barrier.block() }
                        return try await steps.run { 1 }
                    }
                }
            }
            await barrier.wait(forBlocked: 2)
            let error = await #expect(throws: RPCError.self) { try await blockingIO.run(.long) {} }
            #expect(error?.errorCode == .busy && error?.message.contains("retry later") == true)
            let other = try await blockingIO.run { 3 }
            #expect(other == 3)
            barrier.open(2)
            let sum = try await group.reduce(0, +)
            #expect(sum == 2)
        }
    }

    @Test func `a source that has filled a lane does not exclude another source`() async throws {
        let blockingIO = BlockingIOExecutor(limit: 16)
        let barrier = Barrier()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<16 {
                group.addTask { try await blockingIO.run(.long, for: .identity("many")) { barrier.block() } }
            }
            while blockingIO.metrics["long"]?["jobs"] != 16, !Task.isCancelled { await Task.yield() }
            let error = await #expect(throws: RPCError.self) {
                try await blockingIO.run(.long, for: .identity("many")) {}
            }
            #expect(error?.errorCode == .busy)
            group.addTask { try await blockingIO.run(.long, for: .identity("one")) { barrier.block() } }
            while blockingIO.metrics["long"]?["jobs"] != 17, !Task.isCancelled { await Task.yield() }
            let own = await #expect(throws: RPCError.self) {
                try await blockingIO.run(.long, for: .identity("one")) {}
            }
            #expect(own?.errorCode == .busy, "a source may have one job for each sixteen of the limit")
            barrier.open(17)
            try await group.waitForAll()
        }
        #expect(blockingIO.metrics["long"]?["jobs"] == 0)
        _ = try await blockingIO.run(.long, for: .identity("many")) {}
    }

    @Test func `whole files are hashed, copied and referenced in steps with the same results`() async throws {
        let folder = try TestSupport.TemporaryFolder("blocking-io")
        let store = try ResourceStore(root: folder.file("store"))
        let bytes = (0..<(20 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 7) }
        let path = try folder.write(bytes, to: "a")
        let file = try DurableFile.open(path)
        let blockingIO = BlockingIOExecutor()
        let digest = ResourceDigest(of: bytes)
        #expect(try await blockingIO.hash(file) == digest)
        let error = await #expect(throws: StorageError.self) {
            try await blockingIO.copy(file, into: store, limit: (20 << 20) - 1)
        }
        #expect(error?.name == "too_large")
        let referred = try await blockingIO.refer(to: file, at: path, in: store, limit: 1 << 30)
        #expect(referred.digest == digest && !store.contains(digest))
        let stored = try await blockingIO.copy(file, into: store, limit: 20 << 20)
        #expect(stored.digest == digest && stored.size == 20 << 20)
        try await blockingIO.verify(store.open(digest))
        #expect(try store.open(digest).read(offset: 9 << 20, count: 3) == Array(bytes[(9 << 20)..<((9 << 20) + 3)]))
    }

    @Test func `a cancelled copy ends at the next step and leaves no file`() async throws {
        let folder = try TestSupport.TemporaryFolder("blocking-io")
        let store = try ResourceStore(root: folder.file("store"))
        let file = try DurableFile.open(folder.write([UInt8](repeating: 1, count: 40 << 20), to: "a"))
        let blockingIO = BlockingIOExecutor()
        let barrier = Barrier()
        try await withThrowingTaskGroup(of: Void.self) { group in
            // The copy waits until it is cancelled: otherwise it could be complete before.
            for _ in 0..<2 { group.addTask { try await blockingIO.run(.long) { barrier.block() } } }
            await barrier.wait(forBlocked: 2)
            let task = Task { try await blockingIO.copy(file, into: store, limit: 1 << 30) }
            while blockingIO.metrics["long"]?["waiting"]?.intValue != 1, !Task.isCancelled { await Task.yield() }
            task.cancel()
            barrier.open(2)
            await #expect(throws: CancellationError.self) { try await task.value }
            try await group.waitForAll()
        }
        #expect(try store.clearIncoming() == 0)
    }
}
