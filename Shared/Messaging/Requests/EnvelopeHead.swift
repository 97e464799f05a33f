import Basics
import JSONValue

/// The id and the method of a large request, read from its first bytes without parsing all of it.
struct EnvelopeHead {
    private(set) var id: JSON?
    /// Nil if it does not precede `params` within the first ``length`` bytes.
    private(set) var method: String?

    /// The number of bytes that are read: enough for an id and a method of maximal length, escaped.
    static let length = 4096

    init(_ frame: Bytes) {
        let head = Bytes(frame.prefix(Self.length))
        // Invalid JSON is ignored here: the parser reports it.
        try? JSONCursor.reading(head) { cursor throws(JSONError) in
            try cursor.enterObject()
            while let name = try cursor.nextMember() {
                switch name {
                case "id": id = Envelope.validID(try JSON(parsing: head[try cursor.skip()]))
                case "method": method = try cursor.string()
                case "params": return
                default: try cursor.skip()
                }
            }
        }
    }
}
