import Testing

@testable import CommandLine

@Suite(.timeLimit(.minutes(5)))
struct RestartPolicyTests {
    @Test func `a service that ran long enough is restarted at once`() {
        var policy = RestartPolicy()
        #expect(policy.recordEnd(after: .seconds(2)) == .zero)
        #expect(policy.recordEnd(after: .seconds(3600)) == .zero)
    }

    @Test func `the delay doubles with each short run, up to five seconds`() {
        var policy = RestartPolicy()
        let delays = (0..<9).map { _ in policy.recordEnd(after: .milliseconds(50)) }
        #expect(
            delays == [
                .milliseconds(100), .milliseconds(200), .milliseconds(400), .milliseconds(800), .milliseconds(1600),
                .milliseconds(3200), .seconds(5), .seconds(5), .seconds(5),
            ]
        )
        for _ in 0..<100 { #expect(policy.recordEnd(after: .zero) == .seconds(5)) }
    }

    @Test func `a long run resets the delay`() {
        var policy = RestartPolicy()
        for _ in 0..<5 { _ = policy.recordEnd(after: .zero) }
        #expect(policy.recordEnd(after: .seconds(10)) == .zero)
        #expect(policy.recordEnd(after: .zero) == .milliseconds(100))
    }

    @Test func `a stop request reaches all waiting tasks and later ones`() async {
        let stop = StopRequest()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<10 { group.addTask { await stop.wait() } }
            stop.request()
        }
        await stop.wait()
        #expect(await stop.wait(withTimeout: .seconds(60)))
    }

    @Test func `a wait ends with the time limit or the cancellation of the task`() async {
        let stop = StopRequest()
        #expect(await stop.wait(withTimeout: .milliseconds(1)) == false)
        let waiter = Task { await stop.wait() }
        waiter.cancel()
        await waiter.value
        #expect(!stop.isRequested)
    }
}
