import Contracts
import Dispatch
import JSONValue
import Messaging
import PhotoModel
import TestSupport
import Testing

@testable import ChangeBroker

/// Tests of observed fetches whose evaluation with a record takes long.
@Suite(.timeLimit(.minutes(1)))
struct LongEvaluationTests {
    private let token = ChangeToken(library: testLibrary, sequence: 10)
    private let noKeys: [ArraySlice<UInt8>] = []

    /// Returns a fetch with many tests of the caption.
    private func fetch(_ word: String) throws -> Fetch {
        let tests = (0..<40).map { "caption CONTAINS '\(word)\($0)'" }.joined(separator: " OR ")
        return try Fetch(.assets(.library), predicate: try Predicate(format: tests, of: .asset))
    }

    private func asset(_ number: Int, _ caption: String) -> Asset {
        var asset = Asset(id: RandomEntities.id(.asset, number), revision: Revision(1))
        asset.caption = String(repeating: "a", count: 60_000) + caption
        return asset
    }

    /// Returns a record that adds an asset with a long caption.
    private func record(_ caption: String, sequence: Int64 = 11) -> ChangeRecord {
        var record = ChangeRecord(
            sequence: sequence,
            library: testLibrary,
            date: sequence,
            origin: ChangeOrigin(identity: "uid:1")
        )
        record.assets = [EntityChange(before: nil, after: asset(1, caption))]
        return record
    }

    private func observer(_ identity: String) -> ObservedFetch.Observer {
        ObservedFetch.Observer(identity: identity, connection: ConnectionID(test: 1))
    }

    /// Returns a feed without sockets whose history begins at the token, with one observed fetch, `x`.
    private func feed(_ fetch: Fetch, maxEvaluationTime: Duration = .seconds(1)) async throws -> RecordFeed {
        let address = try EndpointAddress("ipc:///tmp/unused")
        var configuration = ChangeBrokerConfiguration(catalog: address, requests: address, feed: address)
        configuration.maxEvaluationTime = maxEvaluationTime
        let feed = RecordFeed(configuration, publishers: [], instance: "first", logger: BrokerFixture.logger)
        _ = await feed.adopt(CurrentToken.Result(token: token, oldest: token))
        try await observe("x", fetch, feed)
        return feed
    }

    private func observe(_ observation: String, _ fetch: Fetch, _ feed: RecordFeed) async throws {
        let number = try #require(await feed.beginLoading(fetch))
        let keys = LoadedKeys(keys: KeyFrames(), token: token, scope: nil, members: nil, isDeleted: false)
        let isInstalled = try await feed.install(number, KeyTree(ascending: noKeys), keys)
        #expect(isInstalled)
        #expect(try await feed.addObserver(observation, fetch, by: observer("uid:1"), at: 0))
    }

    @Test func `the feed answers requests while a long evaluation is running`() async throws {
        let feed = try await feed(try fetch("b"))
        let decoder = RecordDecoder("test")
        let gate = DispatchSemaphore(value: 0)
        let isBlocked = AwaitableValue(false)
        let blocked = Task {
            await decoder.run {
                isBlocked.withLock { $0 = true }
                gate.wait()
            }
        }
        await isBlocked.wait { $0 }
        let record = record("b7")
        let update = Task { await feed.updateFetches(with: record, record.bytes, on: decoder) }
        while await feed.metrics()["fetches"]?["longEvaluations"] != 1, !Task.isCancelled { await Task.yield() }
        #expect(await feed.token == token)
        #expect(await feed.updatedThrough == 10)
        gate.signal()
        _ = await blocked.value
        _ = await update.value
        #expect(await feed.updatedThrough == 11)
        #expect(await feed.state(of: "x", after: nil, maxIDs: 10)?.ids == [RandomEntities.id(.asset, 1)])
    }

