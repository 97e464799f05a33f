public import Contracts
import DequeModule
import JSONValue
import Logging
public import Messaging
import PhotoModel
import Synchronization

/// Publishes edits and follows each until it is accepted or applied (DESIGN 3.5).
///
/// ``run()`` does the work; ``publish(_:)`` hands an edit over and waits while too many are open or untold; ``news`` tells
/// each state of each edit once, to one reader. What was handed over and not accepted is sent again under its id, so
/// restarts of any service lose nothing and do nothing twice.
public actor EditPublisher {
    private let library: PhotoLibrary
    private let pusher: Pusher
    private let window: Int
    private let clock: MonotonicClock
    private var ledger: EditLedger
    private var isStarted = false
    private var isFinished = false
    private var mayAsk = true
    /// Grows with every change that somebody may wait for.
    private var version: UInt64 = 0
    private var nextWaiter: UInt64 = 0
    private nonisolated let waiters = Mutex<[UInt64: CheckedContinuation<Void, Never>]>([:])
    /// News that nobody has taken yet: at most three for each edit of the window, because ``publish(_:)`` waits for them.
    private(set) var untold: Deque<EditStatus> = []
    private var isOver = false
    private let bell: (stream: AsyncStream<Void>, continuation: AsyncStream<Void>.Continuation)

    /// States of edits as they become known, for one reader; ends after ``finish()`` when every edit has come as far as is
    /// waited for, and with ``run()``.
    public nonisolated var news: News { News(publisher: self) }

    /// - Parameters:
    ///   - goal: how far each edit is followed
    ///   - window: edits that may be open, and news that may wait for their reader, 1 to 1000
    /// - Throws: only what is wrong with this side: no socket is left, or the address cannot be used
    public init(
        library: PhotoLibrary,
        until goal: PublishGoal = .applied,
        window: Int = 500,
        clock: MonotonicClock = .system
    ) throws(MessagingError) {
        self.library = library
        self.window = min(max(1, window), EditsStatus.maxIDs)
        self.clock = clock
        self.ledger = EditLedger(goal: goal)
        self.bell = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        self.pusher = try Pusher(
            address: library.endpoints.edits,
            thread: library.thread,
            limits: library.limits,
            security: library.endpoints.security(for: library.endpoints.edits)
        )
    }

    /// Edits that were handed over and have not come as far as is waited for.
    public var open: Int { ledger.count }

    /// Hands an edit over; waits while too many are open, or too much of what became of others was not read.
    ///
    /// - Throws: `id_reused` where an edit of this id is open here; `user_cancelled` when the task is cancelled
    public func publish(_ edit: PublishEdit) async throws(RPCError) {
        while ledger.count >= window || untold.count >= window || !isStarted {
            await change(after: version)
            if Task.isCancelled { throw Refusal.userCancelled.error("the task that waited was cancelled") }
        }
        guard ledger.add(edit, now: clock.nowMicroseconds()) else {
            throw Refusal.idReused.error("the id \(edit.id) stands twice; take a new id for each edit")
        }
        try await pusher.push([edit.frame])
        bell.continuation.yield()
    }

    /// No further edit comes.
    public func finish() {
        isFinished = true
        endIfDone()
    }

    /// Follows the edits until all have come as far as is waited for, or the task is cancelled.
    ///
    /// - Throws: the feed's refusal, where that is no matter of waiting
    public func run() async throws(RPCError) {
        let feed = await beginFeed()
        isStarted = true
        somethingChanged()
        await withDiscardingTaskGroup { group in
            if let feed { group.addTask { await self.listen(to: feed) } }
            group.addTask { await self.tick() }
            while !Task.isCancelled, !(isFinished && ledger.count == 0) {
                let seen = self.version
                await self.askForDue()
                await self.change(after: seen)
            }
            group.cancelAll()
        }
        end()
        await pusher.close()
    }

    /// Asks once more where the open edits stand, for whoever stops before their end; ``news`` tells what is new.
    public func ask(deadline: Duration) async {
        let ids = ledger.ids
        guard !ids.isEmpty,
            let answer = try? await library.catalog.ask(EditsStatus(ids: ids), deadline: deadline).result
        else { return }
        for status in answer.edits { tell(status) }
    }

    // MARK: Hearing

    /// Where the feed stands before anything is published; nil where this client may not ask, and then it polls.
    private func beginFeed() async -> ChangeToken? {
        try? await library.retrying(.seconds(5)) { time throws(RPCError) in
            try await self.library.changeBroker.ask(FeedHeadRequest(), deadline: time).result.token
        }
    }

    private func listen(to token: ChangeToken) async {
        do throws(RPCError) {
            for try await event in library.changes(since: token) {
                switch event {
                case .change(let record): hear(record)
                case .expired: ledger.heardOfAll(now: clock.nowMicroseconds())
                case .caughtUp: continue
                }
                somethingChanged()
            }
        } catch {
            library.logger.info("no feed, edits are asked for instead", metadata: ["why": "\(error.message)"])
        }
    }

    private func hear(_ record: ChangeRecord) {
        for edit in record.edits {
            if mayAsk {
                ledger.heard(of: edit.id, now: clock.nowMicroseconds())
            } else if edit.refusedDigest == nil {
                tell(EditStatus(edit: edit, sequence: record.sequence, digest: ""))
            }
        }
    }

    // MARK: Asking

    private func askForDue() async {
        while !Task.isCancelled {
            let due = ledger.takeDue(now: clock.nowMicroseconds(), limit: EditsStatus.maxIDs)
            guard !due.isEmpty else { return }
            var unknown = due
            do throws(RPCError) {
                let answer = try await library.catalog.ask(EditsStatus(ids: due), deadline: .seconds(5)).result
                unknown = answer.unknown
                mayAsk = true
                for status in answer.edits { tell(status) }
            } catch {
                // Whether they are known is unknown: sent again they do no harm.
                if error.refusal == .accessDenied || error.refusal == .deadlineExceeded { mayAsk = false }
            }
            // What still waits to leave need not be sent twice.
            guard await pusher.figures()["outboxBytes"]?.intValue == 0 else { continue }
            for id in unknown {
                guard let edit = ledger.unknown(id) else { continue }
                try? await pusher.push([edit.frame])
            }
        }
    }

    private func tell(_ status: EditStatus) {
        guard let news = ledger.take(status) else { return }
        untold.append(news)
        endIfDone()
        somethingChanged()
    }

    private func endIfDone() {
        if isFinished, ledger.count == 0 { end() }
    }

    private func end() {
        isOver = true
        somethingChanged()
    }

    /// The next state that became known; nil after the last one, and when the task is cancelled.
    fileprivate func next() async -> EditStatus? {
        while untold.isEmpty, !isOver, !Task.isCancelled { await change(after: version) }
        guard let status = untold.popFirst() else { return nil }
        somethingChanged()
        return status
    }

    // MARK: Waiting

    /// Rings when the next question is due.
    private func tick() async {
        var bell = bell.stream.makeAsyncIterator()
        while !Task.isCancelled {
            guard let due = ledger.nextDue else {
                if await bell.next(isolation: #isolation) == nil { return }
                continue
            }
            // What is due at once is asked about together.
            await Waiting.until(max(due, clock.nowMicroseconds() + 20_000), of: clock)
            somethingChanged()
        }
    }

    /// Waits until something has changed since then, or the task is cancelled.
    private func change(after seen: UInt64) async {
        guard version == seen else { return }
        nextWaiter += 1
        let waiter = nextWaiter
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isOver = waiters.withLock { waiters in
                    if Task.isCancelled { return true }
                    waiters[waiter] = continuation
                    return false
                }
                if isOver { continuation.resume() }
            }
        } onCancel: {
            waiters.withLock { $0.removeValue(forKey: waiter) }?.resume()
        }
    }

    private func somethingChanged() {
        version += 1
        let all = waiters.withLock { waiters in
            defer { waiters = [:] }
            return waiters.values
        }
        for waiter in all { waiter.resume() }
    }
}

extension EditPublisher {
    /// What became of edits, one state after the other. It waits for its reader, and ``EditPublisher/publish(_:)`` with it.
    public struct News: AsyncSequence, Sendable {
        fileprivate let publisher: EditPublisher

        public func makeAsyncIterator() -> Iterator { Iterator(publisher: publisher) }

        public struct Iterator: AsyncIteratorProtocol {
            fileprivate let publisher: EditPublisher

            public mutating func next() async -> EditStatus? { await publisher.next() }
        }
    }
}
