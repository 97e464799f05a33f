import CZeroMQ
import Glibc

/// The handles that the poll loop waits for: the socket, and optionally its monitor, which is always read.
///
/// libzmq signals a socket's descriptor once, when a command arrives at a socket that has handled all earlier ones. So
/// the descriptor may be waited for only after ``isReady(for:)`` was called last of all functions of the socket, and
/// said that there is nothing to do.
///
/// Sendable because they are handed over under a lock and the previous owner does not use them again.
struct PollHandles: @unchecked Sendable {
    private let socket: UnsafeMutableRawPointer
    /// The descriptors that become readable: the socket's, and the monitor's; -1 without a monitor.
    let (descriptor, monitorDescriptor): (Int32, Int32)

    init(_ socket: borrowing Socket, monitor: borrowing Socket) {
        self.socket = socket.pointer
        (descriptor, monitorDescriptor) = (socket.descriptor, monitor.descriptor)
    }

    init(_ socket: borrowing Socket) {
        self.socket = socket.pointer
        (descriptor, monitorDescriptor) = (socket.descriptor, -1)
    }

    /// Handles what has arrived for the socket, and returns true if it can do what is wanted.
    func isReady(for interest: PollInterest) -> Bool {
        var events: Int32 = 0
        var size = MemoryLayout<Int32>.size
        // It fails only for a context that was terminated; the owner finds that out by itself.
        guard zmq_getsockopt(socket, ZMQ_EVENTS, &events, &size) == 0 else { return true }
        return (interest.wantsInput && events & ZMQ_POLLIN != 0) || (interest.wantsOutput && events & ZMQ_POLLOUT != 0)
    }
}

extension Socket {
    /// The descriptor that libzmq signals when something arrives.
    fileprivate var descriptor: Int32 {
        var descriptor: Int32 = -1
        var size = MemoryLayout<Int32>.size
        zmq_getsockopt(pointer, ZMQ_FD, &descriptor, &size)
        return descriptor
    }
}

/// A type with handles that can be polled.
protocol Pollable: ~Copyable, SendableMetatype {
    var handles: PollHandles { get }
}

extension Socket: Pollable {
    var handles: PollHandles { PollHandles(self) }
}

extension MonitoredSocket: Pollable {
    var handles: PollHandles { PollHandles(socket, monitor: monitor) }
}

/// Holds an actor's socket, so that it is closed on the poll thread regardless of which thread releases the actor.
///
/// Sendable because the socket is used on its poll thread only: in the actor's isolation, which is that thread, and by
/// the poll loop.
final class SocketBox<Boxed: Pollable & ~Copyable>: @unchecked Sendable {
    var socket: Boxed?
    private(set) var handles: PollHandles

    init(_ socket: consuming Boxed) {
        handles = socket.handles
        self.socket = consume socket
    }

    /// Closes the socket and holds another one; on the poll thread only.
    func replace(with other: consuming Boxed) {
        handles = other.handles
        socket = consume other
    }

    /// Closes the socket; on the poll thread only.
    func close() { socket = nil }
}

/// An actor that runs on a poll thread and owns a socket.
protocol SocketOwner: Actor {
    /// Runs one pass: receives messages, sends queued ones, and returns what to wait for.
    ///
    /// - Parameter hasEvents: true if the monitor has events; false if there is none
    func poll(hasEvents: Bool) -> PollInterest
    /// Closes the socket; does nothing if it is closed already.
    func closeNow()
}
