import Basics
import CZeroMQ
import Foundation
import Hosting
import Messaging
import TestSupport

/// The server key and key pair that a CURVE client needs.
struct Keys: Sendable {
    let server: String
    let pair: CurveKeyPair
}

extension KeyFolder {
    /// Returns the key pair in a file; nil if it has none.
    static func pair(_ path: String) -> CurveKeyPair? {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return nil }
        func key(_ name: String) -> String? {
            text.split(separator: "\n").first { $0.contains("\(name)-key = ") }?.split(separator: "\"").last
                .map(String.init)
        }
        guard let publicKey = key("public").flatMap({ CurvePublicKey($0) }),
            let secretKey = key("secret").flatMap({ CurveSecretKey($0) })
        else { return nil }
        return CurveKeyPair(publicKey: publicKey, secretKey: secretKey)
    }
}

extension RawCurve {
    convenience init(port: UInt16, as socketType: String, server: CurvePublicKey, pair: CurveKeyPair) throws {
        func bytes(_ text: String) -> [UInt8] {
            var bytes = [UInt8](repeating: 0, count: 32)
            zmq_z85_decode(&bytes, text)
            return bytes
        }
        try self.init(
            port: port,
            as: socketType,
            server: bytes(server.text),
            publicKey: bytes(pair.publicKey.text),
            secretKey: bytes(pair.secretKey.text)
        )
    }
}

/// A socket of libzmq with CURVE keys and without the project's code, as other programs use it.
struct KeyedSocket {
    private let socket: UnsafeMutableRawPointer?

    /// Creates a socket that connects, over CURVE if there are keys; a subscriber subscribes to everything.
    init(_ context: UnsafeMutableRawPointer?, _ kind: Int32, _ address: String, _ keys: Keys?) {
        socket = zmq_socket(context, kind)
        var zero: Int32 = 0
        zmq_setsockopt(socket, ZMQ_LINGER, &zero, MemoryLayout<Int32>.size)
        if let keys {
            for (option, text) in [
                (ZMQ_CURVE_SERVERKEY, keys.server), (ZMQ_CURVE_PUBLICKEY, keys.pair.publicKey.text),
                (ZMQ_CURVE_SECRETKEY, keys.pair.secretKey.text),
            ] { zmq_setsockopt(socket, option, text, text.utf8.count + 1) }
        }
        if kind == ZMQ_SUB { zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0) }
        zmq_connect(socket, address)
    }

    /// Passes a message to libzmq, which queues it until there is a connection.
    func send(_ bytes: Bytes) { zmq_send(socket, bytes, bytes.count, ZMQ_DONTWAIT) }

    /// Returns a message that has arrived; nil if there is none.
    func receive() -> [Bytes]? {
        var frames: [Bytes] = []
        while true {
            var frame = zmq_msg_t()
            zmq_msg_init(&frame)
            defer { zmq_msg_close(&frame) }
            guard zmq_msg_recv(&frame, socket, frames.isEmpty ? ZMQ_DONTWAIT : 0) >= 0 else { return nil }
            frames.append(Bytes(UnsafeRawBufferPointer(start: zmq_msg_data(&frame), count: zmq_msg_size(&frame))))
            if zmq_msg_more(&frame) == 0 { return frames }
        }
    }

    func close() { zmq_close(socket) }
}
