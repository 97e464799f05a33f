import Contracts
import JSONValue
import PhotoModel
import Testing

@testable import PhotoClient

@Suite(.timeLimit(.minutes(5)))
struct LiveMessageTests {
    private func message(_ topic: String, _ json: JSON) throws -> LiveChange? {
        guard case .change(let change) = try LiveMessage(topic: topic, frames: [json.bytes]) else { return nil }
        return change
    }

    private func start(_ members: JSONObject) -> JSON {
        var object: JSONObject = [
            "sequence": 9, "library": .string(testLibrary), "date": 5, "origin": ["identity": "uid:1"], "previous": 7,
        ]
        for (name, value) in members.members { object[name] = value }
        return .object(object)
    }

    @Test func `a message of the topic changes is a record with previous`() throws {
        guard var object = record(9, touching: [assetID(1)]).json.objectValue else { return }
        object["previous"] = 8
        let change = try #require(try message(FeedTopic.changes, .object(object)))
        #expect(change.token == token(9))
        #expect(change.previous == 8)
        #expect(change.record == record(9, touching: [assetID(1)]))
    }

    @Test func `a message about one asset is a record with that asset`() throws {
        let asset = Asset(id: assetID(4), revision: Revision(9))
        let change = try #require(
            try message("asset.\(assetID(4))", start(["change": ["before": .null, "after": asset.json]]))
        )
        #expect(change.record?.assets == [EntityChange(before: nil, after: asset)])
        #expect(change.record?.origin.identity == "uid:1")
    }

    @Test func `a message about an edit is a record with that edit`() throws {
        let edit = PublishedEdit(id: "e1", asset: assetID(1), state: .applied)
        let change = try #require(try message("edit.e1", start(["change": edit.json])))
        #expect(change.record?.edits == [edit])
    }

    @Test func `a truncated message has a position but no record`() throws {
        let change = try #require(
            try message(FeedTopic.changes, start(["truncated": true, "assets": [.string(assetID(1).text)]]))
        )
        #expect(change.record == nil)
        #expect(change.sequence == 9)
    }

    @Test(arguments: [
        "{}", "[]", "{\"sequence\":9}", "{\"sequence\":9,\"library\":\"x\",\"previous\":9}",
        "{\"sequence\":-1,\"library\":\"x\",\"previous\":-2}", "no JSON", "",
    ])
    func `an invalid message is refused`(text: String) {
        #expect(throws: JSONProblem.self) {
            try LiveMessage(topic: FeedTopic.changes, frames: [Array(text.utf8)])
        }
        #expect(throws: JSONProblem.self) { try LiveMessage(topic: FeedTopic.head, frames: [Array(text.utf8)]) }
    }

    @Test func `a message without a frame is refused`() {
        #expect(throws: JSONProblem.self) { try LiveMessage(topic: FeedTopic.head, frames: []) }
    }
}
