/// The handles that the poll loop waits for: the socket, and optionally its monitor, which is always read.
///
/// Sendable because they are handed over under a lock and the previous owner does not use them again.
struct PollHandles: @unchecked Sendable {
    let socket: UnsafeMutableRawPointer
    var monitor: UnsafeMutableRawPointer?
}

/// A type with handles that can be polled.
protocol Pollable: ~Copyable, SendableMetatype {
    var handles: PollHandles { get }
}

extension Socket: Pollable {
    var handles: PollHandles { PollHandles(socket: pointer) }
}

extension MonitoredSocket: Pollable {
    var handles: PollHandles { PollHandles(socket: socket.pointer, monitor: monitor.pointer) }
}

/// Holds an actor's socket, so that it is closed on the poll thread regardless of which thread releases the actor.
///
/// Sendable because the socket is used on its poll thread only: in the actor's isolation, which is that thread, and by
/// the poll loop.
final class SocketBox<Boxed: Pollable & ~Copyable>: @unchecked Sendable {
    var socket: Boxed?
    let handles: PollHandles

    init(_ socket: consuming Boxed) {
        handles = socket.handles
        self.socket = consume socket
    }

    /// Closes the socket; on the poll thread only.
    func close() { socket = nil }
}

/// An actor that runs on a poll thread and owns a socket.
protocol SocketOwner: Actor {
    /// Runs one pass: receives messages, sends queued ones, and returns what to wait for.
    func poll() -> PollInterest
    /// Closes the socket; does nothing if it is closed already.
    func closeNow()
}
