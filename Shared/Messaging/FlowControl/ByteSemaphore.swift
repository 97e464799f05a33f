import Basics
import DequeModule
import Synchronization

/// A semaphore that counts bytes, with a first-in, first-out queue of waiters. It is used for byte credit, and for the
/// capacity of a server's outboxes and of a client's or pusher's send queue.
///
/// A message passes as soon as any bytes are left, and may make the count negative: so a single message larger than the
/// whole capacity still passes, and the overshoot is at most one message.
final class ByteSemaphore: Sendable {
    enum Outcome: Sendable {
        case acquired
        /// Too many bytes are already waiting in line.
        case refused
        /// The semaphore was closed; no more bytes will become available.
        case closed
        /// The waiting task was cancelled.
        case cancelled
    }

    private struct Waiter {
        let bytes: Int
        let outcome: Promise<Outcome>
    }

    private struct State {
        var available: Int
        var waiters: Deque<Waiter> = []
        var waitingBytes = 0
        var isClosed = false
        var releases = 0
    }

    private let state: Mutex<State>
    private let maxAvailable: Int
    private let maxWaitingBytes: Int

    /// - Parameters:
    ///   - available: bytes that may be spent at once.
    ///   - maxAvailable: releasing never raises the available bytes above this.
    ///   - maxWaitingBytes: bytes that may wait in line before further waiters are refused.
    init(available: Int, maxAvailable: Int = .max, maxWaitingBytes: Int = .max) {
        self.state = Mutex(State(available: min(available, maxAvailable)))
        self.maxAvailable = maxAvailable
        self.maxWaitingBytes = maxWaitingBytes
    }

    var available: Int { state.withLock { $0.available } }

    /// The bytes in use, and a number that grows with each released message that was counted until it had left libzmq.
    var usage: (bytes: Int, releases: Int) {
        state.withLock { (maxAvailable.addingClamped(-$0.available), $0.releases) }
    }

    /// True if at least half of the bytes are in use.
    var isHalfUsed: Bool { available <= maxAvailable / 2 }

    /// Bytes waiting in line.
    var waitingBytes: Int { state.withLock { $0.waitingBytes } }

    /// Acquires the bytes without waiting, even if none are left: for small messages that must be sent in any case.
    func acquireWithoutWaiting(_ bytes: Int) {
        state.withLock { $0.available = $0.available.addingClamped(-bytes) }
    }

    /// Acquires the bytes if that is possible without waiting.
    func tryAcquire(_ bytes: Int) -> Bool {
        state.withLock { state in
            guard !state.isClosed, state.available > 0, state.waiters.isEmpty else { return false }
            state.available -= bytes
            return true
        }
    }

    /// Acquires the bytes if at most ``peerBytesAlways`` are then in use: a peer with few bytes in flight does not wait
    /// for other peers.
    func tryAcquireFew(_ bytes: Int) -> Bool {
        state.withLock { state in
            let used = maxAvailable.addingClamped(-state.available).addingClamped(bytes)
            guard !state.isClosed, state.available > 0, state.waiters.isEmpty, used <= Self.peerBytesAlways else {
                return false
            }
            state.available -= bytes
            return true
        }
    }

    /// The bytes that each peer may have in flight although none are left for all peers together.
    static let peerBytesAlways = 64 << 10

    /// Acquires the bytes, waiting in line until some are available.
    func acquire(_ bytes: Int) async -> Outcome {
        enum Step { case done(Outcome), wait(Promise<Outcome>) }
        let step: Step = state.withLock { state in
            if state.isClosed { return .done(.closed) }
            if state.available > 0, state.waiters.isEmpty {
                state.available -= bytes
                return .done(.acquired)
            }
            if state.waitingBytes.addingClamped(bytes) > maxWaitingBytes { return .done(.refused) }
            let outcome = Promise<Outcome>()
            state.waiters.append(Waiter(bytes: bytes, outcome: outcome))
            state.waitingBytes += bytes
            return .wait(outcome)
        }
        switch step {
        case .done(let outcome): return outcome
        case .wait(let outcome): return await outcome.value { self.cancel(outcome) }
        }
    }

    /// Removes a waiter from the line. One that is no longer in it has acquired its bytes, and must not be cancelled.
    private func cancel(_ outcome: Promise<Outcome>) {
        let isWaiting = state.withLock { state in
            guard let index = state.waiters.firstIndex(where: { $0.outcome === outcome }) else { return false }
            state.waitingBytes -= state.waiters.remove(at: index).bytes
            return true
        }
        if isWaiting { outcome.fulfill(.cancelled) }
    }

    /// Releases bytes, up to the maximum, and resumes waiters in order.
    ///
    /// - Parameter isSent: false for the bytes of a message that was not sent; they do not show that the peer reads
    func release(_ bytes: Int, isSent: Bool = true) {
        let passing: [Waiter] = state.withLock { state in
            state.available = min(state.available.addingClamped(max(bytes, 0)), maxAvailable)
            if isSent, bytes >= OutgoingMessage.countedBytes { state.releases &+= 1 }
            var passing: [Waiter] = []
            while state.available > 0, let next = state.waiters.popFirst() {
                state.available -= next.bytes
                state.waitingBytes -= next.bytes
                passing.append(next)
            }
            return passing
        }
        for waiter in passing { waiter.outcome.fulfill(.acquired) }
    }

    /// Resumes all waiters, current and future, with `closed`.
    func close() {
        let leaving = state.withLock { state in
            state.isClosed = true
            defer { state.waiters = [] }
            state.waitingBytes = 0
            return state.waiters
        }
        for waiter in leaving { waiter.outcome.fulfill(.closed) }
    }
}

// MARK: - Acquired bytes

/// Bytes acquired from one or more semaphores and released in `deinit`, so that no code path can forget it.
final class ByteReservation: Sendable {
    let bytes: Int
    let semaphores: [ByteSemaphore]
    /// Another reservation, which is kept as long as this one.
    private let other: ByteReservation?

    /// Wraps bytes that were already acquired from each semaphore.
    init(bytes: Int, semaphores: [ByteSemaphore], keeping other: ByteReservation? = nil) {
        self.bytes = bytes
        self.semaphores = semaphores
        self.other = other
    }

    deinit {
        for semaphore in semaphores { semaphore.release(bytes) }
    }
}
