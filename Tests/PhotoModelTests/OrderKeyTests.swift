import PhotoModel
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(TestEnvironment.rounds(1))))
struct OrderKeyTests {
    @Test func `random insertions keep the order and give unique keys`() throws {
        var random = SeededRandom(named: "order keys")
        var keys: [OrderKey] = []
        for _ in 0..<TestEnvironment.rounds(3000) {
            let index = random.one(in: 3) ? keys.count : Int.random(in: 0...keys.count, using: &random)
            let lower = index > 0 ? keys[index - 1] : nil
            let upper = index < keys.count ? keys[index] : nil
            let count = random.one(in: 20) ? Int.random(in: 0...40, using: &random) : 1
            let new = try OrderKey.keys(count: count, between: lower, and: upper)
            #expect(new.count == count)
            let neighbours = [lower].compactMap(\.self) + new + [upper].compactMap(\.self)
            #expect(zip(neighbours, neighbours.dropFirst()).allSatisfy { $0 < $1 })
            #expect(new.allSatisfy { OrderKey($0.text) == $0 })
            keys.insert(contentsOf: new, at: index)
        }
        #expect(Set(keys).count == keys.count)
    }

    @Test func `appending a hundred thousand members keeps keys short`() {
        var last: OrderKey?
        for _ in 0..<100_000 {
            let key = OrderKey.after(last)
            if let last, !(last < key) { Issue.record("\(key) does not follow \(last)") }
            last = key
        }
        #expect((last?.text.utf8.count ?? 99) <= 6)
    }

    @Test func `prepending a hundred thousand members keeps keys short`() throws {
        var first: OrderKey?
        for _ in 0..<100_000 {
            guard let key = try OrderKey.keys(count: 1, between: nil, and: first).first else {
                Issue.record("there is no key before \(first?.text ?? "nothing")")
                return
            }
            if let first, !(key < first) { Issue.record("\(key) does not precede \(first)") }
            first = key
        }
        #expect((first?.text.utf8.count ?? 99) <= 6)
    }

    @Test(arguments: [1, 7])
    func `ten thousand insertions at one position keep keys short`(count: Int) throws {
        for isFront in [true, false] {
            var lower = OrderKey.after(nil)
            var upper = OrderKey.after(lower)
            for _ in 0..<10_000 / count {
                let keys = try OrderKey.keys(count: count, between: lower, and: upper)
                let all = [lower] + keys + [upper]
                if !zip(all, all.dropFirst()).allSatisfy({ $0 < $1 }) { Issue.record("\(all) is not in order") }
                if isFront { upper = keys[0] } else { lower = keys[count - 1] }
            }
            // An eighth of the limit, so that ten times as many insertions are possible too.
            #expect(lower.text.utf8.count <= OrderKey.maxBytes / 8)
            #expect(upper.text.utf8.count <= OrderKey.maxBytes / 8)
        }
    }

    @Test func `four hundred insertions between the last two stay within the limit`() throws {
        var lower = OrderKey.after(nil)
        var upper = OrderKey.after(lower)
        for number in 0..<400 {
            let key = try #require(OrderKey.keys(count: 1, between: lower, and: upper).first)
            if !(lower < key && key < upper) { Issue.record("\(key) is not between \(lower) and \(upper)") }
            if number.isMultiple(of: 2) { upper = key } else { lower = key }
        }
        #expect(lower.text.utf8.count <= OrderKey.maxBytes)
        #expect(upper.text.utf8.count <= OrderKey.maxBytes)
    }

    @Test func `many keys created at once stay short`() throws {
        let (low, high) = (OrderKey("a"), OrderKey("b"))
        for (lower, upper) in [(low, high), (nil, low), (high, nil)] {
            let keys = try OrderKey.keys(count: 100_000, between: lower, and: upper)
            #expect(keys.allSatisfy { $0.text.utf8.count <= 6 })
        }
    }

    @Test func `keys can be created before the first and after the last possible step`() throws {
        let last = try #require(OrderKey(String(repeating: "z", count: 6)))
        let more = OrderKey.keys(count: 100, after: last)
        #expect(zip([last] + more, more).allSatisfy { $0 < $1 })
        let first = try #require(OrderKey("000001"))
        let less = try OrderKey.keys(count: 100, between: nil, and: first)
        #expect(zip(less, less.dropFirst() + [first]).allSatisfy { $0 < $1 })
        let tiny: OrderKey = try #require(OrderKey("00000000001"))
        #expect(try OrderKey.keys(count: 1, between: nil, and: tiny).allSatisfy { $0 < tiny })
    }

    @Test func `keys that are out of order are refused`() throws {
        let (low, high) = (OrderKey.after(nil), OrderKey.after(OrderKey.after(nil)))
        #expect(throws: OrderKey.OutOfOrder.self) { try OrderKey.keys(count: 1, between: high, and: low) }
        #expect(throws: OrderKey.OutOfOrder.self) { try OrderKey.keys(count: 1, between: low, and: low) }
    }

    @Test(arguments: ["", "0", "a0", "a-", "é", " a", String(repeating: "a", count: 513)])
    func `other text is not an order key`(text: String) {
        #expect(OrderKey(text) == nil)
    }
}
