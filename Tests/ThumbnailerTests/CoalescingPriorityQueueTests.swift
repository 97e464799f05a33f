import Hosting
import TestSupport
import Testing

@testable import Thumbnailer

@Suite(.timeLimit(.minutes(TestEnvironment.rounds(5))))
struct CoalescingPriorityQueueTests {
    /// A queue whose waiters are numbers. Every test enters each number once, so that it identifies the waiter.
    private struct Fixture {
        typealias Queue = CoalescingPriorityQueue<Int, Int, Int>

        var queue: Queue
        var tickets: [Int: Queue.Ticket] = [:]
        var now: Int64 = 0

        init(limit: Int = 1000, maxBatches: Int = .max, batchSize: Int = 8) {
            queue = Queue(limit: limit, maxBatches: maxBatches, batchSize: batchSize)
        }

        /// Adds a waiter; returns true if new work was queued, false if it joined, nil if the limit is reached.
        mutating func enter(_ key: Int, of group: Int = 0, _ urgency: RequestUrgency = .interactive, waiter: Int)
            -> Bool?
        {
            switch queue.enter(key, of: group, urgency, waiter: waiter, now: now) {
            case .queued(let ticket):
                tickets[waiter] = ticket
                return true
            case .joined(let ticket):
                tickets[waiter] = ticket
                return false
            case .full: return nil
            }
        }

        /// Queues work for a waiter of the same number.
        mutating func add(_ key: Int, of group: Int, _ urgency: RequestUrgency) {
            _ = enter(key, of: group, urgency, waiter: key)
        }

        mutating func leave(waiter: Int) -> UInt64? { tickets.removeValue(forKey: waiter).flatMap { queue.leave($0) } }

        /// Starts and ends the next batch.
        mutating func next() -> [Int]? {
            guard let batch = queue.next(now: now) else { return nil }
            _ = queue.finish(batch)
            return batch.keys
        }
    }

    // MARK: Sharing

    @Test func `equal work requested again joins the queued or running execution`() throws {
        var fixture = Fixture()
        #expect(fixture.enter(1, waiter: 1) == true)
        #expect(fixture.enter(1, waiter: 2) == false)
        let next = fixture.queue.next(now: 0)
        let batch = try #require(next)
        #expect(batch.keys == [1], "one execution")
        #expect(fixture.enter(1, waiter: 3) == false, "it is running")
        #expect(fixture.queue.count == 1)
        #expect(fixture.queue.joinCount == 2)
        let waiters = fixture.queue.finish(batch)
        #expect(waiters.map { $0.sorted() } == [[1, 2, 3]])
        #expect(fixture.queue.count == 0)
        #expect(fixture.queue.finish(batch).isEmpty, "it has already ended")
    }

    @Test func `at the limit new work is refused and joining is allowed`() {
        var fixture = Fixture(limit: 1)
        #expect(fixture.enter(1, waiter: 1) == true)
        #expect(fixture.enter(2, waiter: 2) == nil)
        #expect(fixture.enter(1, waiter: 3) == false)
        #expect(fixture.queue.next(now: 0)?.keys == [1])
        #expect(fixture.enter(2, waiter: 4) == nil, "running work counts too")
    }

    @Test func `a batch is abandoned only when the last waiter of its last item leaves`() throws {
        var fixture = Fixture()
        for (key, waiter) in [(1, 1), (1, 2), (2, 3)] { _ = fixture.enter(key, waiter: waiter) }
        let next = fixture.queue.next(now: 0)
        let batch = try #require(next)
        #expect(fixture.leave(waiter: 1) == nil)
        #expect(fixture.leave(waiter: 1) == nil)
        #expect(fixture.leave(waiter: 2) == nil, "the other item still has a waiter")
        #expect(!fixture.queue.canJoin(1))
        #expect(fixture.leave(waiter: 3) == batch.number)
        #expect(fixture.queue.count == 2, "it occupies its slot until it has ended")
        let waiters = fixture.queue.finish(batch)
        #expect(waiters == [[], []])
        #expect(fixture.queue.count == 0)
    }

    @Test func `queued work without waiters is dropped`() {
        var fixture = Fixture()
        _ = fixture.enter(1, waiter: 1)
        _ = fixture.enter(1, waiter: 2)
        #expect(fixture.leave(waiter: 1) == nil)
        #expect(fixture.queue.queuedCount == 1)
        #expect(fixture.leave(waiter: 2) == nil)
        #expect((fixture.queue.count, fixture.queue.queuedCount) == (0, 0))
        #expect(fixture.next() == nil)
    }

