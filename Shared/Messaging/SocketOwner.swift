/// What the poll loop waits for: the socket whose input and output matter, and perhaps a monitor, which is always read.
///
/// Sendable because the hand-over is under a lock and the one who hands them over does not use them again.
struct PollHandles: @unchecked Sendable {
    let socket: UnsafeMutableRawPointer
    var monitor: UnsafeMutableRawPointer?
}

/// What can be waited for.
protocol Pollable: ~Copyable, SendableMetatype {
    var handles: PollHandles { get }
}

extension Socket: Pollable {
    var handles: PollHandles { PollHandles(socket: pointer) }
}

extension MonitoredSocket: Pollable {
    var handles: PollHandles { PollHandles(socket: socket.pointer, monitor: monitor.pointer) }
}

/// What an actor has of its socket: closed on the poll thread, whoever lets go of the actor.
///
/// Sendable because the socket is touched on its poll thread only: in the actor's isolation, which is that thread, and
/// by the poll loop.
final class SocketHolder<Held: Pollable & ~Copyable>: @unchecked Sendable {
    var socket: Held?
    let handles: PollHandles

    init(_ socket: consuming Held) {
        handles = socket.handles
        self.socket = consume socket
    }

    /// On the poll thread.
    func close() { socket = nil }
}

/// An actor that lives on a poll thread with a socket of its own.
protocol SocketOwner: Actor {
    /// One turn: takes in what has come, sends what waits, and says what to wait for.
    func turn() -> Turn
    /// Closes the socket; a second time does nothing.
    func closeNow()
}
