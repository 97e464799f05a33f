import Basics
import JSONValue
import DequeModule
import Synchronization

/// A bounded queue from the poll thread to one reader.
final class Mailbox<Element: Sendable>: Sendable {
    /// The outcome of ``Mailbox/next()``.
    enum ReadResult: Sendable {
        case element(Element)
        /// The mailbox was finished and is empty; the error is nil unless something failed.
        case end(RPCError?)
        /// The reading task was cancelled, or ``Mailbox/endSilentWait()`` ended the wait.
        case cancelled
    }

    private typealias Waiter = Promise<ReadResult>

    private enum Step { case stored, refused, deliver(Waiter) }
    private enum Next { case ready(ReadResult), wait(Waiter) }

    private struct State {
        var elements: Deque<(element: Element, bytes: Int)> = []
        var bytes = 0
        var waiters: Deque<Waiter> = []
        var isFinished = false
        var failure: RPCError?

        /// Set by each call of a reader; ``Mailbox/endSilentWait()`` clears it.
        var hasRead = false

        /// Set while the mailbox is full; the next read clears it and calls the capacity callback.
        var mustReportCapacity = false

        mutating func next() -> ReadResult? {
            if let (element, size) = elements.popFirst() {
                bytes -= size
                return .element(element)
            }
            return isFinished ? .end(failure) : nil
        }
    }

    private let state = Mutex(State())
    private let maxElements: Int
    private let maxBytes: Int

    private let onCapacity: (@Sendable () -> Void)?

    init(maxElements: Int, maxBytes: Int, onCapacity: (@Sendable () -> Void)? = nil) {
        self.maxElements = maxElements
        self.maxBytes = maxBytes
        self.onCapacity = onCapacity
    }

    /// Appends an element. Returns `false` if the mailbox is full or finished; the element is not appended then.
    ///
    /// With `always` it is appended even if the mailbox is full: for elements that must not be lost and occur once.
    func enqueue(_ element: Element, bytes: Int, always: Bool = false) -> Bool {
        let step: Step = state.withLock { state in
            guard !state.isFinished else { return .refused }
            if let waiter = state.waiters.popFirst() { return .deliver(waiter) }
            guard always || (state.elements.count < maxElements && state.bytes.addingClamped(bytes) <= maxBytes) else {
                return .refused
            }
            state.elements.append((element, bytes))
            state.bytes += bytes
            return .stored
        }
        switch step {
        case .stored: return true
        case .refused: return false
        case .deliver(let waiter):
            waiter.fulfill(.element(element))
            return true
        }
    }

    /// Returns whether the mailbox is full; if so, calls the capacity callback as soon as there is space.
    func reportCapacityIfFull() -> Bool {
        state.withLock { state in
            state.mustReportCapacity = state.elements.count >= maxElements || state.bytes >= maxBytes
            return state.mustReportCapacity
        }
    }

    /// Finishes the mailbox. Queued elements can still be read; then readers get the end.
    func finish(_ failure: RPCError? = nil) {
        let waiters = state.withLock { state in
            guard !state.isFinished else { return Deque<Waiter>() }
            state.isFinished = true
            state.failure = failure
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.fulfill(.end(failure)) }
    }

    /// Removes and returns the next element, waiting for it if there is none.
    func next() async -> ReadResult {
        let (next, hasCapacityAgain): (Next, Bool) = state.withLock { state in
            defer { state.mustReportCapacity = false }
            state.hasRead = true
            if let ready = state.next() { return (.ready(ready), state.mustReportCapacity) }
            let waiter = Waiter()
            state.waiters.append(waiter)
            return (.wait(waiter), state.mustReportCapacity)
        }
        if hasCapacityAgain { onCapacity?() }
        switch next {
        case .ready(let result): return result
        case .wait(let waiter): return await waiter.value { self.cancel(waiter) }
        }
    }

    /// Ends the waits that have lasted since before the previous call. No element is lost.
    func endSilentWait() {
        let waiters = state.withLock { state in
            defer { state.hasRead = false }
            guard !state.hasRead else { return Deque<Waiter>() }
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.fulfill(.cancelled) }
    }

    /// Removes a waiter. One that was removed before is about to receive an element, which must not be lost.
    private func cancel(_ waiter: Waiter) {
        let isWaiting = state.withLock { state in
            guard let index = state.waiters.firstIndex(where: { $0 === waiter }) else { return false }
            state.waiters.remove(at: index)
            return true
        }
        if isWaiting { waiter.fulfill(.cancelled) }
    }
}
