import Contracts
import JSONValue
import PhotoModel

/// Encodes the JSON frames of the live feed.
enum LiveFrames {
    /// Returns the frame of topic `changes`: the whole record with `previous` and its `token`. Above the limit it has
    /// only the identifiers and `truncated`.
    static func changes(_ record: BrokerRecord, previous: Int64, limit: Int) -> [UInt8] {
        let ending = Array(",\"previous\":\(previous),\"token\":\"\(record.token)\"}".utf8)
        let size = record.bytes.count - 1 + ending.count
        guard size > limit else {
            var frame: [UInt8] = []
            frame.reserveCapacity(size + 1)
            frame += record.bytes
            // The added members replace the closing brace.
            frame.removeLast()
            frame.append(contentsOf: ending)
            return frame
        }
        var message = start(record, previous: previous)
        message["truncated"] = true
        let bare = message
        for (member, ids) in record.identifiers { message[member] = JSON(ids) }
        let frame = JSON.object(message).bytes
        return frame.count <= limit ? frame : JSON.object(bare).bytes
    }

    /// Returns the frame of an entity's own topic: its `change` and the details, or `truncated` above the limit.
    static func part(_ part: BrokerRecord.Part, of record: BrokerRecord, previous: Int64, limit: Int) -> [UInt8] {
        var message = start(record, previous: previous)
        let bare = message
        let change = record.change(part)
        message["change"] = change
        for (name, value) in BrokerRecord.details(of: change).members { message[name] = value }
        let frame = JSON.object(message).bytes
        guard frame.count > limit else { return frame }
        message = bare
        message["truncated"] = true
        return JSON.object(message).bytes
    }

    /// Returns the frame of an observed fetch: the transaction's effect on the result, or `truncated` above the limit.
    static func fetch(_ message: LiveFetches.Message, of record: BrokerRecord, limit: Int) -> [UInt8] {
        var frame = start(record, previous: message.previous)
        let bare = frame
        frame["details"] = message.details.json
        if message.objectWasDeleted { frame["objectWasDeleted"] = true }
        let bytes = JSON.object(frame).bytes
        guard bytes.count > limit else { return bytes }
        frame = bare
        frame["truncated"] = true
        if message.objectWasDeleted { frame["objectWasDeleted"] = true }
        return JSON.object(frame).bytes
    }

    static func head(_ head: FeedHead) -> [UInt8] { head.json.bytes }

    private static func start(_ record: BrokerRecord, previous: Int64) -> JSONObject {
        var message = record.header
        message["previous"] = .int(previous)
        message["token"] = .string(record.token.description)
        return message
    }
}
