import Basics
import JSONValue
import Synchronization

/// The queue of commands from callers to the poll thread, read in batches. It is bounded by the capacity that each call
/// acquires before.
final class ClientOutbox: Sendable {
    private struct State {
        var commands: [ClientCommand] = []
        var isClosed = false
    }

    /// Capacity for requests that are not sent yet, in bytes.
    let outboxSemaphore: ByteSemaphore
    private let state = Mutex(State())
    private let lastID = Atomic<Int64>(0)
    private let wakeup: PollWakeup

    init(wakeup: PollWakeup, bytes: Int) {
        self.wakeup = wakeup
        self.outboxSemaphore = ByteSemaphore(available: bytes, maxAvailable: bytes)
    }

    func nextID() -> Int64 { lastID.wrappingAdd(1, ordering: .relaxed).newValue }

    /// Appends a command.
    ///
    /// - Returns: `false` if the client is closed.
    @discardableResult
    func post(_ command: ClientCommand) -> Bool {
        let isTaken = state.withLock { state in
            guard !state.isClosed else { return false }
            state.commands.append(command)
            return true
        }
        if isTaken { wakeup.signal() }
        return isTaken
    }

    func drain() -> [ClientCommand] {
        state.withLock { state in
            defer { state.commands = [] }
            return state.commands
        }
    }

    /// Closes the queue and returns what was in it.
    func close() -> [ClientCommand] {
        outboxSemaphore.close()
        return state.withLock { state in
            state.isClosed = true
            defer { state.commands = [] }
            return state.commands
        }
    }
}
