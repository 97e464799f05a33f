public import Basics
public import Contracts
import DequeModule
public import JSONValue
import Logging
public import Messaging
import PhotoModel

/// A publisher of edits that follows each until it is accepted or applied.
///
/// ``run()`` does the work. ``publish(_:)`` sends an edit, and waits while too many are open or too many status updates
/// are unread. ``updates`` delivers each state of each edit once, to one consumer. An edit that is not accepted is sent
/// again with the same id, so restarts of any service lose nothing and apply nothing twice.
public actor EditPublisher {
    private let library: PhotoLibrary
    private let pushers: Instances<Pusher>
    private let window: Int
    private let clock: MonotonicClock
    private var tracker: PublishedEditTracker
    private var isStarted = false
    private var isFinished = false
    private var isPollingAllowed = true
    /// The next change that a caller may be waiting for; replaced when it happens.
    private var nextChange = OneTimeEvent()
    /// Undelivered status updates: at most three for each edit of the window, because ``publish(_:)`` waits for them.
    private(set) var pendingUpdates: Deque<EditStatus> = []
    private var hasEnded = false
    private let wakeup: (stream: AsyncStream<Void>, continuation: AsyncStream<Void>.Continuation)

    /// Status updates as they become known, for one consumer. The sequence ends when ``run()`` ends, or after
    /// ``finish()`` when every edit has reached the goal.
    public nonisolated var updates: StatusUpdates { StatusUpdates(publisher: self) }

    /// - Parameters:
    ///   - goal: the state up to which each edit is followed
    ///   - window: maximum number of open edits, and of undelivered status updates, 1...1000
    /// - Throws: local errors only: no more sockets are available, or the address is invalid
    public init(
        library: PhotoLibrary,
        until goal: PublishGoal = .applied,
        window: Int = 500,
        clock: MonotonicClock = .system
    ) throws(MessagingError) {
        self.library = library
        self.window = min(max(1, window), EditsStatus.maxIDs)
        self.clock = clock
        self.tracker = PublishedEditTracker(goal: goal)
        self.wakeup = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        var pushers: [Pusher] = []
        for address in library.endpoints.edits {
            let security = library.endpoints.security(for: address)
            pushers.append(
                try Pusher(address: address, thread: library.thread, limits: library.limits, security: security)
            )
        }
        self.pushers = Instances(connections: pushers)
    }

    /// Number of published edits that have not reached the goal.
    public var open: Int { tracker.count }

    /// Publishes an edit; waits while too many edits are open or too many status updates are unread.
    ///
    /// - Throws: `id_reused` if an edit with this id is open here; `user_cancelled` if the task is cancelled
    public func publish(_ edit: PublishEdit) async throws(RPCError) {
        while tracker.count >= window || pendingUpdates.count >= window || !isStarted {
            await nextChange.waitUnlessCancelled()
            if Task.isCancelled { throw ErrorCode.userCancelled.error("the waiting task was cancelled") }
        }
        guard tracker.add(edit, now: clock.nowMicroseconds()) else {
            throw ErrorCode.idReused.error("the id \(edit.id) is used twice; use a new id for each edit")
        }
        try await pushers.choose(for: edit.asset, within: .seconds(1)).connection.push([edit.frame])
        wakeup.continuation.yield()
    }

    /// Declares that no further edit will be published.
    public func finish() {
        isFinished = true
        endIfDone()
    }

    /// Follows the edits until ``finish()`` was called and all have reached the goal, or the task is cancelled.
    ///
    /// - Throws: permanent errors of the feed
    public func run() async throws(RPCError) {
        let feed = await beginFeed()
        isStarted = true
        signalChange()
        await withDiscardingTaskGroup { group in
            if let feed { group.addTask { await self.listen(to: feed) } }
            group.addTask { await self.tick() }
            while !Task.isCancelled, !(isFinished && tracker.count == 0) {
                let change = self.nextChange
                await self.pollDueEdits()
                await change.waitUnlessCancelled()
            }
            group.cancelAll()
        }
        end()
        for pusher in pushers.connections { await pusher.close() }
    }

    /// Requests the states of the open edits once, for callers that stop early; ``updates`` delivers new states.
    public func requestStates(deadline: Duration) async {
        let ids = tracker.ids
        guard !ids.isEmpty,
            let states = try? await library.catalog.ask(EditsStatus(ids: ids), deadline: deadline).result
        else { return }
        for status in states.edits { deliver(status) }
    }

    // MARK: Following the feed

    /// Returns the head of the feed before anything is published; nil without access to it, and then states are polled.
    private func beginFeed() async -> ChangeToken? {
        try? await library.withRetries(.seconds(5)) { time throws(RPCError) in
            try await self.library.changeBroker.ask(FeedHeadRequest(), deadline: time).result.token
        }
    }

    private func listen(to token: ChangeToken) async {
        do throws(RPCError) {
            for try await event in library.changes(since: token) {
                switch event {
                case .change(let record): handle(record)
                case .expired: tracker.makeAllDue(now: clock.nowMicroseconds())
                case .caughtUp: continue
                }
                signalChange()
            }
        } catch {
            library.logger.info("feed is unavailable, polling edits instead", metadata: ["error": "\(error.message)"])
        }
    }

    private func handle(_ record: ChangeRecord) {
        for edit in record.edits {
            if isPollingAllowed {
                tracker.makeDue(edit.id, now: clock.nowMicroseconds())
            } else if edit.refusedDigest == nil {
                deliver(EditStatus(edit: edit, sequence: record.sequence, digest: ""))
            }
        }
    }

    // MARK: Polling

    private func pollDueEdits() async {
        while !Task.isCancelled {
            let due = tracker.dequeueDue(now: clock.nowMicroseconds(), limit: EditsStatus.maxIDs)
            guard !due.isEmpty else { return }
            var unknown = due
            do throws(RPCError) {
                let states = try await library.catalog.ask(EditsStatus(ids: due), deadline: .seconds(5)).result
                unknown = states.unknown
                isPollingAllowed = true
                for status in states.edits { deliver(status) }
            } catch {
                // The states are unknown; sending the edits again is harmless.
                if error.errorCode == .accessDenied || error.errorCode == .deadlineExceeded { isPollingAllowed = false }
            }
            // Messages that are still queued here need not be sent again.
            var idle: Set<EndpointAddress> = []
            for pusher in pushers.connections where await pusher.metrics()["outboxBytes"]?.intValue == 0 {
                idle.insert(pusher.address)
            }
            for id in unknown {
                guard let edit = tracker.editToResend(id) else { continue }
                let pusher = await pushers.choose(for: edit.asset, within: .zero).connection
                if idle.contains(pusher.address) { try? await pusher.push([edit.frame]) }
            }
        }
    }

    private func deliver(_ status: EditStatus) {
        guard let update = tracker.update(status) else { return }
        pendingUpdates.append(update)
        endIfDone()
        signalChange()
    }

    private func endIfDone() {
        if isFinished, tracker.count == 0 { end() }
    }

    private func end() {
        hasEnded = true
        signalChange()
    }

    /// Returns the next status update; nil after the last, or if the task is cancelled.
    fileprivate func next() async -> EditStatus? {
        while pendingUpdates.isEmpty, !hasEnded, !Task.isCancelled { await nextChange.waitUnlessCancelled() }
        guard let status = pendingUpdates.popFirst() else { return nil }
        signalChange()
        return status
    }

    // MARK: Waiting

    /// Wakes waiting callers when the next poll is due.
    private func tick() async {
        var wakeup = wakeup.stream.makeAsyncIterator()
        while !Task.isCancelled {
            guard let due = tracker.nextDue else {
                if await wakeup.next(isolation: #isolation) == nil { return }
                continue
            }
            // Polls that are due within 20 ms are combined into one request.
            await TaskDelay.until(max(due, clock.nowMicroseconds() + 20_000), of: clock)
            signalChange()
        }
    }

    private func signalChange() {
        let change = nextChange
        nextChange = OneTimeEvent()
        change.signal()
    }
}

extension EditPublisher {
    /// Status updates of edits. If they are not read, ``EditPublisher/publish(_:)`` waits.
    public struct StatusUpdates: AsyncSequence, Sendable {
        fileprivate let publisher: EditPublisher

        public func makeAsyncIterator() -> Iterator { Iterator(publisher: publisher) }

        public struct Iterator: AsyncIteratorProtocol {
            fileprivate let publisher: EditPublisher

            public mutating func next() async -> EditStatus? { await publisher.next() }
        }
    }
}
