import JSONValue
import Contracts
import PhotoModel
import TestSupport
import Testing

@testable import Thumbnailer

@Suite(.timeLimit(.minutes(1)))
struct VerifiedAssetCacheTests {
    private let library = "0123456789abcdef0123456789abcdef"

    private func token(_ sequence: Int64) -> ChangeToken { ChangeToken(library: library, sequence: sequence) }

    private func facts(_ number: Int, _ revision: Int64 = 1) -> AssetSummary {
        var random = SeededRandom(seed: UInt64(number))
        return AssetSummary(
            Asset(
                id: ObjectID(.asset, milliseconds: Int64(number), using: &random),
                revision: Revision(revision),
                contentRevision: Revision(revision)
            )
        )
    }

    @Test func `an asset is returned only while the feed confirms it`() {
        var cache = VerifiedAssetCache(limit: 10)
        let asset = facts(1)
        cache.insert([asset], at: token(5))
        #expect(cache.asset(asset.id, atLeast: nil, now: 0) == nil, "the feed has not confirmed anything")
        cache.confirm(token(5), now: 1000)
        cache.insert([asset], at: token(5))
        #expect(cache.asset(asset.id, atLeast: nil, now: 1000)?.sequence == 5)
        #expect(cache.asset(asset.id, atLeast: token(5), now: 1000) != nil)
        #expect(cache.asset(asset.id, atLeast: token(6), now: 1000) == nil, "the catalog must be asked")
        #expect(cache.asset(asset.id, atLeast: ChangeToken(library: "x", sequence: 1), now: 1000) == nil)
        #expect(
            cache.asset(asset.id, atLeast: nil, now: 1001 + VerifiedAssetCache.maxAge) == nil,
            "confirmation expired"
        )
        cache.confirm(token(6), now: 2_000_000)
        #expect(cache.asset(asset.id, atLeast: nil, now: 2_000_000)?.sequence == 6)
    }

    @Test func `a change drops its assets, and older catalog pages are not cached`() {
        var cache = VerifiedAssetCache(limit: 10)
        let (first, second) = (facts(1), facts(2))
        cache.confirm(token(5), now: 0)
        cache.insert([first, second], at: token(5))
        cache.changed([first.id], at: token(6))
        #expect(cache.asset(first.id, atLeast: nil, now: 0) == nil)
        #expect(cache.asset(second.id, atLeast: nil, now: 0)?.sequence == 6)
        cache.insert([first], at: token(5))
        #expect(cache.asset(first.id, atLeast: nil, now: 0) == nil, "read before the change")
        cache.insert([first], at: token(6))
        #expect(cache.asset(first.id, atLeast: nil, now: 0) != nil)
        cache.confirm(ChangeToken(library: "another", sequence: 1), now: 0)
        #expect(cache.count == 0, "another history drops everything")
    }

    @Test func `a change that the catalog's page contains already drops nothing`() {
        var cache = VerifiedAssetCache(limit: 10)
        let asset = facts(1)
        cache.confirm(token(5), now: 0)
        // The page was read after change 7, which the feed delivers later.
        cache.insert([asset], at: token(7))
        cache.changed([asset.id], at: token(6))
        cache.changed([asset.id], at: token(7))
        #expect(cache.asset(asset.id, atLeast: nil, now: 0) != nil)
        cache.changed([asset.id], at: token(8))
        #expect(cache.asset(asset.id, atLeast: nil, now: 0) == nil)
    }

    @Test func `the number of assets is bounded, and the least recently used is removed first`() {
        var cache = VerifiedAssetCache(limit: 3)
        cache.confirm(token(1), now: 0)
        cache.insert((0..<3).map { facts($0) }, at: token(1))
        _ = cache.asset(facts(0).id, atLeast: nil, now: 0)
        cache.insert([facts(3)], at: token(1))
        #expect(cache.count == 3)
        #expect(cache.asset(facts(0).id, atLeast: nil, now: 0) != nil)
        #expect(cache.asset(facts(1).id, atLeast: nil, now: 0) == nil)
    }
}

@Suite(.timeLimit(.minutes(1)))
struct CachingManagerTableTests {
    private func options(_ side: Int) -> CachedImages {
        CachedImages(assets: [], targetSize: .size(width: side, height: side))
    }

    private let ids: [ObjectID] = (0..<300).map { number in
        var random = SeededRandom(seed: UInt64(number))
        return ObjectID(.asset, milliseconds: Int64(number), using: &random)
    }

    private func table(limit: Int = 100) throws -> CachingManagerTable {
        var table = CachingManagerTable(limit: limit)
        try table.open("c", identity: "me", allowsHighQuality: true, now: 0)
        return table
    }

    @Test(.spec("S-54")) func `images started last are prepared first, all sizes of an asset together`() throws {
        var table = try table()
        _ = table.start("c", Array(ids[0..<3]), options(10))
        _ = table.start("c", Array(ids[0..<3]), options(20))
        _ = table.start("c", [ids[9]], options(10))
        #expect(table.next(maxCount: 8)?.asset == ids[9])
        let next = table.next(maxCount: 8)
        let task = try #require(next)
        #expect(task.asset == ids[0])
        #expect(Set(task.optionSets) == [options(10), options(20)])
        #expect(table.preparationState(.init(asset: ids[0], options: options(10)), in: "c") == .waiting)
        #expect(table.preparationState(.init(asset: ids[0], options: options(30)), in: "c") == .differs)
        #expect(table.preparationState(.init(asset: ids[50], options: options(30)), in: "c") == nil)
        #expect(table.next(maxCount: 8)?.asset == ids[1])
        #expect(table.next(maxCount: 8)?.asset == ids[2])
        #expect(table.next(maxCount: 8) == nil)
    }

