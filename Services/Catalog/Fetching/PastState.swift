import Contracts
import JSONValue
import Messaging
import PhotoModel

/// The library at an earlier moment: what is stored now, with the records after that moment undone.
struct PastState {
    let reader: LibraryReader
    let moment: Int64
    let head: LibraryHead

    /// Bytes of records that one result may have to undo; above it the client fetches again.
    static let maxBytes = 256 << 20

    // MARK: One asset

    /// The asset as it was, where a later transaction touched it; nil where none did.
    func earlier(_ id: ObjectID) throws -> Asset?? {
        guard let bytes = try firstRecord(of: FeedTopic.object(id)) else { return nil }
        return .some(try change(id, in: bytes))
    }

    private func change(_ id: ObjectID, in bytes: [UInt8]) throws -> Asset? {
        // Only this asset's part is read: a record may hold a thousand.
        for change in try JSON(parsing: bytes)["assets"]?.arrayValue ?? [] {
            let name = change["before"]?["id"] ?? change["after"]?["id"]
            guard name?.stringValue == id.text else { continue }
            guard let before = change["before"], !before.isNull else { return nil }
            return try Asset(json: before)
        }
        return nil
    }

    private func firstRecord(of topic: String) throws -> [UInt8]? {
        guard
            let sequence = try reader.history.firstSequence(of: topic, after: moment, through: head.sequence)
        else { return nil }
        return try reader.history.record(sequence)
    }

    /// Whether a collection was there.
    func hadCollection(_ id: ObjectID) throws -> Bool {
        guard let bytes = try firstRecord(of: FeedTopic.object(id)) else {
            return try reader.collections.rowNumber(of: id) != nil
        }
        let record = try ChangeRecord(json: JSON(parsing: bytes))
        return record.collections.first { $0.id == id }?.before != nil
    }

    // MARK: A whole result

    /// The result of a fetch as it was, without offset and limit.
    func result(of fetch: Fetch) throws -> [Int64] {
        let touched = try touchedSince()
        var array = try FetchStore(database: reader.database).assetRows(fetch, .init()) ?? []
        var rows: [ObjectID: Int64] = [:]
        for id in touched.keys {
            rows[id] = try reader.assets.rowNumber(of: id) ?? reader.assets.departedRowNumber(of: id)
        }
        let moved = Set(rows.values)
        array.removeAll(where: moved.contains)
        // What is left was not touched: it stands in the same order then as now.
        var loaded: [Int64: Asset] = [:]
        let before = touched.values.compactMap { $0 }.filter(fetch.includes).sorted(by: fetch.areInIncreasingOrder)
        for (inserted, asset) in before.enumerated() {
            var (low, high) = (0, array.count)
            while low < high {
                let middle = (low + high) / 2
                let other = try standing(array[middle], &loaded)
                if fetch.areInIncreasingOrder(other, asset) { low = middle + 1 } else { high = middle }
            }
            guard let row = rows[asset.id] else { throw DamagedRow("\(asset.id) has no row") }
            array.insert(row, at: low)
            loaded[row] = asset
            if inserted % 1000 == 999 { try Task.checkCancellation() }
        }
        return array
    }

    private func standing(_ row: Int64, _ loaded: inout [Int64: Asset]) throws -> Asset {
        if let asset = loaded[row] { return asset }
        guard let asset = try reader.assets.assets([row])[row] else { throw DamagedRow("row \(row) is gone") }
        loaded[row] = asset
        return asset
    }

    /// Every asset that was touched after the moment, as it was then; nil where it was not there yet.
    private func touchedSince() throws -> [ObjectID: Asset?] {
        var touched: [ObjectID: Asset?] = [:]
        var position = moment
        var total = 0
        while position < head.sequence {
            try Task.checkCancellation()
            let page = try reader.history.records(
                after: position,
                through: head.sequence,
                count: 1000,
                bytes: 4 << 20
            ).records
            guard let first = page.first, let last = page.last, first.sequence == position + 1 else {
                throw CatalogRefusals.tokenExpired(ChangeToken(library: head.library, sequence: moment), head)
            }
            for record in page {
                total += record.bytes.count
                guard total <= Self.maxBytes else {
                    throw CatalogRefusals.tokenExpired(ChangeToken(library: head.library, sequence: moment), head)
                }
                for change in try ChangeRecord(json: JSON(parsing: record.bytes)).assets where touched[change.id] == nil
                {
                    touched[change.id] = .some(change.before)
                }
            }
            position = last.sequence
        }
        return touched
    }
}
