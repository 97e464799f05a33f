import Basics
import Contracts
import Hosting
import JSONValue
import Logging
import Messaging
import PhotoClient
import PhotoModel

/// Receives the edits that are pushed to the editor, and applies them.
///
/// An edit is first committed to the catalog as accepted; from then on the catalog stores it, and a restarted editor
/// resumes it from there. This actor carries out the decisions of ``EditQueue`` and keeps no state that must survive.
/// While its queue is full it reads nothing, and publishers wait.
actor PublishedEditProcessor {
    let catalog: CatalogConnection
    private let processor: EditProcessor
    private let inboxes: [Puller]
    private let limit: Int
    /// The maximum number of edits of a lane that run at the same time, except of videos.
    private let width: Int
    let metrics: PublishMetrics
    private let access: PublishingAccess
    private let logger: Logger
    let throttledLog: ThrottledLog
    private let clock: MonotonicClock

    private var queue: EditQueue
    /// Short requests to the catalog.
    private var catalogTasks: [CatalogTask] = []
    private var running: [EditLane: Int] = [:]
    private var runningCatalogTasks = 0
    private var accepting = 0
    /// The publishers whose edits at other editors are followed.
    private var followed: Set<String> = []

    private let wakeup = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    private let deadlines = AsyncStream.makeStream(of: Int64.self)
    private let capacitySignals: [(stream: AsyncStream<Void>, continuation: AsyncStream<Void>.Continuation)]

    private static let maxConcurrentAccepts = 32
    private static let maxCatalogTasks = 32
    /// One video is rendered while another one is committed.
    private static let videoLaneWidth = 2

    private enum CatalogTask: Sendable {
        case lookUp(EditKey, predecessor: EditKey)
        case end(EditQueue.Failure)
    }

    init(
        catalog: CatalogConnection,
        processor: EditProcessor,
        inboxes: [Puller],
        limit: Int,
        width: Int,
        rules: EditQueue.Limits,
        metrics: PublishMetrics,
        access: PublishingAccess = .everyone,
        clock: MonotonicClock = .system,
        logger: Logger
    ) {
        self.catalog = catalog
        self.processor = processor
        self.inboxes = inboxes
        self.limit = limit
        self.width = width
        self.queue = EditQueue(limits: rules)
        self.metrics = metrics
        self.access = access
        self.clock = clock
        self.logger = logger
        self.throttledLog = ThrottledLog(logger, clock: clock)
        self.capacitySignals = inboxes.map { _ in
            AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        }
    }

    /// Processes edits until cancelled; edits in progress are resumed at the next start.
    func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.receive() }
            group.addTask { await self.claimAbandoned() }
            group.addTask { await self.expireOverdue() }
            for await _ in wakeup.stream {
                while runningCatalogTasks < Self.maxCatalogTasks, let catalogTask = catalogTasks.first {
                    catalogTasks.removeFirst()
                    runningCatalogTasks += 1
                    group.addTask { await self.perform(catalogTask) }
                }
                for publisher in queue.publishersWaiting where followed.insert(publisher).inserted {
                    group.addTask { await self.follow(publisher) }
                }
                while let edit = queue.next(in: openLanes) {
                    running[edit.lane, default: 0] += 1
                    group.addTask {
                        await WorkSource.$current.withValue(.identity(edit.key.publisher)) { await self.perform(edit) }
                    }
                }
            }
            group.cancelAll()
        }
        for inbox in inboxes { await inbox.close() }
    }

    /// The lanes in which another edit may run.
    private var openLanes: Set<EditLane> {
        Set(EditLane.allCases.filter { running[$0, default: 0] < ($0 == .video ? Self.videoLaneWidth : width) })
    }

    /// Returns the queue's metrics as JSON; times in milliseconds.
    func json() async -> JSONObject {
        let current = queue.metrics
        var json = metrics.json
        json["waiting"] = JSON(current.waiting)
        json["ready"] = JSON(current.ready)
        json["running"] = JSON(current.running)
        json["oldestMilliseconds"] = .int(current.oldest.map { (clock.nowMicroseconds() - $0) / 1000 } ?? 0)
        json["limit"] = JSON(limit)
        for (name, inbox) in zip(["local", "tcp"], inboxes) { json[name] = .object(await inbox.metrics()) }
        return json
    }

    // MARK: Receiving

    private func receive() async {
        await resumeAllPending()
        await withDiscardingTaskGroup { group in
            for index in inboxes.indices { group.addTask { await self.read(index) } }
        }
    }

    /// Loads the edits that an earlier process of this editor accepted and did not finish, and those without an editor.
    private func resumeAllPending() async {
        var position: Int64?
        var tries = EditRetryPolicy()
        while !Task.isCancelled {
            do throws(RPCError) {
                let page = try await catalog.claim(after: position)
                for pending in page.edits { resumePending(pending) }
                guard let next = page.next else { return }
                position = next
            } catch {
                // Without them the order of edits would be lost, so no message is read before.
                throttledLog.warning("accepted edits could not be loaded; trying again", ["error": "\(error.message)"])
                await TaskDelay.retryDelay(tries.retryDelay(after: error))
            }
        }
    }

    /// Takes over the edits of other editors that have stopped.
    private func claimAbandoned() async {
        var tries = EditRetryPolicy()
        while !Task.isCancelled {
            do throws(RPCError) {
                for pending in try await catalog.claimAbandoned() { resumePending(pending) }
                tries = EditRetryPolicy()
            } catch {
                await TaskDelay.retryDelay(tries.retryDelay(after: error))
            }
        }
    }

    private func resumePending(_ pending: PendingEdit) {
        let accepted = pending.accepted
        let key = EditKey(publisher: pending.publisher, id: accepted.id)
        do throws(JSONProblem) {
            let edit = try PublishEdit(json: accepted.content)
            metrics.resumed.add()
            add(QueuedEdit(key: key, edit: edit, digest: accepted.digest, isShared: true))
        } catch {
            let blank = PublishEdit(id: key.id, asset: accepted.asset, adjustments: AdjustmentList())
            catalogTasks.append(
                .end(
                    EditQueue.Failure(
                        edit: QueuedEdit(key: key, edit: blank, digest: accepted.digest),
                        errorCode: .invalidParams,
                        message: "the edit was accepted by another version of the editor: \(error.description)"
                    )
                )
            )
            wakeup.continuation.yield()
        }
    }

    private func read(_ index: Int) async {
        var capacitySignal = capacitySignals[index].stream.makeAsyncIterator()
        await withTaskGroup(of: Void.self) { group in
            var taskCount = 0
            for await message in inboxes[index].messages {
                metrics.received.add()
                while queue.count + accepting >= limit {
                    guard await capacitySignal.next(isolation: #isolation) != nil else { return }
                }
                if taskCount == Self.maxConcurrentAccepts {
                    await group.next()
                    taskCount -= 1
                }
                taskCount += 1
                accepting += 1
                group.addTask { await self.receive(message) }
            }
        }
    }

    private func receive(_ message: PulledMessage) async {
        // No suspension for known identities, because edits are accepted in the order of their messages.
        let known = access.known(message.identity)
        let permission: Permission? = if let known { known } else { await access.ask(message.identity) }
        guard let permission, permission.allows(.view) else {
            access.countRefusal(message.identity)
            // Recording its outcome would be a change of the library, which the identity may not make either.
            metrics.denied.add()
            throttledLog.warning(
                "a published edit was dropped: its publisher may not change the library",
                ["identity": "\(message.identity)"]
            )
            accepting -= 1
            return signalCapacity()
        }
        switch PublishedEditMessage(frames: message.frames) {
        case .edit(let edit, let params):
            let key = EditKey(publisher: message.identity, id: edit.id)
            let queued = QueuedEdit(key: key, edit: edit, digest: EditDigest.of(published: params))
            await accept(queued, params, isLimited: !permission.seesEverything)
        case .malformed(let malformed):
            let key = EditKey(publisher: message.identity, id: malformed.id)
            let blank = PublishEdit(
                id: malformed.id,
                asset: malformed.asset,
                adjustments: AdjustmentList(),
                after: malformed.predecessor
            )
            let queued = QueuedEdit(key: key, edit: blank, digest: EditDigest.of(published: malformed.params))
            await refuse(queued, malformed.error)
        case .unreadable(let error):
            metrics.unreadable.add()
            throttledLog.warning(
                "a pushed message is not a valid edit and has no id to fail",
                ["identity": "\(message.identity)", "error": "\(error.message)"]
            )
        }
        accepting -= 1
        signalCapacity()
    }

    /// Commits an edit to the catalog as accepted, and adds it to the queue.
    ///
    /// - Parameter isLimited: true if the publisher may use a part of the queue only
    private func accept(_ queued: QueuedEdit, _ params: JSON, isLimited: Bool) async {
        // Received again while queued: the catalog need not be asked.
        if queue.digest(of: queued.key) == queued.digest { return metrics.repeated.add() }
        let isFull = isLimited && queue.isFull(for: queued.key.publisher) && queue.count + accepting >= limit / 2
        var tries = EditRetryPolicy()
        while !Task.isCancelled {
            do throws(RPCError) {
                // It cannot wait in the socket, where the edits of others would wait behind it. Because no failure is
                // recorded, it is accepted when it is sent again.
                if isFull, try await catalog.state(of: queued.key) == nil { return metrics.setAside.add() }
                if try await catalog.accept(queued, content: params.canonical).isChanged {
                    metrics.accepted.add()
                    add(queued)
                } else {
                    metrics.repeated.add()
                    // Accepted by an attempt whose response was lost, or finished long ago.
                    if try await catalog.state(of: queued.key) == .accepted { add(queued) }
                }
                return
            } catch {
                if error.errorCode == .idReused {
                    metrics.reused.add()
                    _ = await end(queued, error, isAccepted: false)
                    return
                }
                guard case .again(let delay) = tries.next(after: error, isConditional: true) else {
                    metrics.setAside.add()
                    throttledLog.warning("a published edit was not accepted", queued.metadata(error))
                    return
                }
                await TaskDelay.retryDelay(delay)
            }
        }
    }

    /// Records the failure of an edit that is not accepted.
    private func refuse(_ queued: QueuedEdit, _ error: RPCError) async {
        // The id may belong to another edit, which then continues.
        guard let state = await end(queued, error, isAccepted: false), !queue.contains(queued.key) else { return }
        finish(queued.key, state)
    }

    private func add(_ queued: QueuedEdit) {
        switch queue.add(queued, now: clock.nowMicroseconds()) {
        case .known: return
        case .queued: break
        case .lookUp(let predecessor): catalogTasks.append(.lookUp(queued.key, predecessor: predecessor))
        case .fails(let failure): catalogTasks.append(.end(failure))
        }
        wakeup.continuation.yield()
    }

    // MARK: Applying

    private func perform(_ queued: QueuedEdit) async {
        var tries = EditRetryPolicy()
        while !Task.isCancelled {
            do throws(RPCError) {
                if queued.isShared, let ended = await ending(of: queued.key) {
                    finish(queued.key, ended)
                    break
                }
                try await processor.apply(queued)
                metrics.applied.add()
                finish(queued.key, .applied)
                break
            } catch {
                if Task.isCancelled { break }
                if let moved = queued.moved(after: error) {
                    queue.postpone(moved)
                    break
                }
                // The response may have been lost, not the change; or the library was replaced by another one.
                if let ended = await ending(of: queued.key) {
                    if ended == .applied { metrics.applied.add() }
                    finish(queued.key, ended)
                    break
                }
                switch tries.next(after: error, isConditional: queued.edit.ifContentRevision != nil) {
                case .again(let delay):
                    logger.debug("a published edit failed; trying again", metadata: queued.metadata(error))
                    await TaskDelay.retryDelay(delay)
                    continue
                case .fails:
                    if let state = await end(queued, error) { finish(queued.key, state) }
                }
                break
            }
        }
        running[queued.lane, default: 0] -= 1
        wakeup.continuation.yield()
    }

    private func perform(_ catalogTask: CatalogTask) async {
        switch catalogTask {
        case .lookUp(let key, let predecessor):
            var tries = EditRetryPolicy()
            while !Task.isCancelled {
                do throws(RPCError) {
                    let state = try await catalog.state(of: predecessor)
                    update(key, predecessor: state)
                    break
                } catch {
                    // An error does not mean that the predecessor is unknown: the edit would fail for the wrong reason.
                    await TaskDelay.retryDelay(tries.retryDelay(after: error))
                }
            }
        case .end(let failure):
            if let state = await end(failure.edit, failure.errorCode.error(failure.message)) {
                finish(failure.edit.key, state)
            }
        }
        runningCatalogTasks -= 1
        wakeup.continuation.yield()
    }

    private func update(_ key: EditKey, predecessor state: PublishedEditState?) {
        let failure = queue.update(key, predecessor: state, now: clock.nowMicroseconds())
        if let failure { catalogTasks.append(.end(failure)) }
        if let deadline = queue.deadline(of: key) { deadlines.continuation.yield(deadline) }
    }

    /// Follows the predecessors that another editor has, or that are not published yet, until no edit here waits for
    /// them.
    private func follow(_ publisher: String) async {
        var tries = EditRetryPolicy()
        while !Task.isCancelled {
            let ids = queue.awaited(of: publisher).prefix(EditsStatus.maxIDs)
            guard !ids.isEmpty else { break }
            do throws(RPCError) {
                for edit in try await catalog.nextStates(of: Array(ids), publisher) {
                    let key = EditKey(publisher: publisher, id: edit.id)
                    let failures = queue.note(key, edit.state, now: clock.nowMicroseconds())
                    catalogTasks += failures.map { .end($0) }
                }
                wakeup.continuation.yield()
                tries = EditRetryPolicy()
            } catch {
                await TaskDelay.retryDelay(tries.retryDelay(after: error))
            }
        }
        followed.remove(publisher)
        // An edit may have begun to wait meanwhile.
        wakeup.continuation.yield()
    }

    private func finish(_ key: EditKey, _ state: PublishedEditState) {
        catalogTasks += queue.finish(key, state).map { .end($0) }
        signalCapacity()
        wakeup.continuation.yield()
    }

    private func signalCapacity() {
        guard queue.count + accepting < limit else { return }
        for capacitySignal in capacitySignals { capacitySignal.continuation.yield() }
    }

    /// Ends the edits whose predecessor is not published in time. All wait for the same time, so their deadlines are in
    /// the order of arrival.
    private func expireOverdue() async {
        for await deadline in deadlines.stream {
            await TaskDelay.until(deadline, of: clock)
            if Task.isCancelled { return }
            catalogTasks += queue.expire(now: clock.nowMicroseconds()).map { .end($0) }
            wakeup.continuation.yield()
        }
    }
}
