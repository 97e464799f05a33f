import JSONValue
import PhotoModel

/// A cache of the records that one read of the database undoes object by object. A record may have a thousand objects
/// and is decoded once for all of them.
///
/// It is used only on the thread of the read.
final class DecodedRecords {
    /// The change of one object in a transaction.
    private struct Change {
        /// The object before the transaction; nil if the transaction created it.
        let before: JSON?
    }

    /// The maximum size of the records that stay decoded, in bytes; others are decoded again when they are needed.
    static let maxBytes = 32 << 20

    private let history: HistoryStore
    private var records: [Int64: [String: Change]] = [:]
    private var bytes = 0
    /// The number of times that a record was decoded.
    private(set) var decodedCount = 0

    init(_ history: HistoryStore) { self.history = history }

    /// Returns an object as it was before the transaction with a sequence; nil if the transaction created it.
    func before(_ id: ObjectID, in sequence: Int64) throws -> JSON? {
        let record = try records[sequence] ?? decode(sequence)
        guard let change = record[id.text] else { throw DamagedRow("record \(sequence) does not name \(id)") }
        return change.before
    }

    private func decode(_ sequence: Int64) throws -> [String: Change] {
        try history.database.checkCancellation()
        guard let encoded = try history.record(sequence) else { throw DamagedRow("record \(sequence) is missing") }
        let json = try JSON(parsing: encoded)
        var record: [String: Change] = [:]
        for member in ["assets", "collections", "lists"] {
            for change in json[member]?.arrayValue ?? [] {
                let before = change["before"].flatMap { $0.isNull ? nil : $0 }
                guard let id = (before ?? change["after"])?["id"]?.stringValue else { continue }
                record[id] = Change(before: before)
            }
        }
        if bytes + encoded.count > Self.maxBytes { (records, bytes) = ([:], 0) }
        records[sequence] = record
        decodedCount += 1
        bytes += encoded.count
        return record
    }
}
