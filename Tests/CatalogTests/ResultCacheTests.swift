import PhotoModel
import TestSupport
import Testing

@testable import Catalog

/// Tests of the cache of fetch results, and of the memory for keys.
@Suite(.timeLimit(.minutes(1)))
struct ResultCacheTests {
    private func fetch(_ limit: Int, granted ids: Int = 0, version: Int64 = 1) throws -> Fetch {
        let fetch = try Fetch(.assets(.library), limit: limit)
        guard ids > 0 else { return fetch }
        let list = Set((0..<ids).map { RandomEntities.id(.asset, Int(version) * 10_000 + $0) })
        return fetch.limited(to: GrantedAssets(identity: "key:viewer", version: version, ids: list))
    }

    @Test func `a result is found at its sequence, or as the newest of a range of sequences`() throws {
        let cache = ResultCache(maxBytes: 1 << 20)
        let (first, second) = (try fetch(1), try fetch(2))
        for sequence in [3, 9, 6] as [Int64] { cache.insert([sequence], for: .init(fetch: first, sequence: sequence)) }
        #expect(cache[.init(fetch: first, sequence: 6)] == [6] && cache[.init(fetch: first, sequence: 7)] == nil)
        #expect(cache[.init(fetch: second, sequence: 6)] == nil)
        #expect(cache.newest(of: first, from: 0, through: 8)?.sequence == 6)
        #expect(cache.newest(of: first, from: 0, through: 99)?.rows == [9])
        #expect(
            cache.newest(of: first, from: 4, through: 5) == nil && cache.newest(of: second, from: 0, through: 9) == nil
        )
        #expect(cache.count(of: first, at: 3) == 1 && cache.count(of: first, at: 4) == nil)
        cache.insert([1, 2], for: .init(fetch: first, sequence: 3))
        #expect(cache.count == 3 && cache.count(of: first, at: 3) == 2)
    }

    @Test
    func `the least recently used results are removed first, and the bytes of all stay within the limit`() throws {
        let cache = ResultCache(maxBytes: 64 << 10)
        let recentlyUsed = ResultCache.Key(fetch: try fetch(1), sequence: 1)
        cache.insert([1], for: recentlyUsed)
        for limit in 2..<500 {
            cache.insert([Int64](repeating: 7, count: 20), for: .init(fetch: try fetch(limit), sequence: 1))
            #expect(cache[recentlyUsed] == [1], "after \(limit)")
            #expect(cache.bytes <= 64 << 10)
        }
        #expect(cache.count > 10 && cache.count < 64)
        #expect(cache[.init(fetch: try fetch(2), sequence: 1)] == nil)
        #expect(cache[.init(fetch: try fetch(499), sequence: 1)] != nil)
    }

    /// Fetches with different versions of the list of a limited grant are different fetches, and each keeps its list.
    @Test func `the bytes of the lists of limited grants count`() throws {
        let cache = ResultCache(maxBytes: 1 << 20)
        for version in 1...200 as ClosedRange<Int64> {
            let fetch = try fetch(1, granted: 1000, version: version)
            cache.insert([1], for: .init(fetch: fetch, sequence: version))
            cache.insert(count: 1, of: fetch, at: version)
        }
        // A list of a thousand identifiers has at least 27 KB.
        #expect(cache.count <= (1 << 20) / (1000 * 27))
    }

    @Test func `a limited number of results is kept of a fetch that is repeated after each change`() throws {
        let cache = ResultCache(maxBytes: 1 << 30)
        let fetch = try fetch(1)
        for sequence in 1...1000 as ClosedRange<Int64> {
            cache.insert([sequence], for: .init(fetch: fetch, sequence: sequence))
            _ = cache[.init(fetch: fetch, sequence: 1)]
        }
        #expect(cache.count == ResultCache.maxSequences)
        #expect(cache[.init(fetch: fetch, sequence: 1)] == [1] && cache[.init(fetch: fetch, sequence: 1000)] == [1000])
        #expect(cache[.init(fetch: fetch, sequence: 500)] == nil)
    }

    @Test func `keys that wait for clients have a limit for all and for an identity`() throws {
        let memory = KeyMemory(limit: 100)
        let first = memory.reservation(of: "a", isService: false)
        try first.add(30)
        #expect(throws: FetchError.tooManyKeyBytes(limit: 50)) { try first.add(21) }
        let second = memory.reservation(of: "a", isService: false)
        try second.add(20)
        #expect(throws: FetchError.tooManyWaitingKeys(limit: 100)) { try second.add(1) }
        let other = memory.reservation(of: "b", isService: false)
        try other.add(50)
        let third = memory.reservation(of: "c", isService: false)
        #expect(throws: FetchError.tooManyWaitingKeys(limit: 100)) { try third.add(1) }
        #expect(memory.bytes == 100)
        other.remove(50)
        second.remove(20)
        #expect(memory.bytes == 30)
        first.remove(30)
        // A request that ends releases its memory.
        try memory.reservation(of: "a", isService: false).add(7)
        #expect(memory.bytes == 0)
    }

    @Test
    func `a service has key memory besides that of the clients, and its first result may exceed the limit`() throws {
        let memory = KeyMemory(limit: 100)
        let clients = ["a", "b"].map { memory.reservation(of: $0, isService: false) }
        for client in clients { try client.add(50) }
        let first = memory.reservation(of: "s", isService: true)
        for _ in 0..<2 { try first.add(60) }
        let second = memory.reservation(of: "s", isService: true)
        #expect(throws: FetchError.tooManyWaitingKeys(limit: 100)) { try second.add(1) }
        first.remove(60)
        try second.add(40)
        #expect(throws: FetchError.tooManyWaitingKeys(limit: 100)) { try first.add(1) }
        #expect(memory.bytes == 200)
        for client in clients { client.remove(50) }
        first.remove(60)
        second.remove(40)
        #expect(memory.bytes == 0)
    }
}