    @Test func `work requested after it was abandoned is a new execution`() throws {
        var fixture = Fixture()
        _ = fixture.enter(1, waiter: 1)
        let old = fixture.queue.next(now: 0)
        let first = try #require(old)
        #expect(fixture.leave(waiter: 1) == first.number)
        #expect(fixture.enter(1, waiter: 2) == true)
        let forgotten = fixture.queue.finish(first)
        #expect(forgotten == [[]])
        #expect(fixture.enter(1, waiter: 3) == false)
        let new = fixture.queue.next(now: 0)
        let second = try #require(new)
        let waiters = fixture.queue.finish(second)
        #expect(waiters.map { $0.sorted() } == [[2, 3]])
    }

    @Test func `all waiters are returned when the queue is emptied`() {
        var fixture = Fixture(batchSize: 1)
        for waiter in 1...4 { _ = fixture.enter(waiter / 2, waiter: waiter) }
        #expect(fixture.queue.next(now: 0) != nil)
        #expect(fixture.queue.removeAll().sorted() == [1, 2, 3, 4])
        #expect((fixture.queue.count, fixture.queue.queuedCount) == (0, 0))
    }

    @Test func `an owner has a quarter of the queue, and others have the rest`() throws {
        var queue = Fixture.Queue(limit: 8, maxBatches: .max)
        func enter(_ key: Int, _ owner: String?) -> Fixture.Queue.Ticket? {
            switch queue.enter(key, of: key, .interactive, owner: owner, waiter: key, now: 0) {
            case .queued(let ticket), .joined(let ticket): ticket
            case .full: nil
            }
        }
        let first = enter(1, "a")
        #expect(first != nil && enter(2, "a") != nil && enter(3, "a") == nil)
        #expect(enter(1, "a") != nil, "joined")
        #expect(enter(3, "b") != nil && enter(4, nil) != nil)
        let next = queue.next(now: 0)
        let batch = try #require(next)
        #expect(batch.keys == [1] && enter(5, "a") == nil, "running work counts")
        _ = queue.finish(batch)
        let queued = enter(5, "a")
        let ticket = try #require(queued)
        #expect(enter(6, "a") == nil)
        #expect(queue.leave(ticket) == nil)
        #expect(enter(6, "a") != nil, "dropped work does not count")
    }

    @Test func `one export of a client runs at a time`() {
        var waiting = PerClientQueue()
        let areRunning = ["a1", "a2", "a3"].map { waiting.append($0, of: "a") }
        #expect(areRunning == [true, false, false])
        #expect(waiting.append("b1", of: "b") == true)
        waiting.remove("a1", of: "a")
        waiting.remove("a2", of: "a")
        #expect(waiting.append("a4", of: "a") == false, "the first one has not ended")
        #expect(waiting.next(of: "a") == "a3")
        #expect(waiting.next(of: "a") == "a4")
        #expect(waiting.next(of: "a") == nil)
        #expect(waiting.append("a5", of: "a") == true)
    }

    // MARK: Order

    @Test func `interactive items run first, together with the other items of their group`() {
        var fixture = Fixture()
        let (a, b, c) = (1, 2, 3)
        fixture.add(1, of: a, .prefetch)
        fixture.add(2, of: b, .prefetch)
        fixture.add(3, of: c, .interactive)
        fixture.add(4, of: b, .interactive)
        fixture.add(5, of: a, .prefetch)
        #expect(fixture.next() == [3])
        #expect(fixture.next() == [4, 2], "one decode serves both, the urgent item first")
        #expect(fixture.next() == [1, 5])
        #expect(fixture.next() == nil)
        #expect(fixture.queue.count == 0)
    }

    @Test func `a request that joins raises the priority of queued work`() {
        var fixture = Fixture(batchSize: 1)
        for key in 0..<10 { fixture.add(key, of: key, .prefetch) }
        #expect(fixture.enter(7, of: 7, .interactive, waiter: 100) == false)
        #expect(fixture.enter(7, of: 7, .prefetch, waiter: 101) == false)
        #expect(fixture.next() == [7])
        #expect(fixture.next() == [0])
    }

