import Contracts
import Messaging
import PhotoModel
import TestSupport
import Testing

@testable import Thumbnailer

@Suite(.timeLimit(.minutes(1)))
struct DueTableTests {
    @Test func `interactive items go first and bring their group along`() {
        var table = DueTable<Int, String>(batch: 8)
        table.add(1, to: "a", priority: .prefetch)
        table.add(2, to: "b", priority: .prefetch)
        table.add(3, to: "c", priority: .people)
        table.add(4, to: "b", priority: .people)
        table.add(5, to: "a", priority: .prefetch)
        #expect(table.next()?.pieces == [3])
        #expect(table.next()?.pieces == [4, 2], "one decode serves both, the urgent item first")
        #expect(table.next(.people) == nil, "prefetch is not returned")
        #expect(table.next()?.pieces == [1, 5])
        #expect(table.next() == nil)
        #expect(table.count == 0)
    }

    @Test func `raising an item's priority moves it up`() {
        var table = DueTable<Int, Int>(batch: 1)
        for piece in 0..<10 { table.add(piece, to: piece, priority: .prefetch) }
        table.raise(7, to: .people)
        table.raise(7, to: .prefetch)
        #expect(table.next()?.pieces == [7])
        #expect(table.next()?.pieces == [0])
    }

    @Test func `items beyond the batch size come with the next batch`() {
        var table = DueTable<Int, Int>(batch: 3)
        for piece in 0..<7 { table.add(piece, to: 0, priority: .people) }
        #expect(table.next()?.pieces == [0, 1, 2])
        #expect(table.next()?.pieces == [3, 4, 5])
        #expect(table.next()?.pieces == [6])
    }

    @Test func `random operations agree with a plain list`() {
        var random = SeededRandom(named: "due table")
        for _ in 0..<TestEnvironment.rounds(30) {
            var table = DueTable<Int, Int>(batch: 4)
            var model: [Int: (group: Int, priority: WorkPriority)] = [:]
            for piece in 0..<400 {
                switch Int.random(in: 0..<5, using: &random) {
                case 0, 1:
                    let group = Int.random(in: 0..<20, using: &random)
                    let priority: WorkPriority = Bool.random(using: &random) ? .people : .prefetch
                    table.add(piece, to: group, priority: priority)
                    model[piece] = (group, priority)
                case 2:
                    guard let other = model.keys.randomElement(using: &random) else { continue }
                    table.raise(other, to: .people)
                    model[other]?.priority = .people
                case 3:
                    guard let other = model.keys.randomElement(using: &random) else { continue }
                    let wasThere = table.remove(other)
                    #expect(wasThere)
                    model[other] = nil
                default:
                    let urgent = model.values.contains { $0.priority == .people }
                    guard let (pieces, priority) = table.next() else {
                        #expect(model.isEmpty)
                        continue
                    }
                    #expect(priority == (urgent ? .people : .prefetch))
                    #expect(Set(pieces.compactMap { model[$0]?.group }).count == 1)
                    #expect(pieces.allSatisfy { model[$0] != nil } && (1...4).contains(pieces.count))
                    for piece in pieces { model[piece] = nil }
                }
                #expect(table.count == model.count)
            }
        }
    }
}

@Suite(.timeLimit(.minutes(1)))
struct AssetBookTests {
    private let library = "0123456789abcdef0123456789abcdef"

    private func token(_ sequence: Int64) -> ChangeToken { ChangeToken(library: library, sequence: sequence) }

    private func facts(_ number: Int, _ revision: Int64 = 1) -> AssetFacts {
        var random = SeededRandom(seed: UInt64(number))
        return AssetFacts(
            Asset(
                id: ObjectID(.asset, milliseconds: Int64(number), using: &random),
                revision: Revision(revision),
                contentRevision: Revision(revision)
            )
        )
    }

