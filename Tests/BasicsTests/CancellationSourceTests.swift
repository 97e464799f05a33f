import Basics
import Testing

/// An operation is cancelled by its source or by the calling task, at any time; `run` always waits for its end.
@Suite(.timeLimit(.minutes(1)))
struct CancellationSourceTests {
    private func waitUntilCancelled(_ started: Promise<Void>) async -> String {
        let cancelled = Promise<String>()
        started.fulfill(())
        return await cancelled.value(ifCancelled: "cancelled")
    }

    @Test func `an operation returns its value`() async {
        let source = CancellationSource()
        #expect(await source.run { Task.isCancelled } == false)
        source.cancel()
        #expect(source.isCancelled)
    }

    @Test func `a source cancelled before the operation begins cancels it at once`() async {
        let source = CancellationSource()
        source.cancel()
        #expect(await source.run { await waitUntilCancelled(Promise()) } == "cancelled")
    }

    @Test func `a running operation is cancelled by its source or by the calling task`() async {
        for isBySource in [true, false] {
            let (source, started) = (CancellationSource(), Promise<Void>())
            let task = Task { await source.run { await waitUntilCancelled(started) } }
            await started.value()
            if isBySource { source.cancel() } else { task.cancel() }
            #expect(await task.value == "cancelled")
            #expect(source.isCancelled == isBySource)
        }
    }
}
