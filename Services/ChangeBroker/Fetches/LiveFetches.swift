import Contracts
import JSONValue
import PhotoModel

/// All live fetches of one history, and the effect of a record on them.
///
/// State of the actor ``RecordFeed``.
struct LiveFetches {
    /// The message published for one fetch.
    struct Message {
        let topic: String
        let previous: Int64
        let details: ChangeDetails
    }

    /// The effects of one transaction.
    struct Outcome {
        var messages: [Message] = []
        /// The fetches that the transaction does not fit; they were removed.
        var broken: [String] = []
        /// Fetches that were given up because all together are too large.
        var tooLarge: [String] = []
    }

    private var fetches: [Int: LiveFetch] = [:]
    /// Fetches whose keys have not arrived yet.
    private var loading: [Int: LoadingFetch] = [:]
    private var numbers: [String: Int] = [:]
    private var index = FetchIndex()
    private var lastNumber = 0
    /// The number of fetches that each identity observes.
    private var held: [String: Int] = [:]
    private(set) var rows = 0
    /// Memory for all results, and for all logs, about.
    private(set) var resultBytes = 0
    private(set) var logBytes = 0
    private let maxBytes: Int
    private let maxLogBytes: Int
    private var counts = (
        records: 0, candidates: 0, predicates: 0, messages: 0, dropped: 0, broken: 0, shortened: 0
    )

    /// - Parameters:
    ///   - maxBytes: memory for all results and logs
    ///   - maxLogBytes: memory for the logs alone
    init(maxBytes: Int = .max, maxLogBytes: Int = .max) {
        self.maxBytes = maxBytes
        self.maxLogBytes = maxLogBytes
    }

    var count: Int { fetches.count }

    /// True if no record matters to any fetch.
    var isEmpty: Bool { fetches.isEmpty && loading.isEmpty }

    subscript(observation: String) -> LiveFetch? { numbers[observation].flatMap { fetches[$0] } }

    /// Returns the number of fetches that an identity observes.
    func count(heldBy identity: String) -> Int { held[identity] ?? 0 }

    // MARK: Loading

    /// Begins to collect the changes of a fetch whose keys are about to be asked for.
    ///
    /// - Parameter head: the newest sequence that the broker has; the keys are at least as new
    /// - Returns: the number of the fetch, for ``finishLoading(_:_:at:)`` or ``cancelLoading(_:)``
    mutating func beginLoading(_ observation: String, _ fetch: Fetch, after head: Int64) -> Int {
        lastNumber += 1
        loading[lastNumber] = LoadingFetch(observation: observation, fetch: fetch, oldestComplete: head)
        index.insert(fetch, number: lastNumber)
        return lastNumber
    }

    /// Forgets a fetch that is being loaded; does nothing if its loading has finished.
    mutating func cancelLoading(_ number: Int) {
        guard let pending = loading.removeValue(forKey: number) else { return }
        index.remove(number: number)
        logBytes -= pending.bytes
    }

    /// Adds a loaded result, which is kept current from now on.
    ///
    /// - Returns: false if the changes since the keys are not known, so that the keys have to be loaded again
    /// - Throws: an error if these changes do not fit the keys
    mutating func finishLoading(
        _ number: Int,
        _ tree: KeyTree,
        at sequence: Int64
    ) throws(ChangeDetailsError) -> Bool {
        guard let pending = loading[number], pending.isComplete(after: sequence) else { return false }
        let live = LiveFetch(pending.observation, pending.fetch, number: number, tree: tree, at: sequence)
        for entry in pending.log where entry.sequence > sequence {
            _ = try live.advance(to: entry.sequence, entry.changes)
        }
        loading[number] = nil
        logBytes -= pending.bytes
        fetches[number] = live
        numbers[live.observation] = number
        count(live, 1)
        var outcome = Outcome()
        bound(&outcome)
        return true
    }

    // MARK: Observers

    /// Notes that an identity observes a fetch, or renews its lease.
    mutating func addHolder(_ live: LiveFetch, by identity: String, at time: Int64) {
        if live.holders.updateValue(time, forKey: identity) == nil { held[identity, default: 0] += 1 }
    }

    /// - Returns: whether the identity observed the fetch
    mutating func removeHolder(_ live: LiveFetch, by identity: String) -> Bool {
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
        count(live, -1)
        counts.dropped += 1
    }

    // MARK: Records

    /// A record on its way over the fetches, done in steps so that nobody waits for all of it.
    struct Work {
        let record: ChangeRecord
        /// The next entity to look up, in the order assets, collections, lists.
        fileprivate var entity = 0
        /// By the number of a fetch the entities of the record that may belong to it.
        fileprivate var touched: [Int: [Int32]] = [:]
        /// The fetches that are left, the next one last; nil: not all entities have been looked up.
        fileprivate var left: [Int]?

        var isDone: Bool { left?.isEmpty == true }
    }

    /// Begins to carry the fetches over a record.
    mutating func work(on record: ChangeRecord) -> Work {
        counts.records += 1
        return Work(record: record)
    }

    /// Looks up the fetches that one entity may affect, or carries one fetch over the record.
    mutating func step(_ work: inout Work) -> Outcome {
        var outcome = Outcome()
        if let number = work.left?.popLast() {
            carry(number, work, &outcome)
        } else if work.left == nil {
            lookUp(&work)
        }
        return outcome
    }

