import JSONValue
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct JSONCursorTests {
    private static func value(_ depth: Int, _ random: inout SeededRandom) -> JSON {
        let texts = ["", "a", "a\"b", "\\", "\\\"", "\\\\", "é日😀", "}{][,:", "\n\t\u{1}"]
        switch Int.random(in: 0..<(depth > 0 ? 8 : 6), using: &random) {
        case 0: return .null
        case 1: return .bool(Bool.random(using: &random))
        case 2: return .int(Int64.random(in: .min ... .max, using: &random))
        case 3: return .double(Double.random(in: -1e9...1e9, using: &random))
        case 4, 5: return .string(random.pick(texts))
        case 6: return .array((0..<Int.random(in: 0...4, using: &random)).map { _ in value(depth - 1, &random) })
        default:
            var object = JSONObject()
            for _ in 0..<Int.random(in: 0...4, using: &random) {
                object[random.pick(texts)] = value(depth - 1, &random)
            }
            return .object(object)
        }
    }

    /// Rebuilds the value by entering and skipping its parts.
    private static func read(_ cursor: inout JSONCursor, _ text: [UInt8]) throws(JSONError) -> JSON {
        switch try cursor.peek() {
        case UInt8(ascii: "{"):
            var object = JSONObject()
            try cursor.enterObject()
            while let name = try cursor.nextMember() { object[name] = try read(&cursor, text) }
            return .object(object)
        case UInt8(ascii: "["):
            var elements: [JSON] = []
            try cursor.enterArray()
            while try cursor.nextElement() { elements.append(try read(&cursor, text)) }
            return .array(elements)
        case UInt8(ascii: "\""): return .string(try cursor.parseString())
        default: return try JSON(parsing: text[try cursor.skip()])
        }
    }

    @Test func `entering and skipping a value end at the same offset`() throws {
        var random = SeededRandom(named: "JSON cursor")
        for round in 0..<TestEnvironment.rounds(150) {
            let value = Self.value(3, &random)
            let hasSpaces = round.isMultiple(of: 2)
            let text = Array((hasSpaces ? " \(value.prettyText) " : value.text).utf8)
            let found = try JSONCursor.read(text) { (cursor) throws(JSONError) in
                let range = try cursor.skip()
                try cursor.move(to: 0)
                return (range, try Self.read(&cursor, text), cursor.offset)
            }
            #expect(found.1 == value)
            #expect(found.0.upperBound == found.2)
            #expect(try JSON(parsing: text[found.0]) == value)
        }
    }

    @Test(arguments: ["", "{", "[1", "\"abc", "\"abc\\\"", "{\"a\"", "{\"a\":", "{1:2}", "{\"a\":}", "[1,,"])
    func `truncated or malformed text is refused`(text: String) {
        #expect(throws: JSONError.self) {
            try JSONCursor.read(Array(text.utf8)) { (cursor) throws(JSONError) in
                _ = try Self.read(&cursor, Array(text.utf8))
                _ = try cursor.skip()
            }
        }
    }

    @Test func `leave skips the rest of an object`() throws {
        let text = Array(#"[{"a":1,"b":{"c":["]}"]}},7]"#.utf8)
        let found = try JSONCursor.read(text) { (cursor) throws(JSONError) in
            try cursor.enterArray()
            _ = try cursor.nextElement()
            try cursor.enterObject()
            let name = try cursor.nextMember()
            let value = try cursor.parseInteger()
            try cursor.leave()
            _ = try cursor.nextElement()
            return (name, value, try cursor.parseInteger())
        }
        #expect(found == ("a", 1, 7))
    }
}
