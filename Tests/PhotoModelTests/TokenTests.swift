import JSONValue
import PhotoModel
import Testing

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
