import JSONValue
import Testing

@Suite(.timeLimit(.minutes(5)))
struct JSONTableTests {
    struct Sample: JSONTabled, Equatable {
        var name = ""
        var count = 3
        var note: String?
        var parts: [Int64] = []

        static let table = JSONTable(
            "Sample",
            "A sample.",
            unknown: .refused,
            blank: Sample(),
            [
                .required("name", \.name, .text(maxBytes: 4), "Its name."),
                .defaulted("count", \.count, .count(0...9), "How many.", default: 3),
                .optional("note", \.note, .text(maxBytes: 8), "A note."),
                .defaulted("parts", \.parts, .list(of: .integer(0...5), limit: 2), "Parts.", default: []),
            ]
        )
    }

    @Test func `a table that declares a member twice refuses an undeclared member`() {
        let table = JSONTable(
            "Twice",
            "A table with a name for two properties.",
            unknown: .refused,
            blank: Sample(),
            [
                .optional("note", \.note, .text(maxBytes: 8), "A note."),
                .optional("note", \.note, .text(maxBytes: 8), "The same."),
            ]
        )
        #expect(throws: JSONProblem("is unknown; allowed: note, note", path: ["other"])) {
            try table.decode(["note": "a", "other": 1])
        }
    }

    @Test(arguments: [
        (#"{}"#, ["name"], "is required"), (#"{"nam":"a"}"#, ["nam"], "is unknown"), (#"[]"#, [], "expected an object"),
        (#"{"name":1}"#, ["name"], "expected text"),
        (#"{"name":"abcde"}"#, ["name"], "longer than 4 bytes"), (#"{"name":"a","x":1}"#, ["x"], "is unknown"),
        (#"{"name":"a","count":10}"#, ["count"], "expected a whole number from 0 to 9"),
        (#"{"name":"a","count":1.5}"#, ["count"], "expected a whole number"),
        (#"{"name":"a","count":1e300}"#, ["count"], "expected a whole number"),
        (#"{"name":"a","parts":[1,9]}"#, ["parts", "1"], "expected a whole number"),
        (#"{"name":"a","parts":[1,2,3]}"#, ["parts"], "more than 2 elements"),
        (#"{"name":null}"#, ["name"], "expected text"),
    ])
    func `an error has the path and the reason`(text: String, path: [String], reason: String) throws {
        let json = try JSON(parsing: text)
        let problem = try #require(throws: JSONProblem.self) { try Sample(json: json) }
        #expect(problem.path == path)
        #expect(problem.reason.hasPrefix(reason), "\(problem)")
    }

    @Test func `absent and null members get their default, and defaults are not encoded`() throws {
        let sample = try Sample(json: JSON(parsing: #"{"name":"a","count":null,"note":null}"#))
        #expect(sample == Sample(name: "a"))
        #expect(sample.json.text == #"{"name":"a"}"#)
        let full = Sample(name: "b", count: 4, note: "n", parts: [1])
        #expect(full.json.text == #"{"name":"b","count":4,"note":"n","parts":[1]}"#)
        #expect(try Sample(json: full.json) == full)
    }

    @Test func `the schema agrees with the table`() {
        let schema = Sample.table.schema
        #expect(schema["required"] == ["name"])
        #expect(schema["additionalProperties"] == false)
        #expect(schema["properties"]?["count"]?["default"] == 3)
        #expect(schema["properties"]?["parts"]?["maxItems"] == 2)
    }
}
