import Contracts
import JSONValue
import PhotoModel

/// All live fetches of one history: which there are, and what a record does to them.
///
/// Part of ``RecordFeed``, whose actor it lives in.
struct LiveFetches {
    /// What is published of one fetch.
    struct Message {
        let topic: String
        let previous: Int64
        let details: ChangeDetails
    }

    /// What a transaction came to.
    struct Outcome {
        var messages: [Message] = []
        /// Fetches that it does not fit; they are gone.
        var broken: [String] = []
    }

    private var fetches: [Int: LiveFetch] = [:]
    private var numbers: [String: Int] = [:]
    private var index = FetchIndex()
    private var lastNumber = 0
    /// How many fetches each identity holds.
    private var held: [String: Int] = [:]
    private(set) var rows = 0
    private var counts = (records: 0, candidates: 0, predicates: 0, messages: 0, dropped: 0, broken: 0)

    var count: Int { fetches.count }

    subscript(observation: String) -> LiveFetch? { numbers[observation].flatMap { fetches[$0] } }

    /// How many an identity holds.
    func count(heldBy identity: String) -> Int { held[identity] ?? 0 }

    /// Keeps a result current from now on.
    ///
    /// - Parameter records: what the broker has already seen of what came after the moment of the keys
    /// - Throws: where the records do not fit the keys
    mutating func insert(
        _ observation: String,
        _ fetch: Fetch,
        _ tree: KeyTree,
        at sequence: Int64,
        _ records: [ChangeRecord]
    ) throws(ChangeDetailsProblem) {
        lastNumber += 1
        let live = LiveFetch(observation, fetch, number: lastNumber, tree: tree, at: sequence)
        for record in records { _ = try live.advance(to: record.sequence, fetch.netChanges(of: record)) }
        fetches[lastNumber] = live
        numbers[observation] = lastNumber
        index.insert(fetch, number: lastNumber)
        rows += live.rows
    }

    /// Notes that an identity holds a fetch, or holds it still.
    mutating func hold(_ live: LiveFetch, by identity: String, at time: Int64) {
        if live.holders.updateValue(time, forKey: identity) == nil { held[identity, default: 0] += 1 }
    }

    /// - Returns: whether the identity held it
    mutating func unhold(_ live: LiveFetch, by identity: String) -> Bool {
        guard live.holders.removeValue(forKey: identity) != nil else { return false }
        release(identity)
        return true
    }

    private mutating func release(_ identity: String) {
        let left = (held[identity] ?? 1) - 1
        held[identity] = left > 0 ? left : nil
    }

    mutating func remove(_ observation: String) {
        guard let number = numbers.removeValue(forKey: observation),
            let live = fetches.removeValue(forKey: number)
        else { return }
        index.remove(number: number)
        for identity in live.holders.keys { release(identity) }
        rows -= live.rows
        counts.dropped += 1
    }

    /// Takes a record in: asks the fetches it may affect, and no others.
    mutating func take(_ record: ChangeRecord) -> Outcome {
        guard !fetches.isEmpty else { return Outcome() }
        counts.records += 1
        var changes: [Int: [NetChange]] = [:]
        func note(_ candidates: Set<Int>, _ change: (Fetch) -> NetChange?) {
            counts.candidates += candidates.count
            for number in candidates {
                // What the keys were loaded with is not taken in again.
                guard let live = fetches[number], live.sequence < record.sequence else { continue }
                counts.predicates += 1
                if let change = change(live.fetch) { changes[number, default: []].append(change) }
            }
        }
        for asset in record.assets { note(index.candidates(asset)) { $0.netChange(asset) } }
        for collection in record.collections { note(index.candidates(collection)) { $0.netChange(collection) } }
        for list in record.lists { note(index.candidates(list)) { $0.netChange(list) } }
        var outcome = Outcome()
        for number in changes.keys.sorted() { advance(number, changes[number] ?? [], record.sequence, &outcome) }
        counts.messages += outcome.messages.count
        return outcome
    }

    private mutating func advance(
        _ number: Int,
        _ changes: [NetChange],
        _ sequence: Int64,
        _ outcome: inout Outcome
    ) {
        guard let live = fetches[number] else { return }
        let (before, previous) = (live.rows, live.previous)
        do throws(ChangeDetailsProblem) {
            let details = try live.advance(to: sequence, changes)
            rows += live.rows - before
            guard let details else { return }
            outcome.messages.append(
                Message(topic: FeedTopic.fetch(live.observation), previous: previous, details: details)
            )
        } catch {
            rows += live.rows - before
            counts.broken += 1
            outcome.broken.append(live.observation)
            remove(live.observation)
        }
    }

    /// Gives up those that nobody holds.
    ///
    /// - Parameters:
    ///   - time: leases that were last renewed before this have run out
    ///   - isListened: whether somebody subscribes to a topic, which renews every lease of it
    mutating func expire(before time: Int64, isListened: (String) -> Bool) {
        for live in Array(fetches.values) where !isListened(FeedTopic.fetch(live.observation)) {
            for (identity, renewed) in live.holders where renewed < time { _ = unhold(live, by: identity) }
            if live.holders.isEmpty { remove(live.observation) }
        }
    }

    mutating func removeAll() {
        for observation in Array(numbers.keys) { remove(observation) }
    }

    /// What is listed of fetches at most.
    private static let listed = 100

    func figures(head: Int64) -> JSONObject {
        let list = fetches.values.sorted { $0.number < $1.number }.prefix(Self.listed).map { live -> JSON in
            [
                "observation": .string(live.observation), "rows": JSON(live.rows), "bytes": JSON(live.bytes),
                "holders": JSON(live.holders.count), "lastChange": .int(live.previous),
            ]
        }
        return [
            "count": JSON(fetches.count), "unindexed": JSON(index.unindexedCount), "rows": JSON(rows),
            "bytes": JSON(fetches.values.reduce(0) { $0 + $1.bytes }), "records": JSON(counts.records),
            "candidates": JSON(counts.candidates), "predicatesEvaluated": JSON(counts.predicates),
            "messages": JSON(counts.messages), "dropped": JSON(counts.dropped), "broken": JSON(counts.broken),
            "list": .array(list),
        ]
    }
}
