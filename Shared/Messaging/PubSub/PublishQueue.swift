import Basics
import CZeroMQ
import Glibc
import JSONValue
import Logging
import Synchronization

/// The messages waiting to be passed to libzmq, bounded by bytes.
final class PublishQueue: Sendable {
    private struct State {
        var messages: [OutgoingMessage] = []
        /// Bytes of these messages, and of those removed from the queue but not sent yet.
        var bytes = 0
        var waiting: [Promise<Void>] = []
        var isClosed = false
        var dropped = 0
        var refused = 0
        var wantsRestart = false
    }

    private let state = Mutex(State())
    private let maxBytes: Int
    private let wakeup: PollWakeup

    init(maxBytes: Int, wakeup: PollWakeup) {
        self.maxBytes = maxBytes
        self.wakeup = wakeup
    }

    var metrics: (waiting: Int, dropped: Int, refused: Int) {
        state.withLock { ($0.bytes, $0.dropped, $0.refused) }
    }

    func enqueue(_ message: OutgoingMessage) {
        let bytes = message.byteCount
        let isAccepted = state.withLock { state in
            guard state.bytes.addingClamped(bytes) <= maxBytes else {
                state.dropped += 1
                return false
            }
            state.messages.append(message)
            state.bytes += bytes
            return true
        }
        if isAccepted { wakeup.signal() }
    }

    /// Makes the publisher disconnect all subscribers in its next pass.
    func requestRestart() {
        state.withLock { $0.wantsRestart = true }
        wakeup.signal()
    }

    func consumeRestart() -> Bool {
        state.withLock { state in
            defer { state.wantsRestart = false }
            return state.wantsRestart
        }
    }

    func countRefusal() { state.withLock { $0.refused += 1 } }

    /// Removes and returns the messages; their bytes count until ``didSend(_:)``.
    func removeAll() -> [OutgoingMessage] {
        state.withLock { state in
            defer { state.messages = [] }
            return state.messages
        }
    }

    /// Queued bytes above which ``waitForCapacity()`` waits, and those at which it goes on.
    private static let highWaterMark = 4 << 20
    private static let lowWaterMark = highWaterMark / 2

    func waitForCapacity() async {
        let capacity: Promise<Void>? = state.withLock { state in
            guard state.bytes > Self.highWaterMark, !state.isClosed else { return nil }
            let capacity = Promise<Void>()
            state.waiting.append(capacity)
            return capacity
        }
        await capacity?.value {
            self.state.withLock { $0.waiting.removeAll { $0 === capacity } }
            capacity?.fulfill(())
        }
    }

    /// Subtracts sent or dropped bytes, and resumes the waiting tasks at the low-water mark.
    func didSend(_ bytes: Int) {
        let freed: [Promise<Void>] = state.withLock { state in
            state.bytes -= bytes
            guard state.bytes <= Self.lowWaterMark || state.isClosed else { return [] }
            defer { state.waiting = [] }
            return state.waiting
        }
        for capacity in freed { capacity.fulfill(()) }
    }

    /// Closes the queue and resumes all waiting tasks.
    func close() {
        state.withLock { $0.isClosed = true }
        didSend(0)
    }
}