    @Test(.spec("S-55", "S-56")) func `stopped images are dropped, cancelled or released from memory`() throws {
        var table = try table()
        try table.open("d", identity: "me", allowsHighQuality: true, now: 0)
        let plan = try RenditionPlan(
            options(10).request(ids[0]),
            of: {
                var asset = Asset(id: ids[0])
                asset.resources = [AssetResource(type: .photo, digest: "x", size: 1, contentType: "public.jpeg")]
                return asset
            }()
        )
        for name in ["c", "d"] {
            _ = table.start(name, [ids[0]], options(10))
            let next = table.next(maxCount: 8)
            let task = try #require(next)
            #expect(table.finish(task, plans: [options(10): plan]).plans == [])
        }
        #expect(table.preparationState(.init(asset: ids[0], options: options(10)), in: "c") == .prepared)
        #expect(table.stop("c", [ids[0]], options(11)).plans == [], "other options are another image")
        #expect(table.stop("c", [ids[0]], options(10)).plans == [], "another manager still has it")
        #expect(table.preparationState(.init(asset: ids[0], options: options(10)), in: "c") == nil)
        #expect(table.stopAll("d").plans == [plan])

        _ = table.start("c", Array(ids[1...3]), options(10))
        let next = table.next(maxCount: 8)
        let task = try #require(next)
        let stopped = table.stopAll("c")
        #expect(stopped.tasks == [task.number])
        #expect(table.next(maxCount: 8) == nil)
        #expect(
            table.finish(task, plans: [options(10): plan]).plans == [plan],
            "the image was stopped meanwhile, so it is released"
        )
    }

    @Test func `images that cannot be prepared yet wait again, after all others`() throws {
        var table = try table()
        _ = table.start("c", Array(ids[0..<2]), options(10))
        _ = table.start("c", [ids[0]], options(20))
        let first = table.next(maxCount: 8)
        let task = try #require(first)
        #expect(task.asset == ids[0] && task.optionSets.count == 2)
        table.postpone(task)
        #expect(table.status("c").waiting == 3)
        #expect(table.next(maxCount: 8)?.asset == ids[1])
        let again = table.next(maxCount: 8)
        #expect(again?.asset == ids[0] && again?.optionSets.count == 2)
        _ = table.stopAll("c")
        table.postpone(try #require(again))
        #expect(table.next(maxCount: 8) == nil, "they were removed meanwhile")
    }

    @Test func `a manager belongs to its owner and is kept while it is used`() throws {
        var table = try table()
        try table.renewLease(of: "c", identity: "me", now: 1)
        #expect(throws: RPCError.self) { try table.renewLease(of: "c", identity: "you", now: 1) }
        #expect(throws: RPCError.self) { try table.renewLease(of: "d", identity: "me", now: 1) }
        try table.renewLease(of: "c", identity: "me", now: CachingManagerTable.leaseMicroseconds)
        _ = table.expire(now: CachingManagerTable.leaseMicroseconds + 1)
        #expect(table.metrics.managers == 1)
        _ = table.expire(now: 2 * CachingManagerTable.leaseMicroseconds)
        #expect(table.metrics.managers == 0)
        for number in 0..<CachingManagerTable.maxPerIdentity {
            try table.open("n\(number)", identity: "me", allowsHighQuality: true, now: 0)
        }
        let refusal = #expect(throws: RPCError.self) {
            try table.open("one more", identity: "me", allowsHighQuality: true, now: 0)
        }
        #expect(refusal?.errorCode == .limitExceeded)
        try table.open("another's", identity: "you", allowsHighQuality: true, now: 0)
    }

    @Test(.spec("S-58")) func `a list above its limit drops its oldest images`() throws {
        var table = try table(limit: 100)
        _ = table.start("c", Array(ids[0..<80]), options(10))
        _ = table.start("c", Array(ids[80..<160]), options(10))
        #expect(table.metrics.entries == 100)
        #expect(table.dropped == 60)
        #expect(table.next(maxCount: 8)?.asset == ids[80])
    }

    @Test(.spec("S-58")) func `a hundred thousand starts and stops leave nothing behind and stay fast`()
        throws
    {
        var table = try table(limit: 2000)
        let start = ContinuousClock().now
        for step in 0..<100_000 {
            let window = [ids[step % 300], ids[(step + 1) % 300]]
            _ = table.start("c", window, options(10))
            if step % 3 == 0, let task = table.next(maxCount: 8) { _ = table.finish(task, plans: [:]) }
            _ = table.stop("c", window, options(10))
        }
        let elapsed = ContinuousClock().now - start
        #expect(table.metrics.entries == 0)
        #expect(table.metrics.waiting == 0)
        #expect(elapsed < .seconds(20), "\(elapsed)")
    }
}
