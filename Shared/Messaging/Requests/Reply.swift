public import Basics
public import JSONValue

/// The result of a request.
public struct Reply: Sendable, Equatable {
    /// The JSON result; null if the result was given in encoded form.
    public var result: JSON
    /// The frames after the JSON frame, in order.
    public var attachments: [Bytes]

    /// The result in encoded form, if it was encoded before; `result` is null then.
    private(set) var encoded: [Bytes]?

    /// Makes a reply from a JSON value.
    public init(_ result: JSON, attachments: [Bytes] = []) {
        self.result = result
        self.attachments = attachments
    }

    /// Makes a reply whose result is already encoded: the text of one JSON value.
    public init(encoded result: Bytes) {
        self.init(encoded: [result])
    }

    /// Makes a reply whose encoded result comes in pieces; they are joined once, in the message.
    public init(encoded pieces: [Bytes]) {
        self.init(.null)
        encoded = pieces
    }

    func frame(id: JSON) -> Bytes {
        encoded.map { RPCMessageWriter.result(id: id, encoded: $0) } ?? RPCMessageWriter.result(id: id, result)
    }
}

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
