import Basics
import Testing

/// All waiters of an event are resumed once it happens; cancellation ends only the waits that observe it.
@Suite(.timeLimit(.minutes(1)))
struct OneTimeEventTests {
    @Test func `an event resumes every waiter, before and after it happens`() async {
        let event = OneTimeEvent()
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<20 {
                group.addTask { if number % 2 == 0 { await event.wait() } else { await event.waitUnlessCancelled() } }
            }
            #expect(!event.hasHappened)
            event.signal()
            event.signal()
            await group.waitForAll()
        }
        #expect(event.hasHappened)
        await event.wait()
        await event.waitUnlessCancelled()
    }

    @Test func `cancellation ends only the wait that observes it`() async {
        let event = OneTimeEvent()
        let unaffected = Task {
            await event.wait()
            return event.hasHappened
        }
        let cancellable = Task {
            await event.waitUnlessCancelled()
            return event.hasHappened
        }
        unaffected.cancel()
        cancellable.cancel()
        #expect(await cancellable.value == false)
        event.signal()
        #expect(await unaffected.value)
    }
}
