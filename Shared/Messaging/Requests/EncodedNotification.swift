public import Basics
import JSONValue

/// A notification whose params have not been parsed.
public struct EncodedNotification: Sendable, Equatable {
    /// The name of the notification, for example `progress`.
    public let method: String
    /// The whole JSON frame.
    public let frame: Bytes
    /// The byte range of the params, a JSON object, in ``frame``.
    public let range: Range<Int>

    /// - Parameter params: an object.
    init(_ method: String, _ params: JSON) {
        self.init(method: method, frame: params.bytes, range: 0..<params.bytes.count)
    }

    private init(method: String, frame: Bytes, range: Range<Int>) {
        self.method = method
        self.frame = frame
        self.range = range
    }

    /// Parses the params.
    func params() throws(RPCError) -> JSON {
        do throws(JSONError) {
            return try JSON(parsing: frame[range])
        } catch {
            throw .internalError("a notification cannot be read: \(error)")
        }
    }

    /// Returns the notification in a frame and the id of the request it belongs to; nil if the frame is not such a
    /// notification.
    static func outline(of frame: Bytes) -> (id: Int64, notification: EncodedNotification)? {
        var (method, id, range): (String?, Int64?, Range<Int>?)
        do throws(JSONError) {
            try JSONCursor.reading(frame) { (cursor) throws(JSONError) in
                try cursor.enterObject()
                while let name = try cursor.nextMember() {
                    switch name {
                    case "method": method = try cursor.string()
                    case "params":
                        guard try cursor.peek() == UInt8(ascii: "{") else { return }
                        let start = cursor.offset
                        try cursor.enterObject()
                        while let name = try cursor.nextMember() {
                            if name == "id" { id = try cursor.integer() } else { try cursor.skip() }
                        }
                        range = start..<cursor.offset
                    default: try cursor.skip()
                    }
                }
            }
        } catch {
            return nil
        }
        guard let method, let id, let range else { return nil }
        return (id, EncodedNotification(method: method, frame: frame, range: range))
    }
}
