import JSONValue
import PhotoModel
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct ObjectIDTests {
    @Test func `a list of identifiers is their texts, and other bytes are no list`() {
        let ids = [ObjectID.root, .none]
        let bytes = ObjectID.bytes(of: ids)
        #expect(String(decoding: bytes, as: UTF8.self) == "l00000000000000000000000000a00000000000000000000000000")
        #expect(ObjectID.list(in: bytes) == ids)
        #expect(ObjectID.list(in: []) == [])
        #expect(ObjectID.list(in: Array(bytes.dropLast())) == nil)
        #expect(ObjectID.list(in: bytes.map { $0 == UInt8(ascii: "l") ? UInt8(ascii: "x") : $0 }) == nil)
    }

    @Test func `identifiers sort by creation time and are parsed back`() {
        var random = SeededRandom(named: "identifiers")
        var last: ObjectID?
        for moment in stride(from: 0 as Int64, to: 1 << 47, by: 1 << 37) {
            for kind in ObjectKind.allCases {
                let id = ObjectID(kind, milliseconds: moment, using: &random)
                #expect(id.kind == kind)
                #expect(ObjectID(id.text) == id)
                #expect(id.text.utf8.count == ObjectID.length)
            }
            let id = ObjectID(.asset, milliseconds: moment, using: &random)
            if let last { #expect(last < id) }
            last = id
        }
    }

    @Test func `every text of a letter and digits is kept, and texts and identifiers have the same order`() throws {
        var random = SeededRandom(named: "texts of identifiers")
        let digits = Array("0123456789abcdefghjkmnpqrstvwxyz")
        var texts = ["a" + String(repeating: "z", count: 26), "c" + String(repeating: "8", count: 26)]
        for _ in 0..<TestEnvironment.rounds(2000) {
            texts.append(random.pick(["a", "c", "l"]) + String((0..<26).map { _ in random.pick(digits) }))
        }
        let ids = try texts.map { try #require(ObjectID($0)) }
        #expect(ids.map(\.text) == texts)
        #expect(Set(ids).count == texts.count)
        #expect(ids.sorted().map(\.text) == texts.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
        #expect(ObjectID.list(in: ObjectID.bytes(of: ids)) == ids)
    }

    @Test func `identifiers are unique`() {
        var random = SeededRandom(named: "unique identifiers")
        let ids = Set((0..<20_000).map { _ in ObjectID(.asset, milliseconds: 1, using: &random) })
        #expect(ids.count == 20_000)
    }

    @Test(arguments: [
        "", "a", "a0000000000000000000000000", "a000000000000000000000000000", "b00000000000000000000000000",
        "a0000000000000000000000000i", "A00000000000000000000000000", "a0000000000000000000000000é",
        "a0000000000000000000000000U",
    ])
    func `other text is not an identifier`(text: String) {
        #expect(ObjectID(text) == nil)
    }

    @Test func `the root and the empty identifier are fixed`() {
        #expect(ObjectID("l00000000000000000000000000") == .root)
        #expect(ObjectID.root.kind == .collectionList)
        #expect(ObjectID(ObjectID.none.text) == ObjectID.none)
    }

    @Test func `negative and huge times do not trap`() {
        var random = SeededRandom(named: "times")
        for moment in [Int64.min, -1, Int64.max] {
            #expect(ObjectID(ObjectID(.asset, milliseconds: moment, using: &random).text) != nil)
        }
    }
}

@Suite(.timeLimit(.minutes(5)))
struct UpdateAssetTests {
    @Test func `the usual changes are encoded as the table says, and read back`() throws {
        let id = try #require(ObjectID("a0123456789abcdefghjkmnpqrs"))
        let flags: [Bool?] = [nil, true, false]
        for isFavorite in flags {
            for isHidden in flags {
                for rating in [nil, 0, 5] {
                    let patch = AssetPatch(isFavorite: isFavorite, isHidden: isHidden, rating: rating)
                    let update = ChangeRequest.UpdateAsset(id: .id(id), set: patch)
                    var expected: JSONObject = ["type": "asset.update"]
                    for (name, value) in ChangeRequest.UpdateAsset.table.encode(update).members {
                        expected[name] = value
                    }
                    #expect(ChangeRequest.updateAsset(update).json == .object(expected))
                    #expect(try JSONType.changeRequest.decode(.object(expected)) == .updateAsset(update))
                }
            }
        }
    }
}

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
            // An eighth of the limit: ten times as many stay within it.
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

@Suite(.timeLimit(.minutes(5)))
struct TokenTests {
    @Test func `tokens and revisions are parsed back`() throws {
        let token = ChangeToken(library: "0123456789abcdef0123456789abcdef", sequence: .max)
        #expect(ChangeToken(token.description) == token)
        #expect(try JSONType<ChangeToken>.token.decode(.string(token.description)) == token)
        let revision = Revision(.max)
        #expect(try JSONType<Revision>.revision.decode(.string(revision.description)) == revision)
    }

    @Test(arguments: [
        "", ".", "0123456789abcdef0123456789abcdef", "0123456789abcdef0123456789abcdef.",
        "0123456789abcdef0123456789abcdef.-1", "0123456789abcdef0123456789abcdef.+1",
        "0123456789abcdef0123456789abcdef.9223372036854775808", "0123456789abcdef0123456789abcdeg.1",
        "0123456789abcdef0123456789abcdef.1.2", "0123456789abcdef.1",
    ])
    func `other text is not a token`(text: String) {
        #expect(ChangeToken(text) == nil)
    }

    @Test(arguments: ["", "r", "1", "r-1", "r1x", "r9223372036854775808", "r+1", "R1"])
    func `other text is not a revision`(text: String) {
        #expect(throws: JSONProblem.self) { try JSONType<Revision>.revision.decode(.string(text)) }
    }
}
