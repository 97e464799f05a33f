public import Basics
import JSONValue

/// A reply whose result has not been parsed.
public struct EncodedReply: Sendable, Equatable {
    /// The whole JSON frame.
    public let frame: Bytes
    /// The byte range of the result, one JSON value, in ``frame``.
    public let range: Range<Int>

    /// Returns the reply in a frame and the id of its request; nil if the frame is not a response with a result.
    static func outline(of frame: Bytes) -> (id: Int64, reply: EncodedReply)? {
        var (id, range): (Int64?, Range<Int>?)
        do throws(JSONError) {
            try JSONCursor.reading(frame) { (cursor) throws(JSONError) in
                try cursor.enterObject()
                while let name = try cursor.nextMember() {
                    switch name {
                    case "id": id = try cursor.integer()
                    case "result": range = try cursor.skip()
                    default: try cursor.skip()
                    }
                }
            }
        } catch {
            return nil
        }
        guard let id, let range else { return nil }
        return (id, EncodedReply(frame: frame, range: range))
    }
}
