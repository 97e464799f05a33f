public import JSONValue
public import PhotoModel

/// A ``ChangePage`` whose records stay encoded, so that they are forwarded without being parsed.
public struct EncodedChangePage: Sendable {
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

    /// Reads the text of a ``ChangePage`` without parsing its records.
    ///
    /// - Parameters:
    ///   - frame: bytes that contain the text
    ///   - range: the range of the text in them
    /// - Throws: a description of the difference from ``ChangePage/table``
    public init(parsing frame: [UInt8], at range: Range<Int>) throws(JSONProblem) {
        var records: [[UInt8]]?
        var tokens: [String: String] = [:]
        do throws(JSONError) {
            try JSONCursor.reading(frame) { (cursor) throws(JSONError) in
                try cursor.move(to: range.lowerBound)
                try cursor.enterObject()
                while let name = try cursor.nextMember() {
                    switch (name, try cursor.peek()) {
                    case ("records", UInt8(ascii: "[")):
                        try cursor.enterArray()
                        var found: [[UInt8]] = []
                        while try cursor.nextElement() { found.append(Array(frame[try cursor.skip()])) }
                        records = found
                    case ("token", UInt8(ascii: "\"")), ("oldest", UInt8(ascii: "\"")), ("head", UInt8(ascii: "\"")):
                        tokens[name] = try cursor.string()
                    default: try cursor.skip()
                    }
                }
            }
        } catch {
            throw JSONProblem("is not JSON: \(error)")
        }
        func token(_ name: String) throws(JSONProblem) -> ChangeToken {
            guard let token = tokens[name].flatMap(ChangeToken.init) else {
                throw JSONProblem("is not a token", path: [name])
            }
            return token
        }
        guard let records else { throw JSONProblem("is not a list", path: ["records"]) }
        self.init(records: records, token: try token("token"), oldest: try token("oldest"), head: try token("head"))
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
