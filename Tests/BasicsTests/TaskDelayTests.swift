import Basics
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1)))
struct TaskDelayTests {
    @Test func `a wait continues if a sleep ends before the clock has reached the time`() async {
        // Advances by a millisecond whenever it is read, however long a sleep was.
        let time = Mutex<Int64>(0)
        let clock = MonotonicClock {
            time.withLock { time in
                time += 1000
                return time
            }
        }
        await TaskDelay.until(3000, of: clock)
        #expect(time.withLock { $0 } == 3000)
    }
}
