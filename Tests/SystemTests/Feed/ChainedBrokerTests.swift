import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// A change-broker that follows another one: its subscribers receive the same messages as those of the first.
@Suite(.serialized, .timeLimit(.minutes(4)))
struct ChainedBrokerTests {
    @Test
    func `subscribers of both brokers receive all changes while brokers and the catalog are killed`() async throws {
        var random = SeededRandom(named: "chained brokers")
        try await FeedChecker.withServices { services, library, ids in
            let chained = try ChainedBroker(services)
            let chainedLibrary = try chained.library()
            let start = try await library.currentToken().token
            let readers = (0..<20).map { SubscriberLog($0 < 10 ? library : chainedLibrary, since: start) }
            for _ in 0..<TestEnvironment.rounds(2) {
                for victim in ["first", "chained", "catalog"].shuffled(using: &random) {
                    async let work: Void = FeedChecker.commit(100, ids, library)
                    try await Task.sleep(for: .milliseconds(Int.random(in: 10...150, using: &random)))
                    switch victim {
                    case "first": try services.restart(.changeBroker)
                    case "catalog": try services.restart(.catalog)
                    default:
                        chained.killHard()
                        try chained.start()
                    }
                    try await work
                }
            }
            try await FeedChecker.expectComplete(readers, services, after: start)
            // A page that only the catalog has: both brokers were started after it.
            let early = try await chainedLibrary.changeBroker.ask(FeedSince(token: start, limit: 3)).result.records
            #expect(early.count == 3)
            await chainedLibrary.close()
            #expect(chained.stop() == 0)
        }
    }

    @Test func `a broker whose source is silent reports that, and recovers`() async throws {
        try await FeedChecker.withServices { services, library, ids in
            let chained = try ChainedBroker(services)
            let chainedLibrary = try chained.library()
            try await waitUntil("it follows") { try await chainedLibrary.changeBroker.health().isHealthy }
            let start = try await library.currentToken().token
            let reader = SubscriberLog(chainedLibrary, since: start)
            try await FeedChecker.commit(10, ids, library)
            try await waitUntil("they are delivered") { reader.received.current.count == 10 }

            services.program(.changeBroker)?.signal(SIGSTOP)
            try await FeedChecker.commit(10, ids, library)
            try await waitUntil("it is not healthy", seconds: 20) {
                try await !chainedLibrary.changeBroker.health().isHealthy
            }
            #expect(try await chainedLibrary.changeBroker.health().problems.contains { $0.contains("followed") })
            // Its history is complete nevertheless: the catalog has the rest.
            let page = try await chainedLibrary.changeBroker.ask(FeedSince(token: start, limit: 100)).result
            #expect(page.records.count == 20)

            services.program(.changeBroker)?.signal(SIGCONT)
            try await waitUntil("it is healthy again", seconds: 20) {
                try await chainedLibrary.changeBroker.health().isHealthy
            }
            try await FeedChecker.expectComplete([reader], services, after: start)
            await chainedLibrary.close()
            #expect(chained.stop() == 0)
        }
    }
}
