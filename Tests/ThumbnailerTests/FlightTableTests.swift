import Testing

@testable import Thumbnailer

@Suite(.timeLimit(.minutes(5)))
struct FlightTableTests {
    @Test func `the same work asked for again is joined`() {
        var table = FlightTable<String>(limit: 2)
        guard case .begun(let first) = table.join("a", waiter: 1) else {
            Issue.record("not begun")
            return
        }
        #expect(table.join("a", waiter: 2) == .joined(first))
        #expect(table.count == 1)
        #expect(table.finish(first) == [1, 2])
        #expect(table.count == 0)
    }

    @Test func `above the limit new work is refused, joining is not`() {
        var table = FlightTable<String>(limit: 1)
        guard case .begun(let first) = table.join("a", waiter: 1) else {
            Issue.record("not begun")
            return
        }
        #expect(table.join("b", waiter: 2) == .full)
        #expect(table.join("a", waiter: 3) == .joined(first))
    }

    @Test func `work is given up only when the last one has gone`() {
        var table = FlightTable<String>(limit: 4)
        guard case .begun(let first) = table.join("a", waiter: 1) else {
            Issue.record("not begun")
            return
        }
        _ = table.join("a", waiter: 2)
        #expect(table.leave(waiter: 1) == nil)
        #expect(table.leave(waiter: 1) == nil)
        #expect(table.leave(waiter: 2) == first)
    }

    @Test func `work asked for again after it was given up is new work`() {
        var table = FlightTable<String>(limit: 4)
        guard case .begun(let first) = table.join("a", waiter: 1) else {
            Issue.record("not begun")
            return
        }
        #expect(table.leave(waiter: 1) == first)
        guard case .begun(let second) = table.join("a", waiter: 2) else {
            Issue.record("joined work that was given up")
            return
        }
        #expect(table.finish(first) == [])
        #expect(table.join("a", waiter: 3) == .joined(second))
        #expect(table.finish(second) == [2, 3])
    }
}
