import JSONValue
import PhotoModel
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(TestEnvironment.rounds(1))))
struct ChangeDetailsTests {
    private static let ids = (0..<256).map { RandomEntities.id(.asset, $0) }

    private static func list(_ letters: String) -> [ObjectID] {
        letters.utf8.filter { $0 != 0x20 }.map { ids[Int($0)] }
    }

    private static func details(_ before: String, _ after: String, changed: String = "") throws -> RICE {
        let details = try #require(
            ChangeDetails.between(list(before), list(after), changed: Set(list(changed)))
        )
        #expect(try details.apply(to: list(before)) == list(after))
        return try #require(try details.rice())
    }

    private func moves(_ pairs: [(Int, Int)]) -> [RICE.Move] { pairs.map { RICE.Move(from: $0.0, to: $0.1) } }

    @Test func `V1 a removal and an insertion are reported without moves`() throws {
        let rice = try Self.details("abc", "bcd")
        #expect(rice.removedIndexes == [0])
        #expect(rice.insertedIndexes == [2])
        #expect(rice.changedIndexes == [] && rice.changedIndexesAfter == [])
        #expect(!rice.hasMoves)
    }

    @Test func `V2 with a limit, an insertion removes the last element`() throws {
        let rice = try Self.details("321", "432")
        #expect(rice.removedIndexes == [2])
        #expect(rice.insertedIndexes == [0])
        #expect(!rice.hasMoves)
    }

    @Test func `V3 a deletion and a change of the next element have the same index in different lists`()
        throws
    {
        let rice = try Self.details("abc", "bc", changed: "b")
        #expect(rice.removedIndexes == [0])
        #expect(rice.insertedIndexes == [])
        #expect(rice.changedIndexes == [0])
        #expect(rice.changedIndexesAfter == [0])
        #expect(rice.changedIndexesBefore == [1])
        #expect(!rice.hasMoves)
    }

    @Test func `V4 a changed element that moves has three indexes`() throws {
        let rice = try Self.details("abc", "bac", changed: "b")
        #expect(rice.removedIndexes == [] && rice.insertedIndexes == [])
        #expect(rice.changedIndexes == [1])
        #expect(rice.changedIndexesAfter == [0])
        #expect(rice.changedIndexesBefore == [1])
        #expect(Set(rice.moves) == Set(moves([(1, 0), (0, 1)])))
        #expect(rice.moveScript.count == 1)
    }

    @Test func `V5 an insertion and a move are reported together`() throws {
        let rice = try Self.details("abcd", "dxabc")
        #expect(rice.removedIndexes == [])
        #expect(rice.insertedIndexes == [1])
        #expect(Set(rice.moves) == Set(moves([(0, 2), (2, 3), (3, 4), (4, 0)])))
        let details = try #require(ChangeDetails.between(Self.list("abcd"), Self.list("dxabc")))
        #expect(details.moved == [ChangeDetails.Pair(id: Self.list("d")[0], before: 3, after: 0)])
    }

    @Test func `V6 elements that are all replaced are removed and inserted without moves`() throws {
        let rice = try Self.details("ab", "cd")
        #expect(rice.removedIndexes == [0, 1])
        #expect(rice.insertedIndexes == [0, 1])
        #expect(!rice.hasMoves)
    }

    @Test func `V7 with a limit, a removal inserts the next element`() throws {
        let rice = try Self.details("ab", "bc")
        #expect(rice.removedIndexes == [0])
        #expect(rice.insertedIndexes == [1])
        #expect(!rice.hasMoves)
    }

    @Test func `V8 a change is reported without removals, insertions or moves`() throws {
        let rice = try Self.details("abc", "abc", changed: "b")
        #expect(rice.removedIndexes == [] && rice.insertedIndexes == [])
        #expect(rice.changedIndexes == [1] && rice.changedIndexesAfter == [1] && rice.changedIndexesBefore == [1])
        #expect(!rice.hasMoves)
    }

    @Test func `V9 equal lists have no details`() {
        #expect(ChangeDetails.between(Self.list("ab"), Self.list("ab")) == nil)
        #expect(ChangeDetails.between(Self.list("ab"), Self.list("ab"), changed: Set(Self.list("c"))) == nil)
        #expect(ChangeDetails.between([], []) == nil)
    }

    @Test func `V10 an element that no longer matches the filter is removed and not changed`() throws {
        let rice = try Self.details("abc", "ac", changed: "b")
        #expect(rice.removedIndexes == [1])
        #expect(rice.insertedIndexes == [] && rice.changedIndexes == [])
        #expect(!rice.hasMoves)
    }

    @Test func `V11 details that are not incremental report only that something changed`() throws {
        let details = try #require(ChangeDetails.between(Self.list("ab"), Self.list("abc"), isIncremental: false))
        #expect(!details.hasIncrementalChanges)
        #expect(details.isEmpty)
        #expect(details.countAfter == 3)
        #expect(try details.rice() == nil)
        #expect(throws: ChangeDetailsMismatch.self) { try details.apply(to: Self.list("ab")) }
    }

    /// Thirty thousand lists in ten parts, of which each has the time limit of one test.
    @Test(arguments: 0..<10)
    func `every form of random details turns the list before the change into the one after it`(_ part: Int) throws {
        var random = SeededRandom(named: "details \(part)")
        for _ in 0..<TestEnvironment.rounds(3_000) { try check(&random) }
    }

    private func check(_ random: inout SeededRandom) throws {
        let maxCount = random.one(in: 200) ? 200 : 12
        let pool = Self.ids.prefix(maxCount + maxCount / 2)
        var before = Array(pool.shuffled(using: &random).prefix(Int.random(in: 0...maxCount, using: &random)))
        var after = before.filter { _ in !random.one(in: 5) }
        if random.one(in: 4) { after.shuffle(using: &random) }
        for _ in 0..<Int.random(in: 0...3, using: &random) where !after.isEmpty {
            let id = after.remove(at: Int.random(in: after.indices, using: &random))
            after.insert(id, at: Int.random(in: 0...after.count, using: &random))
        }
        let existing = Set(before)
        for id in pool where !existing.contains(id) && random.one(in: 4) {
            after.insert(id, at: Int.random(in: 0...after.count, using: &random))
        }
        if random.one(in: 3) {
            let limit = Int.random(in: 0...maxCount, using: &random)
            before = Array(before.prefix(limit))
            after = Array(after.prefix(limit))
        }
        let changed = Set(pool.filter { _ in random.one(in: 4) })
        guard let details = ChangeDetails.between(before, after, changed: changed) else {
            if before != after || !changed.isDisjoint(with: before) { Issue.record("no details: \(before) \(after)") }
            return
        }
        let rice = try #require(try details.rice())
        let common = Set(before).intersection(after)
        // One expectation instead of one for each form, because this runs 30,000 times.
        let isCorrect =
            try details.apply(to: before) == after
            && listAfterMoves(rice, of: before, inserting: details.inserted.map(\.id)) == after
            && listAfterMoveScript(rice, of: before, inserting: details.inserted.map(\.id)) == after
            && Set(rice.changedIndexesBefore.map { before[$0] }) == changed.intersection(common)
            && Set(rice.changedIndexesAfter.map { after[$0] }) == changed.intersection(common)
            && Set(rice.changedIndexes.map { middle(rice, before, details.inserted.map(\.id))[$0] })
                == changed.intersection(common)
            && details.moved.allSatisfy { common.contains($0.id) }
            && rice.moves.allSatisfy { !rice.insertedIndexes.contains($0.from) }
            && rice.moveScript.count <= rice.moves.count
        if !isCorrect { Issue.record("before \(before) after \(after) changed \(changed)") }
        if random.one(in: 500) {
            let again = try ChangeDetails(json: JSON(parsing: details.json.bytes))
            #expect(again == details)
            #expect(try RICE(json: JSON(parsing: rice.json.bytes)) == rice)
        }
    }

    /// Returns the list after R and I of PhotoKit's four steps.
    private func middle(_ rice: RICE, _ before: [ObjectID], _ inserted: [ObjectID]) -> [ObjectID] {
        var list = before
        for index in rice.removedIndexes.reversed() { list.remove(at: index) }
        for (index, id) in zip(rice.insertedIndexes, inserted) { list.insert(id, at: index) }
        return list
    }

    private func listAfterMoves(_ rice: RICE, of before: [ObjectID], inserting inserted: [ObjectID]) -> [ObjectID] {
        let middle = middle(rice, before, inserted)
        var list = middle
        for move in rice.moves { list[move.to] = middle[move.from] }
        return list
    }

    private func listAfterMoveScript(
        _ rice: RICE,
        of before: [ObjectID],
        inserting inserted: [ObjectID]
    ) -> [ObjectID] {
        var list = middle(rice, before, inserted)
        for move in rice.moveScript { list.insert(list.remove(at: move.from), at: move.to) }
        return list
    }

    @Test func `the number of moves is minimal`() throws {
        let details = try #require(ChangeDetails.between(Self.list("abcdefgh"), Self.list("bcdefgha")))
        #expect(details.moved.count == 1)
        let rice = try #require(try details.rice())
        #expect(rice.moves.count == 8)
        #expect(rice.moveScript == [RICE.Move(from: 0, to: 7)])
    }

    @Test func `details that contradict the list or themselves are refused`() throws {
        let (before, after) = (Self.list("abcd"), Self.list("dxab"))
        let good = try #require(ChangeDetails.between(before, after))
        #expect(throws: ChangeDetailsMismatch.self) { try good.apply(to: Self.list("abc")) }
        #expect(throws: ChangeDetailsMismatch.self) { try good.apply(to: Self.list("dcba")) }
        let id = Self.list("q")[0]
        let breaks: [(inout ChangeDetails) -> Void] = [
            { $0.removed.append($0.removed[0]) }, { $0.removed[0].index = 99 }, { $0.inserted[0].index = 99 },
            { $0.inserted[0].index = $0.moved[0].after }, { $0.countAfter = 3 }, { $0.countBefore = 1_000_000 },
            { $0.moved[0].before = $0.removed[0].index }, { $0.moved[0].after = Int(Int32.max) },
            { $0.changed.append(.init(id: id, before: 77, after: 0)) }, { $0.inserted.append(.init(id: id, index: 1)) },
        ]
        for change in breaks {
            var bad = good
            change(&bad)
            #expect(throws: ChangeDetailsMismatch.self) { try bad.apply(to: before) }
            #expect(throws: ChangeDetailsMismatch.self) { _ = try bad.rice() }
        }
        var large = good
        large.countBefore = Int(Int32.max)
        #expect(throws: ChangeDetailsMismatch.self) { _ = try large.rice() }
    }

    @Test func `the details of a reversed list of 100,000 entries are computed within the time limit`() throws {
        let count = 100_000
        let before = (0..<count).map { RandomEntities.id(.asset, $0) }
        let details = try #require(ChangeDetails.between(before, before.reversed()))
        let rice = try #require(try details.rice())
        #expect(details.moved.count == count - 1)
        #expect(rice.moveScript.count == count - 1)
        var rotated = before
        rotated.append(rotated.removeFirst())
        #expect(try #require(ChangeDetails.between(before, rotated)).moved.count == 1)
    }
}
