import ArgumentParser
import Foundation
import Glibc

/// Foreign brokers that are measured for comparison, if their Debian packages are installed.
enum WireServer: String, CaseIterable, ExpressibleByArgument {
    case redis, nats
    /// NATS with a stream on disk, to which each subscriber has a consumer of its own.
    case jetStream

    var program: String { self == .redis ? "redis-server" : "nats-server" }

    var title: String {
        switch self {
        case .redis: "Redis pub/sub"
        case .nats: "NATS, nothing stored"
        case .jetStream: "NATS JetStream, stored on disk"
        }
    }
}

/// A connection to a foreign broker, which reads lines and counted bytes. Used by one thread at a time.
final class WireSocket {
    /// One piece of a server's output.
    enum Piece {
        /// The header of a list, with its number of pieces (Redis).
        case list(Int)
        /// Counted bytes: a message or an identifier.
        case bytes(UnsafeRawBufferPointer)
        /// Any other line.
        case line(UnsafeRawBufferPointer)
    }

    let server: WireServer
    let descriptor: Int32
    private var buffer = [UInt8](repeating: 0, count: 256 << 10)
    private var start = 0
    private var end = 0

    /// - Parameter endpoint: the path of a Unix socket (Redis), or the port on this machine (NATS)
    init(_ server: WireServer, _ endpoint: String) throws {
        self.server = server
        switch server {
        case .redis: descriptor = try Self.connect(path: endpoint)
        case .nats, .jetStream:
            descriptor = try Self.connect(port: UInt16(endpoint) ?? 0)
            try send(Array("CONNECT {\"verbose\":false,\"pedantic\":false}\r\n".utf8))
        }
    }

    deinit { close(descriptor) }

    private static func connect(path: String) throws -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else {
            throw BenchmarkError("\(path) is too long for a Unix socket")
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        return try connect(AF_UNIX, &address)
    }

    private static func connect(port: UInt16) throws -> Int32 {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let descriptor = try connect(AF_INET, &address)
        var isEnabled: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &isEnabled, 4)
        return descriptor
    }

    private static func connect<Address>(_ family: Int32, _ address: inout Address) throws -> Int32 {
        let descriptor = socket(family, Int32(SOCK_STREAM.rawValue), 0)
        let status = withUnsafeBytes(of: &address) { bytes -> Int32 in
            guard let base = bytes.baseAddress else { return -1 }
            return Glibc.connect(
                descriptor,
                base.assumingMemoryBound(to: sockaddr.self),
                socklen_t(bytes.count)
            )
        }
        guard status == 0 else {
            close(descriptor)
            throw BenchmarkError("cannot connect to the server: \(String(cString: strerror(errno)))")
        }
        return descriptor
    }

    /// Sends all bytes; blocks while the socket is full.
    func send(_ bytes: [UInt8]) throws {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress?.advanced(by: sent), $0.count - sent, 0)
            }
            guard count > 0 else { throw BenchmarkError("the server no longer accepts data") }
            sent += count
        }
    }

    /// Encodes a Redis command.
    static func encodeCommand(_ words: [[UInt8]]) -> [UInt8] {
        var bytes = Array("*\(words.count)\r\n".utf8)
        for word in words { bytes += Array("$\(word.count)\r\n".utf8) + word + [0x0D, 0x0A] }
        return bytes
    }

    func sendCommand(_ words: String...) throws { try send(Self.encodeCommand(words.map { Array($0.utf8) })) }

    /// Reads the bytes that have arrived.
    ///
    /// - Returns: true if there were any; always true if it waits
    @discardableResult
    func fill(wait: Bool = true) throws -> Bool {
        if start > 0 {
            buffer.withUnsafeMutableBytes { bytes in
                guard let base = bytes.baseAddress else { return }
                memmove(base, base + start, end - start)
            }
            (start, end) = (0, end - start)
        }
        guard end < buffer.count else { throw BenchmarkError("the server sent a message larger than the buffer") }
        let count = buffer.withUnsafeMutableBytes {
            recv(descriptor, $0.baseAddress?.advanced(by: end), $0.count - end, wait ? 0 : Int32(MSG_DONTWAIT))
        }
        if count < 0, !wait, errno == EAGAIN { return false }
        guard count > 0 else { throw BenchmarkError("the server closed the connection") }
        end += count
        return true
    }

    /// Passes the next piece to `body` and returns the result; nil if the piece has not arrived completely.
    func next<Value>(_ body: (Piece) throws -> Value) throws -> Value? {
        try buffer.withUnsafeBytes { bytes -> Value? in
            guard let base = bytes.baseAddress, let found = memchr(base + start, 0x0A, end - start) else { return nil }
            let lineEnd = base.distance(to: UnsafeRawPointer(found))
            let line = UnsafeRawBufferPointer(rebasing: bytes[start..<max(start, lineEnd - 1)])
            guard let length = try payloadLength(after: line) else {
                start = lineEnd + 1
                if server == .redis, line.first == UInt8(ascii: "*") { return try body(.list(Self.lastNumber(line))) }
                return try body(.line(line))
            }
            let content = lineEnd + 1
            guard end >= content + length + 2 else { return nil }
            start = content + length + 2
            return try body(.bytes(UnsafeRawBufferPointer(rebasing: bytes[content..<content + length])))
        }
    }

    /// Waits for the next piece, passes it to `body` and returns the result.
    func wait<Value>(_ body: (Piece) throws -> Value) throws -> Value {
        while true {
            if let value = try next(body) { return value }
            try fill()
        }
    }

    /// Returns the number of bytes that follow a line; nil for a line without a payload.
    private func payloadLength(after line: UnsafeRawBufferPointer) throws -> Int? {
        switch (server, line.first) {
        case (_, UInt8(ascii: "-")): throw BenchmarkError("a server answered \(String(decoding: line, as: UTF8.self))")
        case (.redis, UInt8(ascii: "$")): return Self.lastNumber(line)
        case (.nats, UInt8(ascii: "M")), (.jetStream, UInt8(ascii: "M")): return Self.lastNumber(line)
        default: return nil
        }
    }

    private static func lastNumber(_ line: UnsafeRawBufferPointer) -> Int {
        var (value, factor) = (0, 1)
        for byte in line.reversed() {
            guard (0x30...0x39).contains(byte) else { break }
            value += Int(byte - 0x30) * factor
            factor *= 10
        }
        return value
    }
}
