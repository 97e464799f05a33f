import Foundation
import TestSupport

/// Polls a condition that has no event of its own.
///
/// - Parameters:
///   - what: the condition in words, for the error
///   - seconds: the time after which an error is thrown
func waitUntil(_ what: String, seconds: Int = 60, _ condition: () async throws -> Bool) async throws {
    let end = ContinuousClock.now + .seconds(seconds)
    while try await !condition() {
        guard ContinuousClock.now < end else { throw FixtureError(description: "\(what): not within \(seconds) s") }
        try await Task.sleep(for: .milliseconds(20))
    }
}

/// Polls a condition on the calling thread, for tests that are not asynchronous.
func blockUntil(_ what: String, seconds: Int = 60, _ condition: () throws -> Bool) throws {
    let end = ContinuousClock.now + .seconds(seconds)
    while try !condition() {
        guard ContinuousClock.now < end else { throw FixtureError(description: "\(what): not within \(seconds) s") }
        Thread.sleep(forTimeInterval: 0.02)
    }
}