    @Test func `an asset is returned only while the feed confirms it`() {
        var book = AssetBook(limit: 10)
        let asset = facts(1)
        book.learn([asset], at: token(5))
        #expect(book.asset(asset.id, atLeast: nil, now: 0) == nil, "the feed has not confirmed anything")
        book.confirm(token(5), now: 1000)
        book.learn([asset], at: token(5))
        #expect(book.asset(asset.id, atLeast: nil, now: 1000)?.sequence == 5)
        #expect(book.asset(asset.id, atLeast: token(5), now: 1000) != nil)
        #expect(book.asset(asset.id, atLeast: token(6), now: 1000) == nil, "the catalog must be asked")
        #expect(book.asset(asset.id, atLeast: ChangeToken(library: "x", sequence: 1), now: 1000) == nil)
        #expect(book.asset(asset.id, atLeast: nil, now: 1001 + AssetBook.patience) == nil, "confirmation expired")
        book.confirm(token(6), now: 2_000_000)
        #expect(book.asset(asset.id, atLeast: nil, now: 2_000_000)?.sequence == 6)
    }

    @Test func `a change drops its assets, and older catalog pages are not cached`() {
        var book = AssetBook(limit: 10)
        let (first, second) = (facts(1), facts(2))
        book.confirm(token(5), now: 0)
        book.learn([first, second], at: token(5))
        book.changed([first.id], at: token(6))
        #expect(book.asset(first.id, atLeast: nil, now: 0) == nil)
        #expect(book.asset(second.id, atLeast: nil, now: 0)?.sequence == 6)
        book.learn([first], at: token(5))
        #expect(book.asset(first.id, atLeast: nil, now: 0) == nil, "read before the change")
        book.learn([first], at: token(6))
        #expect(book.asset(first.id, atLeast: nil, now: 0) != nil)
        book.confirm(ChangeToken(library: "another", sequence: 1), now: 0)
        #expect(book.count == 0, "another history drops everything")
    }

    @Test func `the number of assets is bounded, and the least recently used goes first`() {
        var book = AssetBook(limit: 3)
        book.confirm(token(1), now: 0)
        book.learn((0..<3).map { facts($0) }, at: token(1))
        _ = book.asset(facts(0).id, atLeast: nil, now: 0)
        book.learn([facts(3)], at: token(1))
        #expect(book.count == 3)
        #expect(book.asset(facts(0).id, atLeast: nil, now: 0) != nil)
        #expect(book.asset(facts(1).id, atLeast: nil, now: 0) == nil)
    }
}

@Suite(.timeLimit(.minutes(1)))
struct CacheTableTests {
    private func shape(_ side: Int) -> CachedImages {
        CachedImages(assets: [], targetSize: .size(width: side, height: side))
    }

    private let ids: [ObjectID] = (0..<300).map { number in
        var random = SeededRandom(seed: UInt64(number))
        return ObjectID(.asset, milliseconds: Int64(number), using: &random)
    }

    private func table(limit: Int = 100) throws -> CacheTable {
        var table = CacheTable(limit: limit)
        try table.open("c", owner: "me", allowsHighQuality: true, now: 0)
        return table
    }

    @Test(.spec("S-54")) func `images started last are prepared first, all sizes of an asset together`() throws {
        var table = try table()
        _ = table.start("c", Array(ids[0..<3]), shape(10))
        _ = table.start("c", Array(ids[0..<3]), shape(20))
        _ = table.start("c", [ids[9]], shape(10))
        #expect(table.next(most: 8)?.asset == ids[9])
        let next = table.next(most: 8)
        let task = try #require(next)
        #expect(task.asset == ids[0])
        #expect(Set(task.shapes) == [shape(10), shape(20)])
        #expect(table.standing(.init(asset: ids[0], shape: shape(10)), in: "c") == .waiting)
        #expect(table.standing(.init(asset: ids[0], shape: shape(30)), in: "c") == .differs)
        #expect(table.standing(.init(asset: ids[50], shape: shape(30)), in: "c") == nil)
        #expect(table.next(most: 8)?.asset == ids[1])
        #expect(table.next(most: 8)?.asset == ids[2])
        #expect(table.next(most: 8) == nil)
    }

