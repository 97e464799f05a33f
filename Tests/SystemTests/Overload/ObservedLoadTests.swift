import Contracts
import Foundation
import JSONValue
import Logging
import Messaging
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Many observed fetches and large transactions, against the real catalog and the real broker.
///
/// 300 fetches and 30 transactions of 100 assets in the short form; `SAFELIGHT_SOAK=7` and more is the long one: 2,000
/// fetches and 84 transactions of 1,000 assets.
@Suite(.serialized, .timeLimit(.minutes(TestEnvironment.rounds(4))))
struct ObservedLoadTests {
    private static let fetches = min(2000, TestEnvironment.rounds(300))
    private static let transactions = fetches == 2000 ? 84 : 30
    private static let assets = fetches == 2000 ? 1000 : 100
    private static let logBytes = 16 << 20

    /// Changes every asset, and moves some of them to other indexes of each result.
    private func rate(_ number: Int, _ ids: [ObjectID], _ library: PhotoLibrary) async throws -> ChangeToken {
        let changes = ids.enumerated().map { index, id -> ChangeRequest in
            .updateAsset(.init(id: .id(id), set: patch(number, index)))
        }
        return try await library.perform(changes).token
    }

    private func patch(_ number: Int, _ index: Int) -> AssetPatch {
        var patch = AssetPatch(caption: .some("\(number) \(index)"))
        if (number + index) % 20 == 0 { patch.rating = number % 6 }
        return patch
    }

    private func fetch(_ number: Int) -> FetchDescription {
        var fetch = FetchDescription(.assets)
        fetch.sort = [SortDescription(key: "rating", ascending: number % 2 == 0)]
        fetch.limit = number + 1
        return fetch
    }

    @Test(.spec("P-07"))
    func `the topic changes does not wait for observed fetches, whose logs stay within their bound`() async throws {
        let environment = ["SAFELIGHT_MAX_FETCH_LOG_BYTES": "\(Self.logBytes)"]
        try await FeedChecker.withServices(assets: Self.assets, environment: environment) { services, library, ids in
            var observations: [(FetchDescription, FetchObserve.Result, [ObjectID])] = []
            let start = try await rate(0, ids, library)
            for number in 0..<Self.fetches {
                let fetch = fetch(number)
                let observed = try await library.changeBroker.ask(FetchObserve(fetch: fetch, token: start)).result
                guard number % 30 == 29 else { continue }
                observations.append((fetch, observed, try await RandomWorkload.fresh(fetch, library).0))
            }
            let feed = try Subscriber(
                address: services.address("feed"),
                thread: try PollThread(name: "test-load"),
                logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
            )
            let topics = observations.map(\.1.topic)
            await feed.subscribe([FeedTopic.changes] + topics)
            await feed.subscribe([FeedTopic.head])
            var messages = feed.messages.makeAsyncIterator()
            while let message = await messages.next(), message.topic != FeedTopic.head {}
            let memory = services.residentMemory(.changeBroker)
            // All records arrive at once at a broker that was idle.
            services.program(.changeBroker)?.signal(SIGSTOP)
            var last = start
            for number in 1...Self.transactions { last = try await rate(number, ids, library) }
            let resumed = ContinuousClock.now
            services.program(.changeBroker)?.signal(SIGCONT)
            var (reported, all) = (Duration.zero, Duration.zero)
            var (lists, positions) = ([String: [ObjectID]](), [String: Int64]())
            var names: [String: String] = [:]
            for (_, observed, list) in observations {
                lists[observed.topic] = list
                names[observed.topic] = observed.details.observation
            }
            // Messages that were lost because this subscriber is slower than the broker, and were requested again.
            var repaired = 0
            // Messages of earlier transactions that arrive after the last one was reported.
            var late = 0
            while all == .zero, let message = await messages.next() {
                let json = try JSON(parsing: message.frames.first ?? [])
                let sequence = json["sequence"]?.intValue ?? 0
                switch message.topic {
                case FeedTopic.changes: if sequence == last.sequence { reported = .now - resumed }
                case FeedTopic.head: if sequence >= last.sequence { all = .now - resumed }
                default:
                    if reported > .zero, sequence < last.sequence { late += 1 }
                    let position = positions[message.topic] ?? start.sequence
                    guard sequence > position else { continue }
                    let list = lists[message.topic] ?? []
                    if json["previous"]?.intValue ?? 0 <= position {
                        let details = try ChangeDetails(json: try #require(json["details"]))
                        lists[message.topic] = try details.apply(to: list)
                        positions[message.topic] = sequence
                        continue
                    }
                    repaired += 1
                    let request = FetchDetails(
                        observation: names[message.topic] ?? "",
                        token: ChangeToken(library: start.library, sequence: position)
                    )
                    let answer = try await library.changeBroker.ask(request).result
                    lists[message.topic] = try answer.ids ?? answer.details?.apply(to: list) ?? list
                    positions[message.topic] = answer.token.sequence
                }
            }
            let metrics = try await library.changeBroker.metrics()["feed"]?["fetches"]
            let grown = services.residentMemory(.changeBroker) - memory
            TestPaths.report(
                "\(Self.fetches) fetches, \(Self.transactions) transactions of \(Self.assets): changes after \(reported), "
                    + "all after \(all), \(repaired) repaired; logs \(metrics?["logBytes"]?.intValue ?? -1) bytes, the broker grew by \(grown) KiB"
            )
            #expect(reported > .zero && late > 0, "changes waited for the work for observed fetches")
            #expect(metrics?["logBytes"]?.intValue ?? .max <= Self.logBytes)
            #expect(metrics?["bytes"]?.intValue ?? .max <= 640 << 20)
            #expect(metrics?["behind"] == 0 && metrics?["broken"] == 0)
            #expect(grown < 200 << 10)
            // The live messages and the details since the start, whose log was discarded, lead to the same list.
            for (fetch, observed, list) in observations {
                let expected = try await RandomWorkload.fresh(fetch, library).0
                // A head that is ahead of the list shows that its last messages were lost, or that there were none.
                let position = positions[observed.topic] ?? start.sequence
                let since = FetchDetails(
                    observation: observed.details.observation,
                    token: ChangeToken(library: start.library, sequence: position)
                )
                let rest = try await library.changeBroker.ask(since).result
                let live = lists[observed.topic] ?? []
                #expect(try rest.ids ?? rest.details?.apply(to: live) ?? live == expected)
                let request = FetchDetails(observation: observed.details.observation, token: start)
                let details = try await library.changeBroker.ask(request).result
                #expect(details.token == last)
                // Beyond the records that one response reads again, the whole list is returned.
                #expect(try details.ids ?? details.details?.apply(to: list) == expected)
            }
            await feed.close()
        }
    }
}
