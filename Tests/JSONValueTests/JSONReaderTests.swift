import JSONValue
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct JSONReaderTests {
    @Test(
        arguments: [
            ("null", .null), (" true ", .bool(true)), ("\t\r\nfalse", .bool(false)), ("0", .int(0)), ("-0", .int(0)),
            ("-12", .int(-12)), ("9223372036854775807", .int(.max)), ("-9223372036854775808", .int(.min)),
            ("9223372036854775808", .double(9_223_372_036_854_775_808)), ("1.0", .double(1)), ("1e2", .double(100)),
            ("1E+2", .double(100)), ("-1.5e-3", .double(-0.0015)), ("1e-400", .double(0)), ("0.1", .double(0.1)),
            ("1.7976931348623157e308", .double(.greatestFiniteMagnitude)), (#""""#, .string("")),
            (#""a\"\\\/\b\f\n\r\t""#, .string("a\"\\/\u{8}\u{C}\n\r\t")), (#""\u00e9\u65E5""#, .string("é日")),
            (#""\ud83d\ude00""#, .string("😀")), (#""\uD834\uDD1E""#, .string("𝄞")), (#""\u0000""#, .string("\0")),
            (#""\ufffe\uffff""#, .string("\u{FFFE}\u{FFFF}")), ("\"é\u{7F}\"", .string("é\u{7F}")), ("[]", []),
            ("[ ]", []), ("[1,[2],{}]", [1, [2], [:]]), ("{}", [:]), (#"{ "a" : 1 , "b" : [ ] }"#, ["a": 1, "b": []]),
            (#"{"":{"":null}}"#, ["": ["": .null]]),
        ] as [(String, JSON)]
    )
    func `valid text is parsed`(text: String, value: JSON) throws {
        #expect(try JSON(parsing: text) == value)
    }

    @Test(
        arguments: [
            ("", .unexpectedEnd, 0), ("  ", .unexpectedEnd, 2), ("nul", .unexpectedEnd, 3),
            ("nulL", .unexpectedByte, 3),
            ("True", .unexpectedByte, 0), ("nullx", .trailingBytes, 4), ("1 2", .trailingBytes, 2),
            ("[1,]", .unexpectedByte, 3),
            ("[1 2]", .unexpectedByte, 3), ("[", .unexpectedEnd, 1), ("[1", .unexpectedEnd, 2),
            ("]", .unexpectedByte, 0),
            ("{", .unexpectedEnd, 1), (#"{"a"}"#, .unexpectedByte, 4), (#"{"a":}"#, .unexpectedByte, 5),
            (#"{"a":1,}"#, .unexpectedByte, 7), ("{a:1}", .unexpectedByte, 1), ("{1:1}", .unexpectedByte, 1),
            (#"{"a":1,"a":2}"#, .duplicateName, 10), ("-", .badNumber, 1), ("01", .badNumber, 2),
            ("-01", .badNumber, 3),
            ("1.", .badNumber, 2), (".1", .unexpectedByte, 0), ("1e", .badNumber, 2), ("1e+", .badNumber, 3),
            ("+1", .unexpectedByte, 0), ("0x10", .trailingBytes, 1), ("1e999", .badNumber, 5),
            ("NaN", .unexpectedByte, 0),
            ("Infinity", .unexpectedByte, 0), ("-Infinity", .badNumber, 1), ("'a'", .unexpectedByte, 0),
            (#"""#, .unexpectedEnd, 1), (#""\"#, .unexpectedEnd, 2), (#""\""#, .unexpectedEnd, 3),
            ("\"\n\"", .badString, 1),
            ("\"\0\"", .badString, 1), (#""\x""#, .badString, 4), (#""\u12""#, .badString, 6),
            (#""\u12g4""#, .badString, 8),
            (#""\ud800""#, .badString, 8), (#""\udc00""#, .badString, 8), (#""\ud800\u0041""#, .badString, 14),
            (#""\ud800\n""#, .badString, 10), (#""\ud800\ud800""#, .badString, 14), (#""\ud83d\u""#, .badString, 10),
            ("\u{FEFF}1", .unexpectedByte, 0), ("// x\n1", .unexpectedByte, 0),
        ] as [(String, JSONError.Reason, Int)]
    )
    func `invalid text is refused with the reason and the offset`(
        text: String,
        reason: JSONError.Reason,
        offset: Int
    ) throws {
        let error = try #require(throws: JSONError.self) { try JSON(parsing: text) }
        #expect(error.reason == reason, "\(error)")
        #expect(error.offset == offset, "\(error)")
    }

    @Test(
        arguments: [
            [0xFF], [0x80], [0xC3], [0xC3, 0x28], [0xC0, 0xAF], [0xE0, 0x80, 0x80], [0xED, 0xA0, 0x80],
            [0xF4, 0x90, 0x80, 0x80],
            [0xF8, 0x88, 0x80, 0x80, 0x80],
        ] as [[UInt8]]
    )
    func `bytes that are not UTF-8 are refused`(bytes: [UInt8]) throws {
        let error = try #require(throws: JSONError.self) { try JSON(parsing: [0x22] + bytes + [0x22]) }
        #expect(error.reason == .badString)
        #expect(throws: JSONError.self) { try JSON(parsing: [0x22, 0x5C, 0x6E] + bytes + [0x22]) }
        #expect(throws: JSONError.self) { try JSON(parsing: bytes) }
    }

    @Test func `depth is limited`() throws {
        func nested(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        #expect(throws: Never.self) { try JSON(parsing: nested(65)) }
        #expect(try #require(throws: JSONError.self) { try JSON(parsing: nested(66)) }.reason == .tooDeep)
        let open = String(repeating: #"{"a":["#, count: 500_000)
        #expect(try #require(throws: JSONError.self) { try JSON(parsing: open) }.reason == .tooDeep)
        #expect(throws: JSONError.self) { try JSON(parsing: "[[1]]", limits: JSONLimits(depth: 1)) }
    }

    @Test func `the number of values is limited`() throws {
        #expect(throws: Never.self) { try JSON(parsing: "[1,2]", limits: JSONLimits(values: 3)) }
        let error = try #require(throws: JSONError.self) { try JSON(parsing: "[1,2,3]", limits: JSONLimits(values: 3)) }
        #expect(error.reason == .tooManyValues)
    }

    @Test func `every member of an object with many members is found, and they keep their order`() throws {
        var object = JSONObject()
        for number in 0..<1000 { object["name \(number)"] = JSON(number) }
        let again = try JSON(parsing: JSON.object(object).bytes)
        #expect(again == .object(object))
        #expect(again["name 999"] == 999)
        for number in stride(from: 0, to: 1000, by: 2) { object["name \(number)"] = nil }
        #expect(object.count == 500)
        #expect(object["name 0"] == nil)
        #expect(object["name 999"] == 999)
        #expect(object.members.first?.name == "name 1")
        object["name 1"] = nil
        for number in 3..<1000 { object["name \(number)"] = nil }
        #expect(object.isEmpty)
    }
}
