import CZeroMQ
import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// The meaning of `topics` is the same for the real catalog, the real broker and every client.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct FeedTopicTests {
    /// Returns topic lists that select every change.
    private static func makeTopicLists(_ asset: ObjectID) -> [[String]] {
        [[], [FeedTopic.changes], [FeedTopic.changes, FeedTopic.object(asset)]]
    }

    /// Topics that are refused, and the suggestion in the error.
    private static let refused = [
        ("head", "feed.head"), ("fetch.x", "fetch.details"), ("fetch.", "fetch.details"), ("asset.", "asset.<id>"),
        ("changes.x", "asset.<id>"), ("", "asset.<id>"), ("nothing", "asset.<id>"), ("assets.a", "asset.<id>"),
    ]

    /// Returns the sequences that `changes.since` or `feed.since` returns, page by page.
    private func readPages(
        _ library: PhotoLibrary,
        _ ask: (ChangeToken) async throws -> ChangePage,
        after start: ChangeToken
    ) async throws -> [Int64] {
        var (token, sequences) = (start, [Int64]())
        while true {
            let page = try await ask(token)
            sequences += page.records.compactMap { $0["sequence"]?.intValue }
            #expect(page.token.sequence > token.sequence || !page.hasMore)
            token = page.token
            guard page.hasMore else { return sequences }
        }
    }

    /// Returns the sequences that `feed.follow` sends, up to `last`.
    private func readStream(
        _ library: PhotoLibrary,
        _ topics: [String],
        after start: ChangeToken,
        upTo last: Int64
    ) async throws -> [Int64] {
        var sequences: [Int64] = []
        let stream = library.changeBroker.stream(FeedFollow(token: start, topics: topics), credit: 1 << 20)
        for try await event in stream {
            guard case .notification(let method, let params, _) = event else { continue }
            if method == FeedFollow.notification {
                for record in params["records"]?.arrayValue ?? [] {
                    sequences.append(record["sequence"]?.intValue ?? 0)
                }
            }
            guard let token = params["token"]?.stringValue.flatMap({ ChangeToken($0) }), token.sequence < last else {
                break
            }
        }
        return sequences
    }

    /// Returns the sequences that the client library's feed delivers, up to `last`.
    private func readChanges(
        _ library: PhotoLibrary,
        _ topics: [String],
        after start: ChangeToken,
        upTo last: Int64
    ) async throws -> [Int64] {
        var sequences: [Int64] = []
        for try await event in library.changes(since: start, topics: topics) {
            if case .change(let record) = event { sequences.append(record.sequence) }
            if event.token.sequence >= last { break }
        }
        return sequences
    }

    @Test func `the topic changes selects every change, for the catalog, the broker and the client library`()
        async throws
    {
        try await FeedChecker.withServices { services, library, ids in
            let start = try await library.currentToken().token
            try await FeedChecker.commit(20, Array(ids.prefix(2)), library, lanes: 1)
            let all = try FeedChecker.table(services, after: start).keys.sorted()
            let last = try #require(all.last)
            #expect(all.count == 20)
            // In the second round the broker's memory is empty, so it reads from the catalog.
            for round in 0..<2 {
                for topics in Self.makeTopicLists(ids[0]) {
                    let ofCatalog = try await readPages(
                        library,
                        { try await library.catalog.ask(ChangesSince(token: $0, limit: 7, topics: topics)).result },
                        after: start
                    )
                    #expect(ofCatalog == all, "changes.since \(topics), \(round)")
                    let ofBroker = try await readPages(
                        library,
                        { try await library.changeBroker.ask(FeedSince(token: $0, limit: 7, topics: topics)).result },
                        after: start
                    )
                    #expect(ofBroker == all, "feed.since \(topics), \(round)")
                    let stream = try await readStream(library, topics, after: start, upTo: last)
                    #expect(stream == all, "feed.follow \(topics), \(round)")
                    let changes = try await readChanges(library, topics, after: start, upTo: last)
                    #expect(changes == all, "\(topics), \(round)")
                }
                let oneTopic = [FeedTopic.object(ids[0])]
                let some = try await readPages(
                    library,
                    { try await library.changeBroker.ask(FeedSince(token: $0, limit: 7, topics: oneTopic)).result },
                    after: start
                )
                #expect(some == all.filter { $0 % 2 == all[0] % 2 })
                #expect(try await readStream(library, oneTopic, after: start, upTo: last) == some)
                try services.restart(.changeBroker)
            }
        }
    }

    @Test func `live changes reach a feed that was opened with the topic changes`() async throws {
        try await FeedChecker.withServices { services, library, ids in
            let start = try await library.currentToken().token
            for topics in Self.makeTopicLists(ids[0]) {
                let isCaughtUp = AwaitableValue<Bool>(false)
                let task = Task {
                    var count = 0
                    for try await event in library.changes(since: nil, topics: topics) {
                        if case .caughtUp = event { isCaughtUp.withLock { $0 = true } }
                        if case .change = event { count += 1 }
                        if count == 5 { break }
                    }
                    return count
                }
                try await waitUntil("\(topics) is caught up") { isCaughtUp.current }
                try await FeedChecker.commit(5, [ids[1]], library, lanes: 1)
                #expect(try await task.value == 5, "\(topics)")
            }
            #expect(try await library.currentToken().token.sequence == start.sequence + 15)
        }
    }

    @Test func `the catalog, the broker and every client refuse head, fetches and unknown topics`() async throws {
        try await FeedChecker.withServices { services, library, ids in
            let start = try await library.currentToken().token
            for (topic, hint) in Self.refused {
                for topics in [[topic], [FeedTopic.changes, topic], [FeedTopic.object(ids[0]), topic]] {
                    func check(_ what: String, _ body: () async throws -> Void) async {
                        let error = await #expect(throws: RPCError.self, "\(what) \(topics)") { try await body() }
                        #expect(error?.errorCode == .invalidParams && error?.message.contains(hint) == true, "\(what)")
                    }
                    await check("changes.since") {
                        _ = try await library.catalog.ask(ChangesSince(token: start, topics: topics))
                    }
                    await check("feed.since") {
                        _ = try await library.changeBroker.ask(FeedSince(token: start, topics: topics))
                    }
                    await check("feed.follow") {
                        _ = try await readStream(library, topics, after: start, upTo: start.sequence)
                    }
                    await check("the client library") {
                        for try await _ in library.changes(since: nil, topics: topics) { break }
                    }
                }
                let run = try services.safelight(["watch", "--topic", topic, "--count", "1"], seconds: 20)
                #expect(run.status != 0 && run.errors.contains(hint), "\(topic): \(run.errors)")
            }
        }
    }

    @Test func `safelight watch --topic changes prints every change`() async throws {
        try await FeedChecker.withServices { services, library, ids in
            let start = try await library.currentToken().token
            try await FeedChecker.commit(4, Array(ids.prefix(2)), library, lanes: 1)
            let run = try services.safelight(
                ["watch", "--topic", "changes", "--since", start.description, "--count", "4", "--json"],
                seconds: 20
            )
            #expect(run.status == 0, "\(run.errors)")
            #expect(run.output.split(separator: "\n").count == 4)
        }
    }

    private static let script = """
        import sys
        from safelight import Library, SafelightError

        start, last = sys.argv[1], int(sys.argv[2])
        with Library() as library:
            for topics in [[], ["changes"], ["changes", sys.argv[3]], [sys.argv[3]]]:
                sequences = []
                for change in library.changes(since=start, topics=topics, events=True):
                    if type(change).__name__ == "Change":
                        sequences.append(change["sequence"])
                    if int(change.get("sequence") or change["token"].rsplit(".", 1)[1]) >= last:
                        break
                print(len(sequences))
            for topics in [["head"], ["fetch.x"], ["changes", "head"], ["asset."], ["nothing"]]:
                try:
                    next(iter(library.changes(topics=topics)))
                except SafelightError as error:
                    print(error.name)
                try:
                    library.broker.call("feed.since", {"token": start, "topics": topics})
                except SafelightError as error:
                    print(error.name)
        """

    @Test func `the Python client selects topics by the same rule`() async throws {
        let python = try Needed.python()
        try await FeedChecker.withServices { services, library, ids in
            let start = try await library.currentToken().token
            try await FeedChecker.commit(6, Array(ids.prefix(2)), library, lanes: 1)
            let run = try RunningProgram.run(
                python,
                [
                    "-c", Self.script, start.description, "\(start.sequence + 6)", FeedTopic.object(ids[0]),
                ],
                environment: services.environment.merging(PythonPackage.environment) { $1 },
                seconds: 60
            )
            #expect(run.status == 0, "\(run.errors)")
            let expected = ["6", "6", "6", "3"] + Array(repeating: "invalid_params", count: 10)
            #expect(run.output.split(separator: "\n").map(String.init) == expected)
        }
    }
}
