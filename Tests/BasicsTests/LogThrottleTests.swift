import Basics
import Testing

@Suite(.timeLimit(.minutes(1)))
struct LogThrottleTests {
    @Test func `the first event is reported at once, the others once a second with their number`() {
        var throttle = LogThrottle()
        #expect(throttle.count(at: 0) == 1)
        for time in [1, 2, 999_999] as [Int64] { #expect(throttle.count(at: time) == nil) }
        #expect(throttle.count(at: 1_000_000) == 4)
        #expect(throttle.count(at: 1_999_999) == nil)
        #expect(throttle.count(at: 9_000_000) == 2)
    }
}
