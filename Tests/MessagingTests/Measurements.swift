import Foundation
import JSONValue
import Testing

@testable import Messaging

/// A measurement of round trips per second, which runs only with `MEASURE=1`.
///
/// Compare the numbers only within one run.
@Suite(.serialized, .timeLimit(.minutes(5)), .enabled(if: ProcessInfo.processInfo.environment["MEASURE"] != nil))
struct Measurements {
    @Test(arguments: [1, 64])
    func `round trips over ipc`(outstanding: Int) async throws {
        try await MessagingFixture.with { fixture in
            try await fixture.serving(.ipc) { server in
                let client = try fixture.client(server)
                let each = 20_000 / outstanding
                let start = ContinuousClock.now
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<outstanding {
                        group.addTask {
                            for _ in 0..<each { _ = try await client.call("hello", ["name": "Ada"]) }
                        }
                    }
                    try await group.waitForAll()
                }
                let seconds = (ContinuousClock.now - start) / .seconds(1)
                print("ipc, \(outstanding) outstanding: \(Int(Double(each * outstanding) / seconds)) round trips/s")
            }
        }
    }
}
