import Contracts
import JSONValue
import Messaging
import Testing

@Suite(.timeLimit(.minutes(5)))
struct RefusalTests {
    @Test func `every error has a unique code`() {
        let codes = Refusal.allCases.map(\.code)
        #expect(Set(codes).count == codes.count)
    }

    @Test func `PhotoKit's errors have PhotoKit's codes`() {
        #expect(Refusal.tokenExpired.code == 3105)
        #expect(Refusal.identifierNotFound.code == 3201)
        #expect(Refusal.changeNotSupported.code == 3300)
        #expect(Refusal.invalidResource.code == 3302)
        #expect(Refusal.accessDenied.code == 3311)
    }

    @Test func `errors made by Messaging are entries of the table`() {
        let own: [RPCError] = [
            .parseError(""), .invalidRequest(""), .methodNotFound(""), .invalidParams(""), .internalError(""),
            .busy(""), .deadlineExceeded(""), .cancelled(""), .connectionLost(""), .limitExceeded(""),
        ]
        for error in own {
            #expect(error.refusal?.code == error.code, "\(error.name)")
        }
    }

    @Test func `an error is encoded and decoded without loss`() throws {
        let error = Refusal.conflict.error("it has changed", ["request": 3])
        #expect(try #require(RPCError(json: error.json)) == error)
        #expect(
            error.json.text
                == #"{"code":9007,"message":"it has changed","data":{"name":"conflict","request":3}}"#
        )
    }
}
