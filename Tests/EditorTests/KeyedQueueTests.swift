import JSONValue
import Contracts
import Hosting
import PhotoModel
import Synchronization
import TestSupport
import Testing

@testable import Editor

@Suite(.timeLimit(.minutes(5)))
struct KeyedQueueTests {
    @Test func `work of one key runs in order of arrival, and keys are independent`() {
        var table = KeyedQueue<String>(limitPerKey: 3, limit: 5)
        #expect(table.enter("a", waiter: 1) == .mayStart)
        #expect(table.enter("a", waiter: 2) == .mustWait)
        #expect(table.enter("b", waiter: 3) == .mayStart)
        #expect(table.enter("a", waiter: 4) == .mustWait)
        #expect(table.enter("a", waiter: 5) == .full, "too many for one key")
        #expect(table.finish("a", waiter: 1) == 2)
        #expect(table.finish("a", waiter: 2) == 4)
        #expect(table.finish("a", waiter: 4) == nil)
        #expect(table.finish("b", waiter: 3) == nil)
        #expect(table.count == 0)
        #expect(table.keyCount == 0)
    }

    @Test func `a waiter that gives up does not release the next one`() {
        var table = KeyedQueue<String>(limitPerKey: 3, limit: 5)
        for waiter: UInt64 in 1...3 { _ = table.enter("a", waiter: waiter) }
        #expect(table.finish("a", waiter: 2) == nil)
        #expect(table.finish("a", waiter: 2) == nil)
        #expect(table.finish("a", waiter: 1) == 3)
    }

    @Test func `the total of all keys is limited`() {
        var table = KeyedQueue<Int>(limitPerKey: 9, limit: 2)
        #expect(table.enter(1, waiter: 1) == .mayStart)
        #expect(table.enter(2, waiter: 2) == .mayStart)
        #expect(table.enter(3, waiter: 3) == .full)
        _ = table.finish(1, waiter: 1)
        #expect(table.enter(3, waiter: 4) == .mayStart)
    }

    @Test func `a client that has filled the queue does not exclude another one`() {
        var table = KeyedQueue<Int>(limitPerKey: 9, limit: 32)
        for waiter: UInt64 in 1...32 {
            let entering = table.enter(Int(waiter), waiter: waiter, from: .identity("many"))
            #expect(entering == .mayStart)
        }
        #expect(table.enter(33, waiter: 33, from: .identity("many")) == .full)
        #expect(table.enter(33, waiter: 34, from: .identity("one")) == .mayStart)
        #expect(table.enter(33, waiter: 35, from: .identity("one")) == .mustWait)
        #expect(
            table.enter(33, waiter: 36, from: .identity("one")) == .full,
            "a sixteenth of the limit is reserved for each client"
        )
        #expect(table.finish(33, waiter: 34) == 35)
        #expect(table.enter(34, waiter: 37, from: .identity("one")) == .mayStart)
    }

    @Test func `edits of one asset never overlap, and all of them run`() async throws {
        let serializer = PerAssetSerializer(limitPerAsset: 100, limit: 1000)
        let inside = ConcurrencyProbe()
        let assets = try (0..<5).map { number in try id(number) }
        let done = await withTaskGroup(of: Bool.self) { group in
            for number in 0..<200 {
                group.addTask {
                    let asset = assets[number % assets.count]
                    let outcome = try? await serializer.run(asset) { () async throws(RPCError) in
                        let count = inside.enter(asset)
                        await Task.yield()
                        inside.finish(asset)
                        return count == 1
                    }
                    return outcome ?? false
                }
            }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(done == 200)
        #expect(serializer.metrics == (0, 0))
    }

    @Test func `a cancelled waiter gets user_cancelled, and the next one runs`() async throws {
        let serializer = PerAssetSerializer(limitPerAsset: 10, limit: 10)
        let asset = try id(1)
        let release = TaskBarrier(2)
        let entered = TaskBarrier(2)
        try await withThrowingTaskGroup(of: String.self) { group in
            group.addTask {
                try await serializer.run(asset) { () async throws(RPCError) in
                    await entered.pass()
                    await release.pass()
                    return "first"
                }
            }
            await entered.pass()
            let waiting = Task { () -> ErrorCode? in
                do throws(RPCError) {
                    return try await serializer.run(asset) { () async throws(RPCError) in nil }
                } catch {
                    return error.errorCode
                }
            }
            waiting.cancel()
            #expect(await waiting.value == .userCancelled)
            group.addTask { try await serializer.run(asset) { () async throws(RPCError) in "second" } }
            await release.pass()
            var names: Set<String> = []
            for try await name in group { names.insert(name) }
            #expect(names == ["first", "second"])
        }
        #expect(serializer.metrics == (0, 0))
    }

    private func id(_ number: Int) throws -> ObjectID {
        var random = SeededRandom(seed: UInt64(number))
        return ObjectID(.asset, milliseconds: Int64(number), using: &random)
    }
}

/// Counts the running edits of each asset.
private final class ConcurrencyProbe: Sendable {
    private let counts = Mutex<[ObjectID: Int]>([:])

    func enter(_ asset: ObjectID) -> Int {
        counts.withLock { counts in
            counts[asset, default: 0] += 1
            return counts[asset] ?? 0
        }
    }

    func finish(_ asset: ObjectID) { counts.withLock { $0[asset, default: 0] -= 1 } }
}
