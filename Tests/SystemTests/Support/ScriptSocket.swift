import CZeroMQ
import TestSupport

/// A socket of libzmq without the project's code, as a script uses it.
final class ScriptSocket {
    private let context = zmq_ctx_new()
    private let socket: UnsafeMutableRawPointer?

    /// - Parameters:
    ///   - kind: `ZMQ_SUB`, `ZMQ_DEALER`
    ///   - options: numbers by their libzmq names, set before connecting
    ///   - routingID: the socket's routing id (`ZMQ_ROUTING_ID`)
    init(
        _ kind: Int32,
        _ services: SafelightFixture,
        _ name: String,
        _ options: [Int32: Int32] = [:],
        routingID: String = ""
    ) {
        socket = zmq_socket(context, kind)
        set(ZMQ_LINGER, 0)
        for (option, value) in options { set(option, value) }
        if !routingID.isEmpty { zmq_setsockopt(socket, ZMQ_ROUTING_ID, routingID, routingID.utf8.count) }
        zmq_connect(socket, "ipc://" + services.folder.file("run") + "/\(name).sock")
    }

    deinit {
        zmq_close(socket)
        zmq_ctx_term(context)
    }

    private func set(_ option: Int32, _ value: Int32) {
        var value = value
        zmq_setsockopt(socket, option, &value, MemoryLayout<Int32>.size)
    }

    func subscribe(_ topic: String) { zmq_setsockopt(socket, ZMQ_SUBSCRIBE, topic, topic.utf8.count) }

    func send(_ text: String) { _ = zmq_send(socket, text, text.utf8.count, 0) }

    /// Sends one message of several frames; blocks while libzmq's queue is full.
    func send(_ frames: [[UInt8]]) -> Bool {
        for (index, frame) in frames.enumerated() {
            let flags = index + 1 < frames.count ? ZMQ_SNDMORE : 0
            guard zmq_send(socket, frame, frame.count, flags) >= 0 else { return false }
        }
        return true
    }

    /// Returns the next message's frames; nil if none arrives in time.
    func receive(milliseconds: Int32 = 5000) -> [[UInt8]]? {
        set(ZMQ_RCVTIMEO, milliseconds)
        var frames: [[UInt8]] = []
        var more: Int32 = 1
        while more != 0 {
            var message = zmq_msg_t()
            zmq_msg_init(&message)
            defer { zmq_msg_close(&message) }
            guard zmq_msg_recv(&message, socket, 0) >= 0 else { return nil }
            frames.append(Array(UnsafeRawBufferPointer(start: zmq_msg_data(&message), count: zmq_msg_size(&message))))
            more = zmq_msg_more(&message)
        }
        return frames
    }
}