    @Test(.spec("S-55", "S-56")) func `stopped images are dropped, cancelled or released from memory`() throws {
        var table = try table()
        try table.open("d", owner: "me", allowsHighQuality: true, now: 0)
        let plan = try RenditionPlan(
            shape(10).request(ids[0]),
            of: {
                var asset = Asset(id: ids[0])
                asset.resources = [AssetResource(type: .photo, digest: "x", size: 1, contentType: "public.jpeg")]
                return asset
            }()
        )
        for name in ["c", "d"] {
            _ = table.start(name, [ids[0]], shape(10))
            let next = table.next(most: 8)
            let task = try #require(next)
            #expect(table.finish(task, plans: [shape(10): plan]).plans == [])
        }
        #expect(table.standing(.init(asset: ids[0], shape: shape(10)), in: "c") == .prepared)
        #expect(table.stop("c", [ids[0]], shape(11)).plans == [], "other options are another image")
        #expect(table.stop("c", [ids[0]], shape(10)).plans == [], "another manager still has it")
        #expect(table.standing(.init(asset: ids[0], shape: shape(10)), in: "c") == nil)
        #expect(table.stopAll("d").plans == [plan])

        _ = table.start("c", Array(ids[1...3]), shape(10))
        let next = table.next(most: 8)
        let task = try #require(next)
        let leaving = table.stopAll("c")
        #expect(leaving.tasks == [task.number])
        #expect(table.next(most: 8) == nil)
        #expect(table.finish(task, plans: [shape(10): plan]).plans == [plan], "no longer wanted: it is released")
    }

    @Test func `a manager belongs to its owner and is kept while it is used`() throws {
        var table = try table()
        try table.use("c", owner: "me", now: 1)
        #expect(throws: RPCError.self) { try table.use("c", owner: "you", now: 1) }
        #expect(throws: RPCError.self) { try table.use("d", owner: "me", now: 1) }
        try table.use("c", owner: "me", now: CacheTable.leaseMicroseconds)
        _ = table.expire(now: CacheTable.leaseMicroseconds + 1)
        #expect(table.figures.managers == 1)
        _ = table.expire(now: 2 * CacheTable.leaseMicroseconds)
        #expect(table.figures.managers == 0)
        for number in 0..<CacheTable.mostPerOwner {
            try table.open("n\(number)", owner: "me", allowsHighQuality: true, now: 0)
        }
        let refusal = #expect(throws: RPCError.self) {
            try table.open("one more", owner: "me", allowsHighQuality: true, now: 0)
        }
        #expect(refusal?.refusal == .limitExceeded)
        try table.open("another's", owner: "you", allowsHighQuality: true, now: 0)
    }

    @Test(.spec("S-58")) func `a list above its limit drops its oldest images`() throws {
        var table = try table(limit: 100)
        _ = table.start("c", Array(ids[0..<80]), shape(10))
        _ = table.start("c", Array(ids[80..<160]), shape(10))
        #expect(table.figures.entries == 100)
        #expect(table.dropped == 60)
        #expect(table.next(most: 8)?.asset == ids[80])
    }

    @Test(.spec("S-58")) func `a hundred thousand starts and stops leave nothing behind and stay fast`()
        throws
    {
        var table = try table(limit: 2000)
        let start = ContinuousClock().now
        for turn in 0..<100_000 {
            let window = [ids[turn % 300], ids[(turn + 1) % 300]]
            _ = table.start("c", window, shape(10))
            if turn % 3 == 0, let task = table.next(most: 8) { _ = table.finish(task, plans: [:]) }
            _ = table.stop("c", window, shape(10))
        }
        let elapsed = ContinuousClock().now - start
        #expect(table.figures.entries == 0)
        #expect(table.figures.waiting == 0)
        #expect(elapsed < .seconds(20), "\(elapsed)")
    }
}
