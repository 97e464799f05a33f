import Basics
import Contracts
import DequeModule
import PhotoModel

/// The newest records of one history, limited in number and bytes; complete after a known sequence.
struct RecordRing: Sendable {
    private struct Entry {
        let sequence: Int64
        let record: Bytes
        let topics: [String]
        let weight: Int
        /// The total of encoded bytes up to and including this record.
        let end: Int
    }

    let maxCount: Int
    let maxBytes: Int
    let library: String
    /// The sequence after which the ring is complete; it has no record at or below it.
    private(set) var oldestComplete: Int64
    /// The approximate memory of the records, in bytes.
    private(set) var bytes = 0
    /// The encoded bytes of all records so far, including removed ones.
    private var total = 0

    private var entries: Deque<Entry> = []
    /// The newest sequence that each topic carried, as far back as the ring reaches.
    private var newest: [String: Int64] = [:]

    /// The bytes that each topic of a record adds to its encoding: its name, here and in `newest`.
    static let weightPerTopic = 128
    /// The maximum number of records that one page examines.
    static let maxExamined = 10_000

    /// Creates an empty ring that begins after a token.
    init(after token: ChangeToken, maxCount: Int, maxBytes: Int) {
        self.library = token.library
        self.oldestComplete = token.sequence
        self.maxCount = maxCount
        self.maxBytes = maxBytes
    }

    var count: Int { entries.count }

    /// The newest sequence.
    var head: Int64 { entries.last?.sequence ?? oldestComplete }

    var token: ChangeToken { ChangeToken(library: library, sequence: head) }

    /// Returns the last sequence that a topic carried. If it is not in the ring, returns the sequence after which the
    /// ring is complete: the topic carried no later one.
    func previous(_ topic: String) -> Int64 { newest[topic] ?? oldestComplete }

    /// Appends the next record, and removes the oldest ones beyond the limits.
    mutating func append(_ record: BrokerRecord, topics: [String]) {
        let weight = record.bytes.count + topics.count * Self.weightPerTopic
        total += record.bytes.count
        entries.append(
            Entry(sequence: record.sequence, record: record.bytes, topics: topics, weight: weight, end: total)
        )
        bytes += weight
        for topic in topics { newest[topic] = record.sequence }
        while entries.count > maxCount || bytes > maxBytes, let oldest = entries.popFirst() {
            oldestComplete = oldest.sequence
            bytes -= oldest.weight
            for topic in oldest.topics where newest[topic] == oldest.sequence { newest[topic] = nil }
        }
    }

    /// Records after a sequence.
    struct Page: Sendable {
        /// The encoded records.
        var records: [Bytes] = []
        /// The last sequence that the page examined.
        var sequence: Int64
    }

    /// Returns the records after a sequence, or nil if the ring is not complete after it or the sequence is above the
    /// head.
    ///
    /// - Parameters:
    ///   - filter: selects the records
    ///   - maxBytes: encoded bytes; a single larger record is a page of its own
    func page(after sequence: Int64, limit: Int, filter: FeedTopicFilter, maxBytes: Int) -> Page? {
        guard sequence >= oldestComplete, sequence <= head else { return nil }
        var page = Page(sequence: sequence)
        var remainingBytes = maxBytes
        for entry in entries[position(after: sequence)...].prefix(Self.maxExamined) {
            if filter.includes(entry.topics) {
                let size = entry.record.count
                guard page.records.count < limit, page.records.isEmpty || size <= remainingBytes else { break }
                page.records.append(entry.record)
                remainingBytes -= size
            }
            page.sequence = entry.sequence
        }
        return page
    }

    /// Returns the position after skipping the records that do not concern a reader.
    ///
    /// - Parameter concerns: returns true if a record with these topics concerns the reader
    /// - Returns: the sequence before the first record that concerns the reader, and true if there is such a record;
    ///   nil if the ring is not complete after the sequence
    func skippingIrrelevantRecords(
        after sequence: Int64,
        _ concerns: ([String]) -> Bool
    ) -> (sequence: Int64, foundRelevant: Bool)? {
        guard sequence >= oldestComplete, sequence <= head else { return nil }
        var last = sequence
        for entry in entries[position(after: sequence)...].prefix(Self.maxExamined) {
            if concerns(entry.topics) { return (last, true) }
            last = entry.sequence
        }
        return (last, false)
    }

    /// Returns the encoded bytes of the records after a sequence; nil if the ring is not complete after it.
    func bytes(after sequence: Int64) -> Int? {
        guard sequence >= oldestComplete else { return nil }
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
