import CZeroMQ
import Foundation
import PhotoModel

/// Reads a history in pieces, without looking into the records. For one thread.
protocol PageReader: AnyObject {
    /// Asks for the next piece, where pieces are asked for.
    func ask() throws
    /// Waits for a piece.
    ///
    /// - Returns: how many records it has
    func take() throws -> Int
}

/// Deliveries a second to some readers, each of which reads so many records.
func replayRate(_ readers: [any PageReader], records: Int) throws -> Double {
    var left = Array(repeating: records, count: readers.count)
    var total = 0
    let start = Clocks.microseconds()
    for reader in readers { try reader.ask() }
    while left.contains(where: { $0 > 0 }) {
        for (index, reader) in readers.enumerated() where left[index] > 0 {
            let count = try reader.take()
            total += count
            left[index] -= count
            if left[index] > 0 { try reader.ask() }
        }
    }
    return Double(total) / (Double(Clocks.microseconds() - start) / 1e6)
}

/// Pages through `feed.since`.
final class SinceReader: PageReader {
    private let socket: BareSocket
    private var token: String
    /// Bytes of the newest page.
    private(set) var bytes = 0

    init(_ address: String, _ token: String, _ context: BareContext) throws {
        socket = try BareSocket(ZMQ_DEALER, context)
        try socket.connect(address)
        self.token = token
    }

    func ask() throws {
        try socket.send(
            #"{"jsonrpc":"2.0","id":1,"method":"feed.since","params":{"limit":1000,"token":"\#(token)"}}"#
        )
    }

    func take() throws -> Int {
        let found = try socket.receive { frame in
            bytes = frame.count
            return try PageTail.token(frame)
        }
        guard let next = found?.value else { throw BenchmarkError("no page") }
        defer { token = next }
        return try PageTail.records(from: token, to: next)
    }
}

/// Follows by `feed.follow`, with credit for all that it reads.
final class FollowReader: PageReader {
    private let socket: BareSocket
    private var token: String
    private var isOpen = false

    init(_ address: String, _ token: String, _ context: BareContext) throws {
        socket = try BareSocket(ZMQ_DEALER, context)
        try socket.connect(address)
        self.token = token
    }

    func ask() throws {
        guard !isOpen else { return }
        isOpen = true
        try socket.send(
            #"{"jsonrpc":"2.0","id":1,"method":"feed.follow","params":{"token":"\#(token)","credit":\#(64 << 20)}}"#
        )
    }

    func take() throws -> Int {
        guard let next = try socket.receive({ try PageTail.token($0) })?.value else { throw BenchmarkError("no page") }
        defer { token = next }
        return try PageTail.records(from: token, to: next)
    }
}

/// A page's own token stands behind its records.
private enum PageTail {
    static func token(_ frame: UnsafeRawBufferPointer) throws -> String {
        let tail = String(decoding: frame.suffix(400), as: UTF8.self)
        // Behind it stand the tokens of the oldest record and of the head, under other names.
        guard let start = tail.range(of: #""token":""#, options: .backwards),
            let token = tail[start.upperBound...].split(separator: "\"").first
        else { throw BenchmarkError("no page: \(String(decoding: frame.prefix(300), as: UTF8.self))") }
        return String(token)
    }

    static func records(from token: String, to next: String) throws -> Int {
        guard let old = ChangeToken(token)?.sequence, let new = ChangeToken(next)?.sequence else {
            throw BenchmarkError("no token: \(next)")
        }
        return Int(new - old)
    }
}

/// Gets pages of the same size from a bare ROUTER.
final class BareReader: PageReader {
    private let socket: BareSocket
    private let records: Int

    init(_ address: String, records: Int, _ context: BareContext) throws {
        socket = try BareSocket(ZMQ_DEALER, context)
        try socket.connect(address)
        self.records = records
    }

    func ask() throws { try socket.send("x") }

    func take() throws -> Int {
        _ = try socket.receive { _ in }
        return records
    }
}

/// Pages through a stream of Redis by `XREAD`.
final class StreamReader: PageReader {
    static let stream = "records"
    private let socket: WireSocket
    private let count: Int
    private var last = "0"

    init(_ endpoint: String, count: Int) throws {
        socket = try WireSocket(.redis, endpoint)
        self.count = count
    }

    func ask() throws { try socket.command("XREAD", "COUNT", "\(count)", "STREAMS", Self.stream, last) }

    func take() throws -> Int {
        // Each entry has three texts, its identifier, a name and the record; before them stands the stream's name.
        var (open, texts) = (1, 0)
        while open > 0 {
            try socket.wait { piece in
                open -= 1
                switch piece {
                case .list(let count): open += count
                case .bytes(let text):
                    if texts % 3 == 1 { last = String(decoding: text, as: UTF8.self) }
                    texts += 1
                case .line: break
                }
            }
        }
        guard texts > 1 else { throw BenchmarkError("no entries after \(last)") }
        return (texts - 1) / 3
    }

    /// Fills the stream.
    static func fill(_ endpoint: String, _ record: [UInt8], count: Int) throws {
        let socket = try WireSocket(.redis, endpoint)
        let add = WireSocket.command(["XADD", stream, "*", "r"].map { Array($0.utf8) } + [record])
        for _ in 0..<count {
            try socket.send(add)
            try socket.wait { _ in }
        }
    }
}