    @Test func `a fetch that takes too long is ended, the instance changes, and the fetch is refused from then on`()
        async throws
    {
        let slow = try fetch("b")
        let feed = try await feed(slow, maxEvaluationTime: .zero)
        let record = record("b7")
        _ = await feed.updateFetches(with: record, record.bytes, on: RecordDecoder("test"))
        #expect(await feed.updatedThrough == 11)
        #expect(await feed.fetch(of: "x") == nil)
        #expect(await feed.instance != "first")
        let window = slow.with(offset: 3, limit: 7)
        for (name, fetch) in [("x", slow), ("y", window)] {
            let error = await #expect(throws: RPCError.self) {
                try await feed.addObserver(name, fetch, by: observer("uid:2"), at: 0)
            }
            #expect(error?.errorCode == .limitExceeded)
        }
        #expect(
            try await feed.addObserver("z", try fetch("c"), by: observer("uid:2"), at: 0) == false,
            "it has to be loaded"
        )
    }

    @Test func `when an identity has used up its time, its other fetches are ended without evaluation`() async throws {
        let feed = try await feed(try fetch("b"), maxEvaluationTime: .zero)
        try await observe("y", try fetch("c"), feed)
        let record = record("b7")
        _ = await feed.updateFetches(with: record, record.bytes, on: RecordDecoder("test"))
        #expect(await feed.observedFetches.count == 0)
        let metrics = await feed.metrics()["fetches"]
        #expect(metrics?["predicatesEvaluated"] == 1 && metrics?["tooLong"] == 2)
    }

    @Test func `a fetch is kept while one of its observers has time left`() throws {
        var fetches = ObservedFetches(maxEvaluationTime: .seconds(1))
        for (word, identities) in [("b", ["many"]), ("c", ["many"]), ("d", ["many", "one"])] {
            let fetch = try fetch(word)
            let number = fetches.beginLoading(fetch, after: 10)
            #expect(try fetches.finishLoading(number, KeyTree(ascending: noKeys), at: 10))
            let added = fetches.add(word, fetch, at: 10)
            for identity in identities { fetches.addObserver(try #require(added), observer(identity), at: 0) }
        }
        var work = fetches.beginWork(on: record("d7"))
        while !work.isDone {
            while let evaluation = fetches.longEvaluation(&work) {
                let isInTime = fetches.finish(evaluation, evaluation.change, took: .milliseconds(600), &work)
                if !isInTime { _ = fetches.removeResult(evaluation.number) }
            }
            _ = fetches.step(&work)
        }
        #expect(fetches["b"] == nil || fetches["c"] == nil)
        #expect(fetches["d"]?.ids == [RandomEntities.id(.asset, 1)])
    }

    @Test func `a slow fetch is refused for a minute, or until there are too many later ones`() throws {
        var slow = SlowFetches()
        let start = ContinuousClock.now
        let fetches = try (0..<SlowFetches.limit + 10).map { number in
            try Fetch(.assets(.library), predicate: try Predicate(format: "rating == \(number)", of: .asset))
        }
        for (number, fetch) in fetches.enumerated() { slow.insert(fetch, now: start + .milliseconds(number)) }
        #expect(fetches.count { slow.contains($0, now: start) } == SlowFetches.limit)
        #expect(!slow.contains(fetches[0], now: start) && slow.contains(fetches[10], now: start))
        #expect(!slow.contains(fetches[10], now: start + SlowFetches.time + .milliseconds(10)))
        #expect(slow.contains(fetches[10], now: start + .seconds(59)))
        #expect(!slow.contains(fetches[10], now: start + .seconds(61)))
    }

    @Test func `repeated evaluations of half a second end a fetch, but not the fetch of another identity`() throws {
        var fetches = ObservedFetches()
        var numbers: [String: Int] = [:]
        for word in ["b", "c"] {
            let fetch = try fetch(word)
            let number = fetches.beginLoading(fetch, after: 10)
            #expect(try fetches.finishLoading(number, KeyTree(ascending: noKeys), at: 10))
            let added = fetches.add(word, fetch, at: 10)
            fetches.addObserver(try #require(added), observer(word), at: 0)
            numbers[word] = number
        }
        let start = ContinuousClock.now
        var ended: [(sequence: Int64, number: Int)] = []
        for sequence in Int64(11)...60 {
            var next = record("", sequence: sequence)
            next.assets = [EntityChange(before: sequence == 11 ? nil : asset(1, ""), after: asset(1, ""))]
            var work = fetches.beginWork(on: next)
            while !work.isDone {
                while let evaluation = fetches.longEvaluation(&work) {
                    let time = Duration.milliseconds(evaluation.number == numbers["b"] ? 500 : 50)
                    let now = start + Duration.milliseconds(550) * Int(sequence - 10)
                    if !fetches.finish(evaluation, nil, took: time, &work, now: now) {
                        ended.append((sequence, evaluation.number))
                        _ = fetches.removeResult(evaluation.number)
                    }
                }
                _ = fetches.step(&work)
            }
        }
        #expect(ended.count == 1 && ended.first?.number == numbers["b"])
        // Each record adds 445 ms, half a second less a tenth of the elapsed time, until the limit of ten seconds.
        #expect((31...34).contains(ended.first?.sequence ?? 0))
        #expect(fetches["c"] != nil)
    }

    @Test func `the used time of an identity decreases by a tenth of the elapsed time`() {
        var allowance = EvaluationAllowance(limit: .seconds(1))
        let start = ContinuousClock.now
        allowance.count(.seconds(2), of: ["a"], now: start)
        #expect(!allowance.isWithin(["a"], now: start) && allowance.isWithin(["b"], now: start))
        #expect(allowance.isWithin(["a", "b"], now: start) && allowance.isWithin([], now: start))
        #expect(!allowance.isWithin(["a"], now: start + .seconds(9)))
        #expect(allowance.isWithin(["a"], now: start + .seconds(10)))
        allowance.count(.milliseconds(1), of: ["a"], now: start + .seconds(10))
        #expect(!allowance.isWithin(["a"], now: start + .seconds(10)))
    }

    @Test(arguments: [("z", 9, 0, false), ("ж", 9, 0, false), ("z", 3000, 0, false), ("z", 9, 60_000, true)])
    func `an evaluation with tests of the caption is long only for a long caption`(
        letter: String,
        caption: Int,
        others: Int,
        isLong: Bool
    ) throws {
        let fetch = try Fetch(
            .assets(.library),
            predicate: try Predicate(format: "caption CONTAINS[cd] 'x'", of: .asset)
        )
        var asset = Asset(id: RandomEntities.id(.asset, 1), revision: Revision(1))
        asset.caption = String(repeating: letter, count: caption) + String(repeating: "ж", count: others)
        asset.keywords = (0..<500).map { "ключевое слово \($0)" }
        let entity = RecordEntity.asset(EntityStates(EntityChange(before: asset, after: asset)))
        #expect(fetch.evaluatesLong(entity.textSizes) == isLong)
    }

    @Test func `the log of a loading fetch is discarded if its evaluation would take too many steps`() throws {
        for (count, isComplete) in [(2, true), (3, false)] {
            var loading = LoadingFetch(fetch: try fetch("b"), oldestComplete: 10)
            for sequence in 0..<count {
                var entry = LoadingFetch.Entry(sequence: 11 + Int64(sequence))
                entry.steps = 4 << 20
                _ = loading.append(entry)
            }
            #expect(loading.isComplete(after: 10, newest: 0) == isComplete)
        }
    }

    @Test func `the time of long evaluations counts only for the observers of the fetch`() throws {
        var fetches = ObservedFetches(maxEvaluationTime: .seconds(1))
        for (word, identity) in [("b", "many"), ("c", "many"), ("d", "one")] {
            let fetch = try fetch(word)
            let number = fetches.beginLoading(fetch, after: 10)
            #expect(try fetches.finishLoading(number, KeyTree(ascending: noKeys), at: 10))
            let added = fetches.add(word, fetch, at: 10)
            fetches.addObserver(try #require(added), observer(identity), at: 0)
        }
        var work = fetches.beginWork(on: record("d7"))
        var (evaluated, ended): (Int, [Int]) = (0, [])
        while !work.isDone {
            while let evaluation = fetches.longEvaluation(&work) {
                evaluated += 1
                let isInTime = fetches.finish(evaluation, evaluation.change, took: .milliseconds(600), &work)
                if !isInTime { ended.append(evaluation.number) }
            }
            _ = fetches.step(&work)
        }
        #expect(evaluated == 3 && ended.count == 1)
        let observations = ended.flatMap { fetches.removeResult($0) }
        #expect(observations == ["b"] || observations == ["c"], "the second one of the identity with two")
        #expect(fetches["d"]?.ids == [RandomEntities.id(.asset, 1)])
        let metrics = fetches.metrics(behind: 0)
        #expect(metrics["longEvaluations"] == 3 && metrics["tooLong"] == 1)
    }

    @Test func `a loading fetch is evaluated with a short text, and loaded again after a long one`() throws {
        var fetches = ObservedFetches()
        let fetch = try fetch("b")
        let number = fetches.beginLoading(fetch, after: 10)
        var short = record("")
        short.assets[0].after?.caption = "b7"
        for record in [short, record("b7", sequence: 12)] {
            var work = fetches.beginWork(on: record)
            while !work.isDone {
                let isLong = fetches.isNextLong(work)
                #expect(!isLong, "a fetch without a result")
                _ = fetches.step(&work)
            }
            let evaluated = fetches.metrics(behind: 0)["predicatesEvaluated"]
            #expect(evaluated == 1, "the long text is not evaluated")
        }
        #expect(try fetches.finishLoading(number, KeyTree(ascending: noKeys), at: 10) == false)
    }

    @Test func `the evaluation of an earlier record ends when its time is over`() throws {
        let fetch = try fetch("b")
        let record = record("b7")
        #expect(fetch.netChanges(of: record, within: .seconds(60)).changes == fetch.netChanges(of: record))
        let late = fetch.netChanges(of: record, within: .zero)
        #expect(late.changes == nil && late.time > .zero)
    }
}