    private mutating func lookUp(_ work: inout Work) {
        let record = work.record
        var position = work.entity
        work.entity += 1
        let candidates: Set<Int>
        if position < record.assets.count {
            candidates = index.candidates(record.assets[position])
        } else {
            position -= record.assets.count
            if position < record.collections.count {
                candidates = index.candidates(record.collections[position])
            } else {
                position -= record.collections.count
                guard position < record.lists.count else { return work.left = work.touched.keys.sorted(by: >) }
                candidates = index.candidates(record.lists[position])
            }
        }
        counts.candidates += candidates.count
        for number in candidates {
            // The records that the keys were loaded with are not applied again.
            guard let known = fetches[number]?.sequence ?? loading[number]?.oldestComplete, known < record.sequence
            else { continue }
            counts.predicates += 1
            work.touched[number, default: []].append(Int32(work.entity - 1))
        }
    }

    private mutating func carry(_ number: Int, _ work: Work, _ outcome: inout Outcome) {
        // It may have been given up since its entities were looked up.
        guard let fetch = fetches[number]?.fetch ?? loading[number]?.fetch else { return }
        let record = work.record
        let changes = (work.touched[number] ?? []).compactMap { entity -> NetChange? in
            var position = Int(entity)
            if position < record.assets.count { return fetch.netChange(record.assets[position]) }
            position -= record.assets.count
            if position < record.collections.count { return fetch.netChange(record.collections[position]) }
            return fetch.netChange(record.lists[position - record.collections.count])
        }
        guard !changes.isEmpty else { return }
        if let live = fetches[number] {
            advance(live, changes, record.sequence, &outcome)
        } else if let added = loading[number]?.append(changes, at: record.sequence) {
            logBytes += added
        }
        bound(&outcome)
    }

    private mutating func advance(
        _ live: LiveFetch,
        _ changes: [NetChange],
        _ sequence: Int64,
        _ outcome: inout Outcome
    ) {
        let previous = live.previous
        count(live, -1)
        do throws(ChangeDetailsError) {
            let details = try live.advance(to: sequence, changes)
            count(live, 1)
            guard let details else { return }
            counts.messages += 1
            outcome.messages.append(
                Message(topic: FeedTopic.fetch(live.observation), previous: previous, details: details)
            )
        } catch {
            count(live, 1)
            counts.broken += 1
            outcome.broken.append(live.observation)
            remove(live.observation)
        }
    }

    // MARK: Memory

    private mutating func count(_ live: LiveFetch, _ sign: Int) {
        rows += sign * live.rows
        resultBytes += sign * live.resultBytes
        logBytes += sign * live.logBytes
    }

    /// Keeps to the bounds: the longest logs are shortened, and if the results alone are too large, the largest goes.
    private mutating func bound(_ outcome: inout Outcome) {
        while resultBytes > maxBytes, let largest = fetches.values.max(by: { $0.resultBytes < $1.resultBytes }) {
            outcome.tooLarge.append(largest.observation)
            remove(largest.observation)
        }
        let capacity = min(maxLogBytes, maxBytes - resultBytes)
        guard logBytes > capacity else { return }
        for number in loading.keys { logBytes -= loading[number]?.giveUp() ?? 0 }
        shortenLogs(to: capacity / 8 * 7)
    }

    /// Shortens the longest logs to one length, so that all logs together take no more than so many bytes.
    private mutating func shortenLogs(to bytes: Int) {
        counts.shortened += 1
        let sizes = fetches.values.map(\.logBytes).sorted()
        var (left, longest) = (bytes, Int.max)
        for (position, size) in sizes.enumerated() {
            let share = left / (sizes.count - position)
            if size > share {
                longest = share
                break
            }
            left -= size
        }
        for live in fetches.values where live.logBytes > longest {
            logBytes -= live.logBytes
            live.shortenLog(to: longest)
            logBytes += live.logBytes
        }
    }

    /// Gives up those that nobody holds.
    ///
    /// - Parameters:
    ///   - time: leases that were last renewed before this time have expired
    ///   - isListened: returns whether a topic has a subscriber, which renews all leases of its fetch
    mutating func expire(before time: Int64, isListened: (String) -> Bool) {
        for live in Array(fetches.values) where !isListened(FeedTopic.fetch(live.observation)) {
            for (identity, renewed) in live.holders where renewed < time { _ = removeHolder(live, by: identity) }
            if live.holders.isEmpty { remove(live.observation) }
        }
    }

    mutating func removeAll() {
        for observation in Array(numbers.keys) { remove(observation) }
        for number in Array(loading.keys) { cancelLoading(number) }
    }

    /// The maximum number of fetches listed.
    private static let listed = 100

    /// - Parameter behind: records that they have yet to be carried over
    func metrics(behind: Int64) -> JSONObject {
        let list = fetches.values.sorted { $0.number < $1.number }.prefix(Self.listed).map { live -> JSON in
            [
                "observation": .string(live.observation), "rows": JSON(live.rows), "bytes": JSON(live.bytes),
                "holders": JSON(live.holders.count), "lastChange": .int(live.previous),
            ]
        }
        return [
            "count": JSON(fetches.count), "unindexed": JSON(index.unindexedCount), "rows": JSON(rows),
            "bytes": JSON(resultBytes + logBytes), "logBytes": JSON(logBytes), "maxBytes": JSON(maxBytes),
            "maxLogBytes": JSON(maxLogBytes), "logsShortened": JSON(counts.shortened), "records": JSON(counts.records),
            "candidates": JSON(counts.candidates), "predicatesEvaluated": JSON(counts.predicates),
            "messages": JSON(counts.messages), "dropped": JSON(counts.dropped), "broken": JSON(counts.broken),
            "behind": .int(behind), "list": .array(list),
        ]
    }
}
