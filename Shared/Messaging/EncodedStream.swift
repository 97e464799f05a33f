import JSONValue

/// A notification whose params were not read.
public struct EncodedNotification: Sendable, Equatable {
    public let method: String
    /// The whole JSON frame.
    public let frame: Bytes
    /// Where in it the params stand, an object.
    public let range: Range<Int>

    /// - Parameter params: an object
    init(_ method: String, _ params: JSON) {
        self.init(method: method, frame: params.bytes, range: 0..<params.bytes.count)
    }

    private init(method: String, frame: Bytes, range: Range<Int>) {
        self.method = method
        self.frame = frame
        self.range = range
    }

    /// The params, read.
    func params() throws(RPCError) -> JSON {
        do throws(JSONError) {
            return try JSON(parsing: frame[range])
        } catch {
            throw .internalError("a notification cannot be read: \(error)")
        }
    }

    /// What a frame notifies of, and the request that it is about; nil for one that is no such notification.
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

/// What a request that streams brings, its notifications as they came.
public enum EncodedElement: Sendable, Equatable {
    case notification(EncodedNotification)
    /// The response, the last element.
    case reply(Reply)
}

/// A request whose notifications are passed on without being read. Each iteration opens a request of its own.
public struct EncodedStream: AsyncSequence, Sendable {
    public typealias Element = EncodedElement
    public typealias Failure = RPCError

    let stream: RequestStream

    /// Sends the request.
    public func makeAsyncIterator() -> Iterator { Iterator(inner: stream.makeAsyncIterator()) }

    /// One request under way.
    public struct Iterator: AsyncIteratorProtocol {
        var inner: RequestStream.Iterator

        /// The next notification or the reply; `nil` after the reply.
        ///
        /// - Throws: the request's error, `connection_lost`, or `user_cancelled` when the task is cancelled.
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(RPCError) -> EncodedElement? {
            try await inner.nextEncoded()
        }
    }
}
