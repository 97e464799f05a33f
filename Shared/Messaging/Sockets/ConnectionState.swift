import Basics
import Synchronization

/// The state of a socket's connection to its peer, for tasks that choose between several peers.
public final class ConnectionState: Sendable {
    private struct State {
        var isReady: Bool
        /// True if the peer has refused a request because it is stopping.
        var isStopping = false
        /// The time at which the last usable connection ended, in microseconds of the clock.
        var absentSince: Int64
        var connected = OneTimeEvent()

        mutating func leave(at time: Int64) {
            absentSince = time
            connected = OneTimeEvent()
        }
    }

    private let clock: MonotonicClock
    private let state: Mutex<State>

    init(isReady: Bool, clock: MonotonicClock = .system) {
        self.clock = clock
        state = Mutex(State(isReady: isReady, absentSince: clock.nowMicroseconds()))
    }

    /// True if the handshake with the peer is complete.
    public var isReady: Bool { state.withLock { $0.isReady } }

    /// True if there is a connection, and the peer has not refused a request over it because it is stopping.
    public var isUsable: Bool { state.withLock { $0.isReady && !$0.isStopping } }

    /// The time without a usable connection; zero while there is one.
    public var absence: Duration {
        state.withLock { state in
            state.isReady && !state.isStopping
                ? .zero : .microseconds(clock.nowMicroseconds().addingClamped(-state.absentSince))
        }
    }

    /// Suspends until there is a usable connection or the task is cancelled.
    public func waitUntilUsable() async {
        let connected = state.withLock { $0.isReady && !$0.isStopping ? nil : $0.connected }
        await connected?.waitUnlessCancelled()
    }

    func set(isReady: Bool) {
        let connected: OneTimeEvent? = state.withLock { state in
            guard state.isReady != isReady else { return nil }
            state.isReady = isReady
            if isReady { return state.connected }
            if !state.isStopping { state.leave(at: clock.nowMicroseconds()) }
            state.isStopping = false
            return nil
        }
        connected?.signal()
    }

    /// Records that the peer is stopping: it is still connected, but refuses requests until it has been restarted.
    func noteStopping() {
        state.withLock { state in
            guard state.isReady, !state.isStopping else { return }
            state.isStopping = true
            state.leave(at: clock.nowMicroseconds())
        }
    }
}
