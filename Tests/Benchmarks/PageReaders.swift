import CZeroMQ
import Foundation
import PhotoModel

/// A reader of a history in pages that does not parse the records. Used by one thread at a time.
protocol PageReader: AnyObject {
    /// Requests the next page, unless the server sends the pages without further requests.
    func requestPage() throws
    /// Waits for a page.
    ///
    /// - Returns: the number of its records
    func receive() throws -> Int
}

/// Lets each of the readers read `records` records, and returns deliveries per second.
func replayRate(_ readers: [any PageReader], records: Int) throws -> Double {
    var remaining = Array(repeating: records, count: readers.count)
    var total = 0
    let start = Clocks.microseconds()
    for reader in readers { try reader.requestPage() }
    while remaining.contains(where: { $0 > 0 }) {
        for (index, reader) in readers.enumerated() where remaining[index] > 0 {
            let count = try reader.receive()
            total += count
            remaining[index] -= count
            if remaining[index] > 0 { try reader.requestPage() }
        }
    }
    return Double(total) / (Double(Clocks.microseconds() - start) / 1e6)
}

/// A reader that pages through `feed.since`.
final class SinceReader: PageReader {
    private let socket: BareSocket
    private var token: String
    /// The size of the newest page, in bytes.
    private(set) var bytes = 0

    init(_ address: String, _ token: String, _ context: BareContext) throws {
        socket = try BareSocket(ZMQ_DEALER, context)
        try socket.connect(address)
        self.token = token
    }

    func requestPage() throws {
        try socket.send(
            #"{"jsonrpc":"2.0","id":1,"method":"feed.since","params":{"limit":1000,"token":"\#(token)"}}"#
        )
    }

    func receive() throws -> Int {
        let found = try socket.receive { frame in
            bytes = frame.count
            return try PageTail.token(frame)
        }
        guard let next = found?.value else { throw BenchmarkError("no page arrived") }
        defer { token = next }
        return try PageTail.recordCount(from: token, to: next)
    }
}

/// A reader that requests `feed.follow` once, with credit for all pages that it reads.
final class FollowReader: PageReader {
    private let socket: BareSocket
    private var token: String
    private var isFollowing = false

    init(_ address: String, _ token: String, _ context: BareContext) throws {
        socket = try BareSocket(ZMQ_DEALER, context)
        try socket.connect(address)
        self.token = token
    }

    func requestPage() throws {
        guard !isFollowing else { return }
        isFollowing = true
        try socket.send(
            #"{"jsonrpc":"2.0","id":1,"method":"feed.follow","params":{"token":"\#(token)","credit":\#(64 << 20)}}"#
        )
    }

    func receive() throws -> Int {
        guard let next = try socket.receive({ try PageTail.token($0) })?.value else {
            throw BenchmarkError("no page arrived")
        }
        defer { token = next }
        return try PageTail.recordCount(from: token, to: next)
    }
}

/// The token at the end of a page, after its records.
private enum PageTail {
    static func token(_ frame: UnsafeRawBufferPointer) throws -> String {
        let tail = String(decoding: frame.suffix(400), as: UTF8.self)
        // The tokens of the oldest record and of the head follow it, under other member names.
        guard let start = tail.range(of: #""token":""#, options: .backwards),
            let token = tail[start.upperBound...].split(separator: "\"").first
        else { throw BenchmarkError("no page: \(String(decoding: frame.prefix(300), as: UTF8.self))") }
        return String(token)
    }

    static func recordCount(from token: String, to next: String) throws -> Int {
        guard let old = ChangeToken(token)?.sequence, let new = ChangeToken(next)?.sequence else {
            throw BenchmarkError("no token: \(next)")
        }
        return Int(new - old)
    }
}

/// A reader that gets pages of the same size from a bare ROUTER.
final class BareReader: PageReader {
    private let socket: BareSocket
    private let records: Int

    init(_ address: String, records: Int, _ context: BareContext) throws {
        socket = try BareSocket(ZMQ_DEALER, context)
        try socket.connect(address)
        self.records = records
    }

    func requestPage() throws { try socket.send("x") }

    func receive() throws -> Int {
        _ = try socket.receive { _ in }
        return records
    }
}

/// A reader that pages through a Redis stream by `XREAD`.
final class StreamReader: PageReader {
    static let stream = "records"
    private let socket: WireSocket
    private let count: Int
    private var last = "0"

    init(_ endpoint: String, count: Int) throws {
        socket = try WireSocket(.redis, endpoint)
        self.count = count
    }

    func requestPage() throws { try socket.sendCommand("XREAD", "COUNT", "\(count)", "STREAMS", Self.stream, last) }

    func receive() throws -> Int {
        // Each entry has three texts (identifier, name, record); the stream's name precedes them.
        var (remaining, textCount) = (1, 0)
        while remaining > 0 {
            try socket.wait { piece in
                remaining -= 1
                switch piece {
                case .list(let count): remaining += count
                case .bytes(let text):
                    if textCount % 3 == 1 { last = String(decoding: text, as: UTF8.self) }
                    textCount += 1
                case .line: break
                }
            }
        }
        guard textCount > 1 else { throw BenchmarkError("no entries after \(last)") }
        return (textCount - 1) / 3
    }

    /// Fills the stream with records.
    static func fill(_ endpoint: String, _ record: [UInt8], count: Int) throws {
        let socket = try WireSocket(.redis, endpoint)
        let addition = WireSocket.encodeCommand(["XADD", stream, "*", "r"].map { Array($0.utf8) } + [record])
        for _ in 0..<count {
            try socket.send(addition)
            try socket.wait { _ in }
        }
    }
}
