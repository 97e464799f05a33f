import Contracts
import JSONValue
import Messaging
import Testing

@Suite(.timeLimit(.minutes(5)))
struct ErrorCodeTests {
    @Test func `every error has a unique code`() {
        let codes = ErrorCode.allCases.map(\.code)
        #expect(Set(codes).count == codes.count)
    }

    @Test func `PhotoKit's errors have PhotoKit's codes`() {
        #expect(ErrorCode.tokenExpired.code == 3105)
        #expect(ErrorCode.identifierNotFound.code == 3201)
        #expect(ErrorCode.changeNotSupported.code == 3300)
        #expect(ErrorCode.invalidResource.code == 3302)
        #expect(ErrorCode.accessDenied.code == 3311)
    }

    @Test func `every error of the transport is in the table`() {
        let errors: [RPCError] = [
            .parseError(""), .invalidRequest(""), .methodNotFound(""), .invalidParams(""), .internalError(""),
            .busy(""), .deadlineExceeded(""), .cancelled(""), .connectionLost(""), .limitExceeded(""),
        ]
        for error in errors {
            #expect(error.errorCode?.code == error.code, "\(error.name)")
        }
    }

    @Test func `an error is encoded and decoded without loss`() throws {
        let error = ErrorCode.conflict.error("it has changed", ["request": 3])
        #expect(try #require(RPCError(json: error.json)) == error)
        #expect(
            error.json.text
                == #"{"code":9007,"message":"it has changed","data":{"name":"conflict","request":3}}"#
        )
    }
}
