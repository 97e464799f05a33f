import JSONValue
import PhotoModel
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct PredicateTreeTests {
    @Test(arguments: [
        ("a AND b", "b AND a"), ("a AND (b AND c)", "(c AND a) AND b"), ("a OR a", "a"), ("NOT (NOT a)", "a"),
        ("a AND TRUEPREDICATE", "a"), ("a OR TRUEPREDICATE", "TRUEPREDICATE"),
        ("a AND FALSEPREDICATE", "FALSEPREDICATE"),
        ("NOT FALSEPREDICATE", "TRUEPREDICATE"), ("a OR (a AND a)", "a"), ("NOT rating == 1", "rating != 1"),
        ("NOT rating != 1", "rating == 1"),
    ])
    func `different notations of one condition are equal`(first: String, second: String) throws {
        func predicate(_ text: String) throws -> Predicate {
            var text = text
            for (name, condition) in [("a", "rating > 1"), ("b", "caption LIKE 'x'"), ("c", "NEAR(1, 2, 3)")] {
                text = text.split(separator: " ").map { word in
                    let bare = word.filter { $0 != "(" && $0 != ")" }
                    return bare == name ? String(word).replacing(name, with: condition) : String(word)
                }.joined(separator: " ")
            }
            return try Predicate(format: text, of: .asset)
        }
        let (left, right) = (try predicate(first), try predicate(second))
        #expect(left == right)
        #expect(left.hashValue == right.hashValue)
        #expect(left.json.bytes == right.json.bytes)
    }

    @Test(arguments: [
        ("1", "invalid_predicate"), ("null", "invalid_predicate"), ("[]", "invalid_predicate"),
        ("{}", "invalid_predicate"),
        (#"{"and":1}"#, "invalid_predicate"), (#"{"and":[],"or":[]}"#, "invalid_predicate"),
        (#"{"not":true,"x":1}"#, "invalid_predicate"), (#"{"key":"rating"}"#, "invalid_predicate"),
        (#"{"key":"rating","op":"==","value":1,"vlaue":2}"#, "invalid_predicate"),
        (#"{"key":"rating","op":"=","value":1}"#, "unsupported_predicate"),
        (#"{"key":"rating","op":"=="}"#, "invalid_predicate"),
        (#"{"key":"shoeSize","op":"==","value":1}"#, "unsupported_predicate"),
        (#"{"key":"rating","op":"==","value":[1]}"#, "invalid_predicate"),
        (#"{"key":"rating","op":"in","value":1}"#, "invalid_predicate"),
        (#"{"key":"rating","op":"==","value":{"x":1}}"#, "invalid_predicate"),
        (#"{"key":"caption","op":"==","value":"x","options":"x"}"#, "invalid_predicate"),
        (#"{"key":"caption","op":"==","value":"x","options":["c","d"]}"#, "invalid_predicate"),
        (#"{"key":"caption","op":"==","value":"x","options":true}"#, "invalid_predicate"),
        (#"{"key":"caption","op":"in","value":["x"],"options":"c"}"#, "unsupported_predicate"),
        (#"{"key":"keywords","op":"==","value":"x"}"#, "unsupported_predicate"),
        (#"{"any":"caption","op":"==","value":"x"}"#, "unsupported_predicate"),
        (#"{"key":"mediaSubtypes","mask":null,"op":"==","value":0}"#, "invalid_predicate"),
        (#"{"key":"mediaSubtypes","mask":-1,"op":"==","value":0}"#, "invalid_predicate"),
        (#"{"key":"mediaSubtypes","op":"==","value":["photoHDR","x"]}"#, "invalid_predicate"),
        (#"{"near":{"latitude":1,"longitude":2}}"#, "invalid_predicate"),
        (#"{"near":{"latitude":1,"longitude":2,"radius":3,"x":1}}"#, "invalid_predicate"),
        (#"{"inside":{"south":1,"west":2,"north":0,"east":3}}"#, "invalid_predicate"),
        (#"{"key":"duration","op":">","value":1e300}"#, "invalid_predicate"),
        (#"{"format":1}"#, "invalid_predicate"), (#"{"format":"rating == 1","x":1}"#, "invalid_predicate"),
        (#"{"format":"rating == %d","arguments":1}"#, "invalid_predicate"),
    ])
    func `an invalid tree is refused`(text: String, name: String) throws {
        let json = try JSON(parsing: text)
        let error = try #require(throws: PredicateError.self) { try Predicate(anyForm: json, of: .asset) }
        #expect(error.name.rawValue == name, "\(error)")
    }

    @Test func `limits on nodes, depth, bytes and values are exact`() throws {
        let leaf: JSON = ["key": "rating", "op": ">", "value": 1]
        func wide(_ count: Int) -> JSON { ["and": .array(Array(repeating: leaf, count: count))] }
        func deep(_ count: Int) -> JSON { (0..<count).reduce(leaf) { tree, _ in ["and": [tree]] } }
        func list(_ count: Int) -> JSON {
            ["key": "pixelWidth", "op": "in", "value": .array((0..<count).map { JSON($0) })]
        }
        func text(_ count: Int) -> JSON {
            ["key": "caption", "op": "==", "value": .string(String(repeating: "x", count: count))]
        }
        for (inside, outside) in [
            (wide(255), wide(256)), (deep(32), deep(33)), (list(10_000), list(10_001)), (text(4096), text(4097)),
            (["or": [list(5000), list(5000)]], ["or": [list(5000), list(5001)]]),
        ] {
            #expect(throws: Never.self) { try Predicate(json: inside, of: .asset) }
            let error = try #require(throws: PredicateError.self) { try Predicate(json: outside, of: .asset) }
            #expect(error.name == .limitExceeded)
        }
    }

    @Test func `all patterns of LIKE together have a limit, and the error names it`() throws {
        // Each pattern has sixteen characters.
        func patterns(_ count: Int) -> JSON {
            let tests = (0..<count).map { number -> JSON in
                let name = number.isMultiple(of: 2) ? "key" : "any"
                let key: JSON = number.isMultiple(of: 2) ? "caption" : "keywords"
                return .object([name: key, "op": "like", "value": .string("*\(1_000_000 + number)aaaaaa?*")])
            }
            return ["or": .array(tests)]
        }
        let largest = try Predicate(json: patterns(64), of: .asset)
        #expect(try Predicate(json: largest.json, of: .asset) == largest)
        let error = try #require(throws: PredicateError.self) { try Predicate(json: patterns(65), of: .asset) }
        #expect(error.name == .limitExceeded)
        #expect(error.message.contains("LIKE patterns have 1040 characters together, limit 1024"))
        let text = (0..<65).map { "caption LIKE '*\(1_000_000 + $0)aaaaaa?*'" }.joined(separator: " OR ")
        let same = try #require(throws: PredicateError.self) { try Predicate(format: text, of: .asset) }
        #expect(same.message == error.message)
    }

    @Test func `the canonical tree of an accepted text is accepted too`() throws {
        // Each bracket has two connectives around it.
        func nested(_ count: Int) throws -> Predicate {
            let text = (0..<count).reduce("rating > 0") { inner, level in
                "rating == \(level) OR isFavorite == TRUE AND (\(inner))"
            }
            return try Predicate(format: text, of: .asset)
        }
        func test(_ format: String, _ text: String, _ count: Int) throws -> Predicate {
            try Predicate(format: format, arguments: [.string(String(repeating: text, count: count))], of: .asset)
        }
        // Normal form C has six bytes of each U+0958, which has three, and [c] makes three of the two of U+0149.
        let tests = [
            ("caption == %@", "\u{958}", 682), ("ANY keywords ==[c] %@", "\u{149}", 1365),
            ("caption CONTAINS[c] %@", "\u{149}", 1365), ("caption !=[c] %@", "\u{149}", 1365),
            ("caption LIKE %@", "?", 256),
        ]
        var pairs = [(inside: try nested(16), outside: { try nested(17) })]
        for (format, text, count) in tests {
            pairs.append((try test(format, text, count), { try test(format, text, count + 1) }))
        }
        for (inside, outside) in pairs {
            #expect(try Predicate(json: inside.json, of: .asset) == inside)
            let error = try #require(throws: PredicateError.self) { try outside() }
            #expect(error.name == .limitExceeded)
        }
        let burst: JSON = ["kind": "assets", "burstIdentifier": .string(String(repeating: "\u{958}", count: 42))]
        let error = try #require(throws: PredicateError.self) { try Fetch(json: burst) }
        #expect(error.name == .limitExceeded)
    }

    @Test func `geographic conditions apply to assets only`() throws {
        let error = try #require(throws: PredicateError.self) {
            try Predicate(format: "NEAR(0, 0, 1)", of: .assetCollection)
        }
        #expect(error.name == .unsupportedPredicate)
    }

    @Test(arguments: EntityClass.allCases)
    func `a key is found by its name and by every alias`(entityClass: EntityClass) {
        for key in entityClass.keys {
            for name in [key.name] + key.aliases(in: entityClass) {
                #expect(PredicateKey(named: name, of: entityClass) == key)
            }
        }
        #expect(PredicateKey(named: "", of: entityClass) == nil)
    }

    @Test func `lists and numbers of the metadata are tested in both notations`() throws {
        var asset = Asset(id: .none)
        func matches(_ format: String) throws -> Bool {
            let predicate = try Predicate(format: format, of: .asset)
            #expect(try Predicate(json: predicate.json, of: .asset) == predicate)
            return predicate.evaluate(asset)
        }
        #expect(try matches("persons.@count == 0 AND hierarchicalKeywords.@count == 0 AND aperture == nil"))
        var metadata = AssetMetadata()
        metadata.aperture = 2.8
        metadata.flash = .notFired
        metadata.persons = [Person(name: "Ada"), Person(name: "Bob")]
        metadata.hierarchicalKeywords = ["Places|Europe"]
        asset.metadata = metadata
        #expect(try matches("ANY persons == 'Bob' AND persons.@count > 0 AND NOT ANY persons == 'Cy'"))
        #expect(try matches("ANY hierarchicalKeywords BEGINSWITH[c] 'places|' AND flash == 'notFired'"))
        #expect(try matches("aperture BETWEEN {2, 3} AND metadata.aperture != 4 AND exposureTime == nil"))
        #expect(try !matches("flash == nil OR aperture > 2.8 OR exposureTime < 1"))
        #expect(throws: PredicateError.self) { try Predicate(format: "persons == 'Ada'", of: .asset) }
        #expect(throws: PredicateError.self) { try Predicate(format: "flash == 'maybe'", of: .asset) }
        asset.metadata = AssetMetadata()
        #expect(asset.metadata == nil, "empty metadata is nil")
    }
}
