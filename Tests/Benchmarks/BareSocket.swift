import CZeroMQ
import Glibc

/// An error that libzmq reports.
struct BareError: Error, CustomStringConvertible {
    let description: String

    init(_ summary: String) { description = "\(summary): \(String(cString: zmq_strerror(zmq_errno())))" }
}

/// A libzmq context without any layer above it.
final class BareContext {
    let pointer: UnsafeMutableRawPointer

    init() throws {
        guard let pointer = zmq_ctx_new() else { throw BareError("no context") }
        zmq_ctx_set(pointer, ZMQ_MAX_SOCKETS, 20_000)
        self.pointer = pointer
    }

    deinit { zmq_ctx_term(pointer) }
}

/// A libzmq socket without any layer above it; all ZeroMQ peers use it. Used by one thread at a time.
final class BareSocket {
    let pointer: UnsafeMutableRawPointer
    private let context: BareContext
    private var message = zmq_msg_t()

    init(_ kind: Int32, _ context: BareContext, highWaterMark: Int32 = 1000) throws {
        guard let pointer = zmq_socket(context.pointer, kind) else { throw BareError("no socket") }
        self.pointer = pointer
        self.context = context
        zmq_msg_init(&message)
        try set(ZMQ_LINGER, 0)
        try set(ZMQ_SNDHWM, highWaterMark)
        try set(ZMQ_RCVHWM, highWaterMark)
    }

    deinit {
        zmq_msg_close(&message)
        zmq_close(pointer)
    }

    func set(_ option: Int32, _ value: Int32) throws {
        var value = value
        guard zmq_setsockopt(pointer, option, &value, MemoryLayout<Int32>.size) == 0 else {
            throw BareError("option \(option)")
        }
    }

    func subscribe(_ topic: String) throws {
        guard zmq_setsockopt(pointer, ZMQ_SUBSCRIBE, topic, topic.utf8.count) == 0 else {
            throw BareError("subscribe")
        }
    }

    func bind(_ endpoint: String) throws {
        guard zmq_bind(pointer, endpoint) == 0 else { throw BareError("bind \(endpoint)") }
    }

    func connect(_ endpoint: String) throws {
        guard zmq_connect(pointer, endpoint) == 0 else { throw BareError("connect \(endpoint)") }
    }

    /// Sends one frame; blocks while the queue is full.
    func send(_ bytes: some ContiguousBytesOfFrame, more: Bool = false) throws {
        let sent = bytes.withFrame { zmq_send(pointer, $0.baseAddress, $0.count, more ? ZMQ_SNDMORE : 0) }
        guard sent >= 0 else { throw BareError("send") }
    }

    /// Receives one frame and passes it to `body`; nil if there is none and `wait` is false.
    ///
    /// - Returns: the result of `body`, and whether further frames of the message follow
    func receive<Value>(
        wait: Bool = true,
        _ body: (UnsafeRawBufferPointer) throws -> Value
    ) throws -> (value: Value, more: Bool)? {
        guard zmq_msg_recv(&message, pointer, wait ? 0 : ZMQ_DONTWAIT) >= 0 else {
            if zmq_errno() == EAGAIN { return nil }
            throw BareError("receive")
        }
        let frame = UnsafeRawBufferPointer(start: zmq_msg_data(&message), count: zmq_msg_size(&message))
        return (try body(frame), zmq_msg_more(&message) != 0)
    }

    /// Receives a whole message.
    func receiveMessage() throws -> [[UInt8]] {
        var frames: [[UInt8]] = []
        while let (frame, more) = try receive({ [UInt8]($0) }) {
            frames.append(frame)
            if !more { break }
        }
        return frames
    }
}

/// Contiguous bytes that can be sent as a frame.
protocol ContiguousBytesOfFrame {
    func withFrame<Value>(_ body: (UnsafeRawBufferPointer) -> Value) -> Value
}

extension [UInt8]: ContiguousBytesOfFrame {
    func withFrame<Value>(_ body: (UnsafeRawBufferPointer) -> Value) -> Value { withUnsafeBytes(body) }
}

extension String: ContiguousBytesOfFrame {
    func withFrame<Value>(_ body: (UnsafeRawBufferPointer) -> Value) -> Value {
        var text = self
        return text.withUTF8 { body(UnsafeRawBufferPointer($0)) }
    }
}

/// The system's clocks.
enum Clocks {
    /// Returns microseconds since 1970.
    static func wallMicroseconds() -> Int64 { microseconds(CLOCK_REALTIME) }

    /// Returns microseconds of the monotonic clock, whose origin is arbitrary.
    static func microseconds() -> Int64 { microseconds(CLOCK_MONOTONIC) }

    private static func microseconds(_ clock: clockid_t) -> Int64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }
}
