import PhotoModel
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct ObjectIDTests {
    @Test func `a list of identifiers is encoded as their texts, and other bytes are refused`() {
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
        for milliseconds in stride(from: 0 as Int64, to: 1 << 47, by: 1 << 37) {
            for kind in ObjectKind.allCases {
                let id = ObjectID(kind, milliseconds: milliseconds, using: &random)
                #expect(id.kind == kind)
                #expect(ObjectID(id.text) == id)
                #expect(id.text.utf8.count == ObjectID.length)
            }
            let id = ObjectID(.asset, milliseconds: milliseconds, using: &random)
            if let last { #expect(last < id) }
            last = id
        }
    }

    @Test func `every text of a letter and digits is parsed back, and identifiers sort like their texts`() throws {
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
        for milliseconds in [Int64.min, -1, Int64.max] {
            #expect(ObjectID(ObjectID(.asset, milliseconds: milliseconds, using: &random).text) != nil)
        }
    }
}
