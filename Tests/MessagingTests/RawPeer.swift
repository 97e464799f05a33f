import Basics
import CZeroMQ
import Dispatch
import Foundation
import JSONValue

@testable import Messaging

/// A peer that uses plain libzmq calls, like a script; on a separate queue because they block.
final class RawPeer: @unchecked Sendable {
    // Only used on the queue.
    private var socket: UnsafeMutableRawPointer?
    private let queue = DispatchQueue(label: "raw-peer")

    init(
        _ kind: Int32,
        _ address: EndpointAddress,
        options: [(Int32, Int32)] = [],
        security: SocketSecurity = .none,
        timeout: Int32 = 20_000
    ) throws {
        let socket = Self.makeSocket(kind, [(ZMQ_LINGER, 0)] + options, timeout)
        if case .curveClient(let server, let keys) = security {
            zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, server.bytes, server.bytes.count)
            zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, keys.publicKey.bytes, keys.publicKey.bytes.count)
            zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, keys.secretKey.bytes, keys.secretKey.bytes.count)
        }
        guard zmq_connect(socket, address.description) == 0 else { throw RawError.cannotConnect }
        self.socket = socket
    }

    /// Binds to the address. A peer that is closed sends its remaining messages first.
    init(_ kind: Int32, binding address: EndpointAddress) throws {
        let socket = Self.makeSocket(kind, [], 20_000)
        guard zmq_bind(socket, address.description) == 0 else { throw RawError.cannotBind }
        self.socket = socket
    }

    /// Returns the address that the socket is bound to, with its actual port.
    func boundAddress() async throws -> EndpointAddress {
        let text = try await perform { socket -> Swift.Result<String, RawError> in
            var text = [CChar](repeating: 0, count: 512)
            var length = text.count
            guard zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, &text, &length) == 0 else { return .failure(.cannotBind) }
            return .success(String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self))
        }
        return try EndpointAddress(text)
    }

    /// Responds to a request that a ROUTER socket has received.
    func respond(to request: [Bytes], _ result: JSON) async throws {
        let id = try JSON(parsing: request[1])["id"] ?? .null
        try await send([request[0], JSON.object(["jsonrpc": "2.0", "id": id, "result": result]).bytes])
    }

    private static func makeSocket(
        _ kind: Int32,
        _ options: [(Int32, Int32)],
        _ timeout: Int32
    ) -> UnsafeMutableRawPointer? {
        let socket = MessagingContext.shared.makeSocket(kind)
        for (option, value) in [(ZMQ_RCVTIMEO, timeout), (ZMQ_SNDTIMEO, timeout)] + options {
            var value = value
            zmq_setsockopt(socket, option, &value, 4)
        }
        return socket
    }

    enum RawError: Error { case cannotBind, cannotConnect, noMessage, notSent }

    private func perform<Result: Sendable>(
        _ body: @escaping @Sendable (UnsafeMutableRawPointer?) -> Swift.Result<Result, RawError>
    ) async throws -> Result {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: body(self.socket)) }
        }
    }

    func send(_ frames: [Bytes]) async throws {
        try await perform { socket -> Swift.Result<Void, RawError> in
            for (index, frame) in frames.enumerated() {
                let flags = index == frames.count - 1 ? 0 : ZMQ_SNDMORE
                guard zmq_send(socket, frame, frame.count, flags) >= 0 else { return .failure(.notSent) }
            }
            return .success(())
        }
    }

    func send(_ json: JSON, _ attachments: [Bytes] = []) async throws { try await send([json.bytes] + attachments) }

    func send(text: String) async throws { try await send([Bytes(text.utf8)]) }

    func receive() async throws -> [Bytes] {
        try await perform { socket -> Swift.Result<[Bytes], RawError> in
            var frames: [Bytes] = []
            var more: Int32 = 1
            while more != 0 {
                var part = zmq_msg_t()
                zmq_msg_init(&part)
                defer { zmq_msg_close(&part) }
                guard zmq_msg_recv(&part, socket, 0) >= 0 else { return .failure(.noMessage) }
                frames.append(Bytes(UnsafeRawBufferPointer(start: zmq_msg_data(&part), count: zmq_msg_size(&part))))
                more = zmq_msg_more(&part)
            }
            return .success(frames)
        }
    }

    func receiveJSON() async throws -> JSON {
        try await JSON(parsing: receive().first ?? [])
    }

    func ask(_ json: JSON) async throws -> JSON {
        try await send(json)
        return try await receiveJSON()
    }

    func set(_ option: Int32, _ value: Bytes) async throws {
        try await perform { socket -> Swift.Result<Void, RawError> in
            zmq_setsockopt(socket, option, value, value.count) == 0 ? .success(()) : .failure(.notSent)
        }
    }

    func close() async throws {
        try await perform { [self] socket -> Swift.Result<Void, RawError> in
            if let socket { zmq_close(socket) }
            self.socket = nil
            return .success(())
        }
    }

    deinit { if let socket { zmq_close(socket) } }
}

func request(_ id: JSON, _ method: String, _ params: JSON = [:]) -> JSON {
    ["jsonrpc": "2.0", "id": id, "method": .string(method), "params": params]
}

extension JSON {
    var errorName: String? { self["error"]?["data"]?["name"]?.stringValue }
    var errorCode: Int64? { self["error"]?["code"]?.intValue }
}
