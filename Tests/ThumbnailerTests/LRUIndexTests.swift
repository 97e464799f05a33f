import TestSupport
import Testing

@testable import Thumbnailer

@Suite(.timeLimit(.minutes(5)))
struct LRUIndexTests {
    @Test func `the least recently used entry is evicted first`() {
        var cache = LRUIndex<String>(budget: 30)
        #expect(cache.insert("a", cost: 10) == [])
        #expect(cache.insert("b", cost: 10) == [])
        #expect(cache.insert("c", cost: 10) == [])
        cache.touch("a")
        #expect(cache.insert("d", cost: 15) == ["b", "c"])
        #expect(cache.keysLeastRecentFirst == ["a", "d"])
        #expect(cache.total == 25)
    }

    @Test func `an entry larger than the budget is not inserted and evicts nothing`() {
        var cache = LRUIndex<String>(budget: 30)
        _ = cache.insert("a", cost: 10)
        #expect(cache.insert("big", cost: 31) == ["big"])
        #expect(cache.keysLeastRecentFirst == ["a"])
        #expect(cache.insert("a", cost: 31) == ["a"], "an entry that grew too large is evicted")
        #expect(cache.total == 0)
    }

    @Test func `an entry inserted again counts once, with its new cost`() {
        var cache = LRUIndex<String>(budget: 30)
        _ = cache.insert("a", cost: 10)
        _ = cache.insert("b", cost: 10)
        #expect(cache.insert("a", cost: 20) == [])
        #expect(cache.total == 30)
        #expect(cache.keysLeastRecentFirst == ["b", "a"])
        #expect(cache.remove("a") == 20)
        #expect(cache.remove("a") == nil)
        #expect(cache.total == 10)
    }

    @Test func `a budget of zero only holds entries without cost`() {
        var cache = LRUIndex<String>(budget: 0)
        #expect(cache.insert("a", cost: 1) == ["a"])
        #expect(cache.insert("empty", cost: 0) == [])
        #expect(cache.count == 1)
    }

    @Test(arguments: [UInt64(1), 2, 3, 0xfeed])
    func `the index agrees with a plain list under random operations`(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var cache = LRUIndex<Int>(budget: 100)
        var model: [(key: Int, cost: Int64)] = []
        for _ in 0..<5000 {
            let key = Int.random(in: 0..<40, using: &random)
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<5:
                let cost = Int64.random(in: 0...30, using: &random)
                model.removeAll { $0.key == key }
                model.append((key, cost))
                var evicted: [Int] = []
                while model.reduce(0, { $0 + $1.cost }) > 100 { evicted.append(model.removeFirst().key) }
                #expect(cache.insert(key, cost: cost) == evicted)
            case 5..<8:
                let index = model.firstIndex { $0.key == key }
                #expect(cache.touch(key) == (index != nil))
                if let index { model.append(model.remove(at: index)) }
            default:
                let index = model.firstIndex { $0.key == key }
                #expect(cache.remove(key) == index.map { model[$0].cost })
                if let index { model.remove(at: index) }
            }
            #expect(cache.keysLeastRecentFirst == model.map(\.key))
            #expect(cache.total == model.reduce(0) { $0 + $1.cost })
        }
    }
}
