import Basics
import JSONValue
import TestSupport
import Testing

@testable import Messaging

/// Tests that small requests of the simplest form are read without a tree, with the same result as by the JSON parser.
@Suite(.timeLimit(.minutes(1)))
struct PlainRequestTests {
    private let limits = MessagingLimits()

    private func parsed(_ text: String) -> RPCMessage? {
        guard let json = try? JSON(parsing: Array(text.utf8), limits: limits.json) else { return nil }
        return RPCMessage(json, limits: limits)
    }

    private func read(_ text: String) -> RPCMessage.Request? {
        PlainRequestReader.request(in: Array(text.utf8), limits: limits)
    }

    @Test(arguments: [
        #"{"jsonrpc":"2.0","id":1,"method":"health","params":{"deadlineMs":5000}}"#,
        #"{"jsonrpc": "2.0", "id": 0, "method": "health", "params": {}}"#,
        #"{"method":"health","jsonrpc":"2.0","id":"a b"}"#,
        #" { "id" : 123456789012345678 , "params" : { "deadlineMs" : 1 } , "method" : "m" , "jsonrpc" : "2.0" } "#,
    ])
    func `a plain request is read as the parser reads it`(text: String) throws {
        let request = try #require(read(text))
        guard case .request(let expected)? = parsed(text) else {
            Issue.record("the parser refuses the request")
            return
        }
        #expect("\(request)" == "\(expected)")
    }

    @Test(arguments: [
        "", "{}", "[]", "{", #"{"jsonrpc":"2.0"}"#,
        #"{"jsonrpc":"2.0","id":01,"method":"m"}"#, #"{"jsonrpc":"2.0","id":01"x","method":"m"}"#,
        #"{"jsonrpc":"2.0","id":-1,"method":"m"}"#, #"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#,
        #"{"jsonrpc":"2.0","id":1e3,"method":"m"}"#, #"{"jsonrpc":"2.0","id":1234567890123456789,"method":"m"}"#,
        #"{"jsonrpc":"2.0","id":null,"method":"m"}"#, #"{"jsonrpc":"2.0","method":"m"}"#,
        #"{"jsonrpc":"1.0","id":1,"method":"m"}"#, #"{"id":1,"method":"m"}"#, #"{"jsonrpc":"2.0","id":1,"method":""}"#,
        #"{"jsonrpc":"2.0","id":1,"method":"rpc.cancel","params":{}}"#,
        #"{"jsonrpc":"2.0","id":1,"method":"m\u0061"}"#, #"{"jsonrpc":"2.0","id":1,"method":"é"}"#,
        #"{"jsonrpc":"2.0","id":1,"id":1,"method":"m"}"#, #"{"jsonrpc":"2.0","id":1,"method":"m","more":1}"#,
        #"{"jsonrpc":"2.0","id":1,"method":"m","params":[]}"#, #"{"jsonrpc":"2.0","id":1,"method":"m","params":null}"#,
        #"{"jsonrpc":"2.0","id":1,"method":"m","params":{"deadlineMs":0}}"#,
        #"{"jsonrpc":"2.0","id":1,"method":"m","params":{"deadlineMs":99999999999}}"#,
        #"{"jsonrpc":"2.0","id":1,"method":"m","params":{"deadlineMs":1,"credit":1}}"#,
        #"{"jsonrpc":"2.0","id":1,"method":"m"},"#, #"{"jsonrpc":"2.0","id":1,"method":"m",}"#,
    ])
    func `every other request is left to the parser`(text: String) {
        #expect(read(text) == nil)
    }

    @Test func `a request with changed bytes is never read differently than by the parser`() throws {
        let plain = Array(#"{"jsonrpc":"2.0","id":12,"method":"health","params":{"deadlineMs":50}}"#.utf8)
        var random = SeededRandom(named: "plain requests")
        for _ in 0..<20_000 {
            var frame = plain
            for _ in 0..<Int.random(in: 1...2, using: &random) {
                let position = Int.random(in: 0..<frame.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: frame[position] = UInt8.random(in: 0...255, using: &random)
                case 1: frame.remove(at: position)
                default: frame.insert(plain.randomElement(using: &random) ?? 0, at: position)
                }
            }
            guard let request = PlainRequestReader.request(in: frame, limits: limits) else { continue }
            let json = try JSON(parsing: frame, limits: limits.json)
            guard case .request(let expected) = RPCMessage(json, limits: limits) else {
                Issue.record("the parser refuses \(String(decoding: frame, as: UTF8.self))")
                continue
            }
            #expect("\(request)" == "\(expected)")
        }
    }
}
