import Basics
import CZeroMQ
import Foundation
import Glibc
import JSONValue
import TestSupport
import Testing

@testable import Messaging

@Suite(.timeLimit(.minutes(TestEnvironment.rounds(5))))
struct FuzzTests {
    private static let seeds: [Bytes] = [
        request(1, "hello", ["deadlineMs": 20_000, "credit": 100]).bytes,
        request("x", "rpc.credit", ["id": 1, "bytes": 9_000_000_000]).bytes,
        request("y", "rpc.cancel", ["id": "x"]).bytes,
        Bytes(#"{"jsonrpc":"2.0","method":"n","params":{"a":[1,2.5e3,"\u00e9\ud83d\ude00",null]}}"#.utf8),
        Bytes("[[],{}]".utf8), [], [0, 0, 0, 1],
    ]

    private static func frame(_ random: inout SeededRandom) -> Bytes {
        if Int.random(in: 0..<5, using: &random) == 0 {
            return random.bytes(Int.random(in: 0..<200, using: &random))
        }
        var bytes = seeds[Int.random(in: 0..<seeds.count, using: &random)]
        for _ in 0..<Int.random(in: 0..<6, using: &random) where !bytes.isEmpty {
            let position = Int.random(in: 0..<bytes.count, using: &random)
            switch Int.random(in: 0..<4, using: &random) {
            case 0: bytes[position] = UInt8.random(in: 0...255, using: &random)
            case 1: bytes.remove(at: position)
            case 2: bytes.insert(UInt8.random(in: 0...255, using: &random), at: position)
            default: bytes.append(contentsOf: bytes[position...].prefix(40))
            }
        }
        return bytes
    }

    @Test func `random and mutated frames do not stop the server`() async throws {
        var random = SeededRandom(named: "random frames")
        try await MessagingFixture.with { fixture in
            try await fixture.serving { server in
                var sent = 0
                for _ in 0..<TestEnvironment.rounds(200) {
                    let kind = Bool.random(using: &random) ? ZMQ_DEALER : ZMQ_REQ
                    let peer = try RawPeer(kind, server.boundAddress, timeout: 60_000)
                    for _ in 0..<(kind == ZMQ_REQ ? 1 : 100) {
                        let count = Int.random(in: 1...4, using: &random)
                        try await peer.send((0..<count).map { _ in Self.frame(&random) })
                        sent += 1
                    }
                    // REQ must get exactly one message, whatever it sent.
                    if kind == ZMQ_REQ { _ = try await peer.receive() }
                }
                let client = try fixture.client(server)
                #expect(try await client.call("hello").result["method"] == "hello", "after \(sent) messages")
            }
        }
    }

    @Test func `bytes that are not ZMTP do not stop the server`() async throws {
        var random = SeededRandom(named: "bytes that are not ZMTP")
        try await MessagingFixture.with { fixture in
            try await fixture.serving { server in
                let greeting: Bytes =
                    [0xFF, 0, 0, 0, 0, 0, 0, 0, 1, 0x7F, 3, 0] + Bytes("NULL".utf8) + Bytes(repeating: 0, count: 48)
                let ready: Bytes =
                    [4, 25, 5] + Bytes("READY".utf8) + [11] + Bytes("Socket-Type".utf8) + [0, 0, 0, 3]
                    + Bytes("REQ".utf8)
                let path = try #require(server.boundAddress.path)
                for _ in 0..<300 {
                    var bytes: Bytes = Bool.random(using: &random) ? greeting : []
                    if !bytes.isEmpty, Bool.random(using: &random) { bytes += ready }
                    bytes += Self.frame(&random)
                    // A frame header with a length above every limit.
                    if Bool.random(using: &random) { bytes += [2, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF] }
                    Self.send(bytes, toSocketAt: path)
                }
                let client = try fixture.client(server)
                #expect(try await client.call("hello").result["method"] == "hello")
            }
        }
    }

    private static func send(_ bytes: Bytes, toSocketAt path: String) {
        let descriptor = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { return }
        defer { Glibc.close(descriptor) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
        let status = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { Glibc.connect(descriptor, $0, size) }
        }
        guard status == 0 else { return }
        _ = Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }
}
