import JSONValue
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(TestEnvironment.rounds(1))))
struct JSONWriterTests {
    @Test(arguments: [0, 63, 64, 65, 1000])
    func `a text of any length is written into an array of any capacity`(count: Int) {
        let text = JSON.string(String(repeating: "x", count: count))
        for capacity in [0, 64, 66, 67, 2000] {
            #expect(JSONWriter.bytes(capacity: capacity) { $0.write(text) } == text.bytes)
        }
    }

    @Test func `parts are written one after the other into a buffer that grows`() {
        var writer = JSONWriter(capacity: 0)
        let text = String(repeating: "é\"", count: 200)
        writer.writeObject { writer in
            writer.append(",\"a\":")
            let start = writer.count
            writer.writeList([text, "", "b"]) { $0.write($1) }
            let list = start..<writer.count
            writer.append(",\"b\":")
            writer.append(again: list)
            writer.append(",\"c\":")
            writer.write(Int64.min)
        }
        let list: JSON = [.string(text), "", "b"]
        let expected: JSON = ["a": list, "b": list, "c": .int(.min)]
        #expect(writer.output == expected.bytes)
        #expect(writer.count == expected.bytes.count)
    }

    @Test(
        arguments: [
            (.null, "null"), (.int(.min), "-9223372036854775808"), (.double(1), "1.0"), (.double(-0.0), "0.0"),
            (.double(0.1), "0.1"), (.double(1e16), "1e+16"), (.double(1e-7), "1e-07"),
            (.double(999_999_999_999_999), "999999999999999.0"),
            (.double(.nan), "null"), (.double(.infinity), "null"),
            (.string("\u{1}\u{1F}\u{7F}/é😀"), "\"\\u0001\\u001f\u{7F}/é😀\""),
            (.string("\"\\\n\r\t"), #""\"\\\n\r\t""#), (["b": 1, "a": [true, .null]], #"{"b":1,"a":[true,null]}"#),
            ([], "[]"), ([:], "{}"),
        ] as [(JSON, String)]
    )
    func `a value has exactly one encoding`(value: JSON, text: String) {
        #expect(value.text == text)
    }

    @Test func `pretty text has lines and indentation`() {
        let value: JSON = ["a": [1, []], "b": [:]]
        #expect(value.prettyText == "{\n  \"a\": [\n    1,\n    []\n  ],\n  \"b\": {}\n}")
    }

    @Test func `the members of a canonical value are sorted by the bytes of their names`() {
        let value: JSON = ["b": ["z": 1, "a": 2], "é": 3, "a": [["y": 1, "x": 2]], "B": 4]
        #expect(value.canonical.text == #"{"B":4,"a":[{"x":2,"y":1}],"b":{"a":2,"z":1},"é":3}"#)
    }

    @Test func `random values are parsed back from their text`() throws {
        var random = SeededRandom(named: "JSON values")
        for _ in 0..<TestEnvironment.rounds(3000) {
            let value = Self.value(depth: 0, &random)
            for text in [value.bytes, Array(value.prettyText.utf8)] {
                let again = try JSON(parsing: text)
                #expect(again == value, "\(value.text)")
                #expect(again.hashValue == value.hashValue)
                #expect(again.bytes == value.bytes)
            }
        }
    }

    static func value(depth: Int, _ random: inout SeededRandom) -> JSON {
        switch Int.random(in: 0..<(depth < 5 ? 8 : 5), using: &random) {
        case 0: return .null
        case 1: return .bool(.random(using: &random))
        case 2: return .int(Int64.random(in: .min ... .max, using: &random) >> Int64.random(in: 0...63, using: &random))
        case 3:
            let number = Double(bitPattern: UInt64.random(in: .min ... .max, using: &random))
            return .double(number.isFinite ? number : Double(Int.random(in: -99...99, using: &random)) / 4)
        case 4: return .string(text(&random))
        case 5, 6:
            return .array((0..<Int.random(in: 0...5, using: &random)).map { _ in value(depth: depth + 1, &random) })
        default:
            var object = JSONObject()
            for _ in 0..<(random.one(in: 10) ? 20 : Int.random(in: 0...5, using: &random)) {
                object[text(&random)] = value(depth: depth + 1, &random)
            }
            return .object(object)
        }
    }

    private static func text(_ random: inout SeededRandom) -> String {
        var view = String.UnicodeScalarView()
        for _ in 0..<Int.random(in: 0...6, using: &random) {
            let maximum: UInt32 = random.pick([0x1F, 0x7F, 0x7FF, 0xFFFF, 0x10FFFF])
            if let scalar = Unicode.Scalar(UInt32.random(in: 0...maximum, using: &random)) { view.append(scalar) }
        }
        return String(view)
    }

    @Test func `parsing random broken texts for a second does not trap`() throws {
        var random = SeededRandom(named: "broken JSON")
        let pieces = Array(#"{}[],:"\u0123456789eE+-.truefalsnul"#.utf8) + [0x00, 0x20, 0x7F, 0x80, 0xC3, 0xED, 0xFF]
        let clock = ContinuousClock()
        let end = clock.now + .seconds(TestEnvironment.rounds(1))
        var (read, refused) = (0, 0)
        while clock.now < end {
            var bytes: [UInt8]
            if random.one(in: 3) {
                bytes = (0..<Int.random(in: 0...40, using: &random)).map { _ in random.pick(pieces) }
            } else {
                bytes = Self.value(depth: 2, &random).bytes
                for _ in 0..<Int.random(in: 1...3, using: &random) where !bytes.isEmpty {
                    let index = Int.random(in: bytes.indices, using: &random)
                    switch Int.random(in: 0..<4, using: &random) {
                    case 0: bytes[index] = random.pick(pieces)
                    case 1: bytes.remove(at: index)
                    case 2: bytes.insert(random.pick(pieces), at: index)
                    default: bytes.removeSubrange(index...)
                    }
                }
            }
            do throws(JSONError) {
                let value = try JSON(parsing: bytes)
                read += 1
                if try JSON(parsing: value.bytes) != value { Issue.record("\(bytes)") }
            } catch {
                refused += 1
                if !(0...bytes.count).contains(error.offset) { Issue.record("\(error) in \(bytes)") }
            }
        }
        #expect(read > 0 && refused > 0)
    }
}
