import Testing

@testable import Thumbnailer

@Suite(.timeLimit(.minutes(5)))
struct SingleFlightTableTests {
    @Test func `equal work requested again joins the running execution`() {
        var table = SingleFlightTable<String>(limit: 2)
        guard case .begun(let first) = table.join("a", waiter: 1) else {
            Issue.record("not started")
            return
        }
        #expect(table.join("a", waiter: 2) == .joined(first))
        #expect(table.count == 1)
        #expect(table.finish(first) == [1, 2])
        #expect(table.count == 0)
    }

    @Test func `at the limit new work is refused and joining is allowed`() {
        var table = SingleFlightTable<String>(limit: 1)
        guard case .begun(let first) = table.join("a", waiter: 1) else {
            Issue.record("not started")
            return
        }
        #expect(table.join("b", waiter: 2) == .full)
        #expect(table.join("a", waiter: 3) == .joined(first))
    }

    @Test func `work is abandoned only when its last waiter leaves`() {
        var table = SingleFlightTable<String>(limit: 4)
        guard case .begun(let first) = table.join("a", waiter: 1) else {
            Issue.record("not started")
            return
        }
        _ = table.join("a", waiter: 2)
        #expect(table.removeWaiter(waiter: 1) == nil)
        #expect(table.removeWaiter(waiter: 1) == nil)
        #expect(table.removeWaiter(waiter: 2) == first)
    }

    @Test func `work requested after it was abandoned is a new execution`() {
        var table = SingleFlightTable<String>(limit: 4)
        guard case .begun(let first) = table.join("a", waiter: 1) else {
            Issue.record("not started")
            return
        }
        #expect(table.removeWaiter(waiter: 1) == first)
        guard case .begun(let second) = table.join("a", waiter: 2) else {
            Issue.record("joined abandoned work")
            return
        }
        #expect(table.finish(first) == [])
        #expect(table.join("a", waiter: 3) == .joined(second))
        #expect(table.finish(second) == [2, 3])
    }
}
