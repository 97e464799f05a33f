import Contracts
import JSONValue
import PhotoModel
import Testing

/// An encoded page is parsed back, with the same result as a ``ChangePage``.
@Suite(.timeLimit(.minutes(1)))
struct EncodedChangePageTests {
    private let token = ChangeToken(library: "0123456789abcdef0123456789abcdef", sequence: 7)
    private let oldest = ChangeToken(library: "0123456789abcdef0123456789abcdef", sequence: 0)
    private let head = ChangeToken(library: "0123456789abcdef0123456789abcdef", sequence: 9)

    @Test func `records are parsed back byte for byte from the middle of a frame`() throws {
        let records = [#"{"sequence":6,"x":[1,{"a":"]}\""}]}"#, #"{ "sequence" : 7 }"#].map { Array($0.utf8) }
        let text = EncodedChangePage(records: records, token: token, oldest: oldest, head: head).encoded.flatMap(\.self)
        let page = try EncodedChangePage(parsing: Array("before".utf8) + text + Array("}".utf8), at: 6..<6 + text.count)
        #expect(page.records == records)
        #expect((page.token, page.oldest, page.head) == (token, oldest, head))
        let parsed = try ChangePage(json: JSON(parsing: text))
        #expect(parsed.records.count == 2 && parsed.token == page.token)
    }

    @Test(arguments: [
        #"{}"#, #"[]"#, #"{"records":[],"token":"x","oldest":"x","head":"x"}"#,
        #"{"records":{},"token":"abc:1","oldest":"abc:1","head":"abc:1"}"#,
        #"{"records":[],"token":1,"oldest":"abc:1","head":"abc:1"}"#, #"{"records":[}"#, #""#,
    ])
    func `other texts are refused`(_ text: String) {
        let bytes = Array(text.utf8)
        #expect(throws: JSONProblem.self) { try EncodedChangePage(parsing: bytes, at: 0..<bytes.count) }
    }
}