    @Test func `items beyond the batch size come with the next batch`() {
        var fixture = Fixture(batchSize: 3)
        for key in 0..<7 { fixture.add(key, of: 0, .interactive) }
        #expect(fixture.next() == [0, 1, 2])
        #expect(fixture.next() == [3, 4, 5])
        #expect(fixture.next() == [6])
    }

    @Test func `prefetch leaves a slot free while interactive requests continue to arrive`() throws {
        var fixture = Fixture(maxBatches: 2)
        for key in 1...4 { fixture.add(key, of: key, .prefetch) }
        fixture.add(5, of: 5, .interactive)
        let urgent = fixture.queue.next(now: 0)
        #expect(urgent?.keys == [5])
        _ = fixture.queue.finish(try #require(urgent))
        #expect(fixture.queue.next(now: 0)?.keys == [1])
        #expect(fixture.queue.next(now: 0) == nil, "the second slot is kept free")
        fixture.add(6, of: 6, .interactive)
        #expect(fixture.queue.next(now: 1)?.keys == [6])
        fixture.add(7, of: 7, .interactive)
        #expect(fixture.queue.next(now: 2) == nil, "no more batches than slots")

        var idle = Fixture(maxBatches: 2)
        for key in 1...4 { idle.add(key, of: key, .prefetch) }
        #expect(idle.queue.next(now: 0) != nil && idle.queue.next(now: 0) != nil, "nobody is waiting")
        fixture = Fixture(maxBatches: 2)
        for key in 1...4 { fixture.add(key, of: key, key == 1 ? .interactive : .prefetch) }
        #expect(fixture.next() == [1])
        let later = Fixture.Queue.interactiveGrace
        #expect(fixture.queue.next(now: later) != nil && fixture.queue.next(now: later) != nil, "a second later")
    }

    // MARK: Clients

    @Test func `clients take turns, however many groups one of them has queued`() {
        var queue = Fixture.Queue(limit: 1000, maxBatches: .max, batchSize: 8)
        func enter(_ key: Int, of group: Int, _ client: String, _ urgency: RequestUrgency = .interactive) {
            _ = queue.enter(key, of: group, urgency, from: .identity(client), waiter: key, now: 0)
        }
        func next() -> [Int]? {
            guard let batch = queue.next(now: 0) else { return nil }
            _ = queue.finish(batch)
            return batch.keys
        }
        for group in 0..<100 { enter(group, of: group, "many") }
        enter(100, of: 100, "one")
        #expect(next() == [0] && next() == [100] && next() == [1] && next() == [2])
        // A client that requests work which another one has queued has it among its own work too.
        enter(101, of: 101, "one")
        enter(60, of: 60, "one")
        enter(102, of: 70, "one")
        #expect(next() == [3] && next() == [101] && next() == [4] && next() == [60] && next() == [5])
        #expect(next() == [102, 70], "its own work comes first")
        // Prefetch is a separate queue with separate turns.
        for key in 200..<210 { enter(key, of: key, "many", .prefetch) }
        enter(210, of: 210, "one", .prefetch)
        while let keys = next(), keys != [99] {}
        #expect(next() == [200] && next() == [210] && next() == [201])
    }

    @Test func `a client that has filled the queue does not exclude another one`() throws {
        var queue = Fixture.Queue(limit: 32, maxBatches: .max)
        func enter(_ key: Int, _ client: String) -> Fixture.Queue.Ticket? {
            switch queue.enter(key, of: key, .interactive, from: .identity(client), waiter: key, now: 0) {
            case .queued(let ticket), .joined(let ticket): ticket
            case .full: nil
            }
        }
        let many = (0..<40).compactMap { enter($0, "many") }
        let one = (40..<50).compactMap { enter($0, "one") }
        #expect(many.count == 32 && one.count == 2, "a sixteenth of the limit is reserved for each client")
        let isToBeCancelled = queue.leave(try #require(one.first)) != nil
        #expect(!isToBeCancelled)
        #expect(enter(50, "one") != nil && enter(51, "one") == nil)
        #expect(enter(52, "many") == nil, "only other clients may exceed the limit")
    }

    @Test func `work that took too long together is queued again, in the turn of its client`() throws {
        var fixture = Fixture(maxBatches: 1, batchSize: 4)
        for key in 0..<4 { fixture.add(key, of: 0, .interactive) }
        fixture.add(10, of: 1, .interactive)
        _ = fixture.queue.enter(20, of: 2, .interactive, from: .identity("other"), waiter: 20, now: 0)
        let first = fixture.queue.next(now: 0)
        let batch = try #require(first)
        #expect(batch.keys == [0, 1, 2, 3])
        #expect(fixture.leave(waiter: 3) == nil)
        let waiters = fixture.queue.finish(batch, deferred: [0, 1, 2, 3])
        #expect(waiters == [[], [], [], []] && fixture.queue.count == 5, "nobody waits for the last one")
        #expect(fixture.enter(1, waiter: 100) == false)
        #expect(fixture.next() == [20], "another client does not wait")
        #expect(fixture.next() == [0] && fixture.next() == [10], "the other work of its client does not wait either")
        #expect(fixture.next() == [1] && fixture.next() == [2] && fixture.queue.count == 0, "the items run one by one")

        for key in 0..<4 { fixture.add(key, of: 0, .prefetch) }
        let second = fixture.queue.next(now: 0)
        let part = try #require(second)
        let ended = fixture.queue.finish(part, deferred: [1, 3])
        #expect(ended == [[0], [], [2], []])
        #expect(fixture.next() == [1, 3], "some items were finished, so the others may run together")
        #expect(fixture.queue.queuedCount == 0)
    }

    @Test func `work that an interactive request joined while it ran is interactive when it is queued again`() throws {
        var fixture = Fixture(maxBatches: 1, batchSize: 2)
        for key in [0, 1] { fixture.add(key, of: 0, .prefetch) }
        let next = fixture.queue.next(now: 0)
        let batch = try #require(next)
        #expect(batch.keys == [0, 1])
        _ = fixture.queue.enter(1, of: 0, .interactive, from: .identity("person"), waiter: 2, now: 0)
        fixture.add(10, of: 1, .prefetch)
        let ended = fixture.queue.finish(batch, deferred: [0, 1])
        #expect(ended == [[], []])
        let urgent = fixture.queue.next(now: 0)
        let alone = try #require(urgent)
        #expect(alone.keys == [1] && alone.urgency == .interactive)
        let waiters = fixture.queue.finish(alone)
        #expect(waiters.map { $0.sorted() } == [[1, 2]])
    }

    @Test func `random operations agree with a plain list`() {
        var random = SeededRandom(named: "due table")
        for _ in 0..<TestEnvironment.rounds(30) {
            var fixture = Fixture(batchSize: 4)
            var model: [Int: (group: Int, urgency: RequestUrgency)] = [:]
            for key in 0..<400 {
                switch Int.random(in: 0..<5, using: &random) {
                case 0, 1:
                    let group = Int.random(in: 0..<20, using: &random)
                    let urgency: RequestUrgency = Bool.random(using: &random) ? .interactive : .prefetch
                    fixture.add(key, of: group, urgency)
                    model[key] = (group, urgency)
                case 2:
                    guard let (other, entry) = model.randomElement(using: &random) else { continue }
                    #expect(fixture.enter(other, of: entry.group, .interactive, waiter: key) == false)
                    // Both waiters have to leave before the work is dropped.
                    #expect(fixture.leave(waiter: other) == nil)
                    fixture.tickets[other] = fixture.tickets.removeValue(forKey: key)
                    model[other]?.urgency = .interactive
                case 3:
                    guard let other = model.keys.randomElement(using: &random) else { continue }
                    #expect(fixture.leave(waiter: other) == nil)
                    #expect(!fixture.queue.canJoin(other))
                    model[other] = nil
                default:
                    let urgent = model.values.contains { $0.urgency == .interactive }
                    guard let batch = fixture.queue.next(now: 0) else {
                        #expect(model.isEmpty)
                        continue
                    }
                    #expect(batch.urgency == (urgent ? .interactive : .prefetch))
                    #expect(Set(batch.keys.compactMap { model[$0]?.group }).count == 1)
                    #expect(batch.keys.allSatisfy { model[$0] != nil } && (1...4).contains(batch.keys.count))
                    _ = fixture.queue.finish(batch)
                    for key in batch.keys { model[key] = nil }
                }
                #expect(fixture.queue.count == model.count)
                #expect(fixture.queue.queuedCount == model.count)
            }
        }
    }
}
