import Basics
import Testing

/// The value of a promise is the first that is provided; the cancellation of the waiting task may provide one too.
@Suite(.timeLimit(.minutes(1)))
struct PromiseTests {
    @Test func `a value provided before or after the wait is returned once`() async {
        let early = Promise<Int>()
        #expect(early.fulfill(1))
        #expect(!early.fulfill(2), "the second value is refused")
        #expect(await early.value() == 1)
        #expect(!early.fulfill(3), "also after the value was returned")

        let late = Promise<Int>()
        async let value = late.value()
        #expect(late.fulfill(4))
        #expect(await value == 4)
    }

    @Test func `cancellation provides its own value, also if the task was cancelled before it waited`() async {
        for isCancelledFirst in [true, false] {
            let promise = Promise<String>()
            let gate = Promise<Void>()
            let task = Task {
                if isCancelledFirst { await gate.value() }
                return await promise.value(ifCancelled: "cancelled")
            }
            task.cancel()
            gate.fulfill(())
            #expect(await task.value == "cancelled")
            #expect(!promise.fulfill("late"))
        }
    }

    @Test func `exactly one of many concurrent providers provides the value`() async {
        for _ in 0..<200 {
            let promise = Promise<Int>()
            let accepted = await withTaskGroup(of: (Int, Bool).self) { group in
                for number in 0..<8 { group.addTask { (number, promise.fulfill(number)) } }
                return await group.reduce(into: [Int]()) { if $1.1 { $0.append($1.0) } }
            }
            #expect(accepted.count == 1)
            #expect(await promise.value() == accepted.first)
        }
    }
}
