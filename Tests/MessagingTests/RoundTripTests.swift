import JSONValue
import Testing

@testable import Messaging

@Suite(.timeLimit(.minutes(1)))
struct RoundTripTests {
    @Test(arguments: MessagingRoom.Kind.allCases)
    func `a call brings back what the handler answers`(kind: MessagingRoom.Kind) async throws {
        try await MessagingRoom.with { room in
            try await room.serving(kind) { server in
                let client = try room.client(server)
                let reply = try await client.call("hello", ["name": "Ada"])
                #expect(reply.result["method"] == "hello")
                #expect(reply.result["params"] == ["name": "Ada"])
                #expect(reply.attachments.isEmpty)
            }
        }
    }
}
