import Glibc
import JSONValue
import Synchronization
import Testing

@testable import Catalog

/// Tests of the changes that are read on the poll thread, and of the threads that their tasks run on.
@Suite(.timeLimit(.minutes(1)))
struct SmallChangeTests {
    /// The threads that a task has run on, and the continuation that it waits for.
    private final class Trace: Sendable {
        let threads = Mutex<[pthread_t]>([])
        let waiter = Mutex<CheckedContinuation<Void, Never>?>(nil)

        func recordThread() { threads.withLock { $0.append(pthread_self()) } }
    }

    /// Starts a task that records its thread, waits, and records it again.
    private func start(_ executor: SmallChangeExecutor, _ trace: Trace) -> Task<Void, Never> {
        Task(executorPreference: executor) { @concurrent in
            trace.recordThread()
            await withCheckedContinuation { continuation in trace.waiter.withLock { $0 = continuation } }
            trace.recordThread()
        }
    }

    @Test
    func `a task begins on the thread that creates it, and continues on the writer thread`() async throws {
        let writer = WriterExecutor()
        let trace = Trace()
        let (task, here) = (start(SmallChangeExecutor(writer), trace), pthread_self())
        // The thread was recorded before the task was returned.
        #expect(trace.threads.withLock { $0 }.map { pthread_equal($0, here) != 0 } == [true])
        await withCheckedContinuation { continuation in
            writer.async {
                trace.waiter.withLock { $0 }?.resume()
                #expect(trace.threads.withLock(\.count) == 1, "it is queued, not run at once")
                continuation.resume()
            }
        }
        await task.value
        #expect(trace.threads.withLock(\.count) == 2)
    }

    @Test func `a task whose beginning may block begins on the writer thread`() async throws {
        let writer = WriterExecutor()
        let trace = Trace()
        let isDone = Atomic(false)
        // Earlier work in the queue runs first.
        writer.async { isDone.store(true, ordering: .releasing) }
        let task = start(SmallChangeExecutor(writer, beginsAtOnce: false), trace)
        while trace.waiter.withLock({ $0 == nil }), !Task.isCancelled { await Task.yield() }
        let wasDone = isDone.load(ordering: .acquiring)
        #expect(wasDone)
        trace.waiter.withLock { $0 }?.resume()
        await task.value
        #expect(trace.threads.withLock(\.count) == 2)
    }

    @Test func `changes with bytes, snapshots, many objects or long texts are not small`() throws {
        func areSmall(_ text: String) throws -> Bool { SmallChange.areSmall(try JSON(parsing: Array(text.utf8))) }
        let long = String(repeating: "x", count: 5000)
        let many = (0..<17).map { "\"\($0)\"" }.joined(separator: ",")
        #expect(try areSmall(#"[{"type":"asset.update","id":"a","set":{"isFavorite":true,"caption":"x"}}]"#))
        #expect(try areSmall(#"[{"type":"asset.trash","ids":["a","b"]}]"#))
        #expect(try !areSmall(#"[{"type":"asset.create","resources":[{"type":"photo"}]}]"#))
        #expect(try !areSmall(#"[{"type":"collection.update","id":"c","edits":[],"snapshot":"t"}]"#))
        #expect(try !areSmall(#"[{"type":"asset.trash","ids":[\#(many)]}]"#))
        #expect(try !areSmall(#"[{"type":"asset.update","id":"a","set":{"caption":"\#(long)"}}]"#))
        #expect(try !areSmall(#"[{"type":"asset.update","id":"a","set":{"keywords":["\#(long)"]}}]"#))
        #expect(try !areSmall(#"[{"type":"asset.update","id":"a","set":{"location":{"a":1}}}]"#))
        #expect(!SmallChange.areSmall(nil))
        #expect(!SmallChange.areSmall(.array(Array(repeating: .object([:]), count: 17))))
    }
}
