public import PhotoModel

/// A ``ChangePage`` whose records stay encoded, so that they are forwarded without being parsed.
public struct EncodedPage: Sendable {
    public var records: [[UInt8]]
    /// The token at which the next page begins.
    public var token: ChangeToken
    public var oldest: ChangeToken
    public var head: ChangeToken

    public init(records: [[UInt8]], token: ChangeToken, oldest: ChangeToken, head: ChangeToken) {
        self.records = records
        self.token = token
        self.oldest = oldest
        self.head = head
    }

    public var hasMore: Bool { token.sequence < head.sequence }

    /// The JSON text of the ``ChangePage``, in pieces.
    public var encoded: [[UInt8]] {
        Self.pieces(records, ending: "],\"token\":\"\(token)\",\"oldest\":\"\(oldest)\",\"head\":\"\(head)\"}")
    }

    /// Returns the JSON text of the params of `changes.records` and `feed.records`, without the request's `id`, in
    /// pieces.
    public static func notification(_ records: [[UInt8]], token: ChangeToken) -> [[UInt8]] {
        pieces(records, ending: "],\"token\":\"\(token)\"}")
    }

    private static func pieces(_ records: [[UInt8]], ending: String) -> [[UInt8]] {
        var pieces = [Array("{\"records\":[".utf8)]
        pieces.reserveCapacity(2 * records.count + 2)
        for (index, record) in records.enumerated() {
            if index > 0 { pieces.append(comma) }
            pieces.append(record)
        }
        pieces.append(Array(ending.utf8))
        return pieces
    }

    private static let comma = Array(",".utf8)
}
