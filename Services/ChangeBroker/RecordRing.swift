import Contracts
import DequeModule
import Messaging
import PhotoModel

/// The newest records of one history, within a bound of count and bytes: complete above its floor.
struct RecordRing: Sendable {
    private struct Entry {
        let sequence: Int64
        let record: Bytes
        let topics: [String]
        let weight: Int
        /// Encoded bytes of all records up to this one.
        let end: Int
    }

    let maxCount: Int
    let maxBytes: Int
    let library: String
    /// The ring knows everything after this sequence, and nothing at or below it.
    private(set) var floor: Int64
    /// Bytes that the records take, about.
    private(set) var bytes = 0
    /// Encoded bytes of all records so far, those that are gone included.
    private var total = 0

    private var entries: Deque<Entry> = []
    /// The newest record that each topic carried, as far as the ring reaches.
    private var newest: [String: Int64] = [:]

    /// What each topic of a record takes beside its encoding: its name, here and among the newest.
    static let weightPerTopic = 128
    /// How many records one page looks at.
    static let scan = 10_000

    /// An empty ring after a moment.
    init(after token: ChangeToken, maxCount: Int, maxBytes: Int) {
        self.library = token.library
        self.floor = token.sequence
        self.maxCount = maxCount
        self.maxBytes = maxBytes
    }

    var count: Int { entries.count }

    /// The newest sequence.
    var head: Int64 { entries.last?.sequence ?? floor }

    var token: ChangeToken { ChangeToken(library: library, sequence: head) }

    /// The last sequence that a topic carried; where the ring does not know, the floor, which promises less.
    func previous(_ topic: String) -> Int64 { newest[topic] ?? floor }

    /// Takes in the next record; the oldest make room.
    mutating func append(_ record: BrokerRecord, topics: [String]) {
        let weight = record.bytes.count + topics.count * Self.weightPerTopic
        total += record.bytes.count
        entries.append(
            Entry(sequence: record.sequence, record: record.bytes, topics: topics, weight: weight, end: total)
        )
        bytes += weight
        for topic in topics { newest[topic] = record.sequence }
        while entries.count > maxCount || bytes > maxBytes, let oldest = entries.popFirst() {
            floor = oldest.sequence
            bytes -= oldest.weight
            for topic in oldest.topics where newest[topic] == oldest.sequence { newest[topic] = nil }
        }
    }

    /// Records after a sequence.
    struct Page: Sendable {
        /// In their encoded form.
        var records: [Bytes] = []
        /// Up to here the page has looked.
        var sequence: Int64
    }

    /// The records after a sequence, or nil where the ring does not reach: below its floor and above its head.
    ///
    /// - Parameters:
    ///   - filter: which records are wanted
    ///   - maxBytes: encoded bytes; a single larger record is a page of its own
    func page(after sequence: Int64, limit: Int, filter: FeedTopicFilter, maxBytes: Int) -> Page? {
        guard sequence >= floor, sequence <= head else { return nil }
        var page = Page(sequence: sequence)
        var room = maxBytes
        for entry in entries[position(after: sequence)...].prefix(Self.scan) {
            if filter.includes(entry.topics) {
                let size = entry.record.count
                guard page.records.count < limit, page.records.isEmpty || size <= room else { break }
                page.records.append(entry.record)
                room -= size
            }
            page.sequence = entry.sequence
        }
        return page
    }

    /// Encoded bytes of the records after a sequence; nil below the floor, where the catalog has some of them.
    func bytes(after sequence: Int64) -> Int? {
        guard sequence >= floor else { return nil }
        let position = position(after: sequence)
        guard position < entries.endIndex else { return 0 }
        return total - entries[position].end + entries[position].record.count
    }

    private func position(after sequence: Int64) -> Int {
        var (low, high) = (entries.startIndex, entries.endIndex)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle].sequence <= sequence { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
