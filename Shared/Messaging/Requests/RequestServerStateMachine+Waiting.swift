import Basics
import DequeModule
import JSONValue

// MARK: - Requests above the number that may be open

/// Requests that arrive while a connection, or the service, has as many open requests as it may have. They are queued
/// until others have ended, so that a client may send a burst of requests without counting them.
///
/// A ROUTER socket cannot stop reading from one peer, so the server reads on and queues requests, up to
/// ``MessagingLimits/waitingRequestsPerConnection`` and the connection's part of the memory. Further ones are answered
/// with `busy`. Connections take turns: one with many waiting requests delays the others by no more than one with few.
extension RequestServerStateMachine {
    /// Returns true if a request of the connection may be opened.
    ///
    /// A task may still be running after its request was answered and the next request was opened.
    func hasCapacity(_ connection: Connection) -> Bool {
        (running < limits.requests || isAlwaysAdmitted(connection)) && hasOwnCapacity(connection)
    }

    private func isAlwaysAdmitted(_ connection: Connection) -> Bool { connection.running < limits.requestsAlways }

    private func hasOwnCapacity(_ connection: Connection) -> Bool {
        connection.open.count < limits.requestsPerConnection
            && connection.running < 2 * limits.requestsPerConnection
    }

    /// Queues a request until others have ended.
    ///
    /// - Returns: false if the connection or the service has already queued as much as it may
    mutating func wait(
        _ request: RPCMessage.Request,
        _ message: IncomingMessage,
        _ recipient: Recipient,
        at now: Int64
    ) -> Bool {
        let connection = recipient.connection
        guard connection.waiting.queueLength < limits.waitingRequestsPerConnection, connection.part.requestsMayWait
        else { return false }
        var message = message
        message.frames.removeFirst()
        message.reservation?.addWaiting()
        let deadline = request.deadline.map { now.addingClamped($0) } ?? .max
        if connection.waiting.isEmpty { connection.lastStart = now }
        connection.waiting.append(
            .init(request: request, message: message, prefix: recipient.prefix, deadline: deadline)
        )
        waitingCount += 1
        metrics.requestsWaited += 1
        nextWaitingCheck = min(nextWaitingCheck, deadline, stallTime(of: connection))
        offerTurn(to: connection)
        return true
    }

    /// True if a waiting request may be opened now.
    var mayOpenWaiting: Bool { nextTurn != nil }

    /// The index in ``turns`` of the next connection that may open a request; nil if none may now.
    private var nextTurn: Int? {
        guard running >= limits.requests else { return turns.isEmpty ? nil : turns.startIndex }
        return turns.firstIndex { connections[$0].map(isAlwaysAdmitted) ?? false }
    }

    /// Returns the decision about the next waiting request that may be opened; nil if there is none.
    mutating func nextWaiting(at now: Int64) -> Decision? {
        while let turn = nextTurn {
            let id = turns.remove(at: turn)
            guard let connection = connections[id] else { continue }
            connection.hasTurn = false
            guard hasOwnCapacity(connection), let entry = connection.waiting.popFirst() else { continue }
            waitingCount -= 1
            connection.lastStart = now
            offerTurn(to: connection)
            let recipient = Recipient(connection: connection, prefix: entry.prefix)
            guard entry.deadline > now else {
                return .respond(
                    ServerResponse(content: .error(Self.lateError), id: entry.request.id, recipient: recipient)
                )
            }
            var request = entry.request
            // The time until the deadline began when the request arrived.
            if request.deadline != nil { request.deadline = entry.deadline - now }
            return decisionToRun(request, entry.message, attachments: entry.message.frames, recipient, at: now)
        }
        return nil
    }

    /// Adds a connection to those whose next waiting request may be opened.
    mutating func offerTurn(to connection: Connection) {
        guard !connection.hasTurn, !connection.waiting.isEmpty, hasOwnCapacity(connection) else { return }
        connection.hasTurn = true
        turns.append(connection.id)
    }

    /// Removes the waiting requests whose deadline has passed, and those without a deadline if none of their
    /// connection's requests could be opened for ``MessagingLimits/defaultDeadline``. Returns their responses.
    mutating func expiredWaiting(at now: Int64) -> [ServerResponse] {
        guard now >= nextWaitingCheck else { return [] }
        let (busy, maxWait) = (busy, limits.defaultDeadline.microseconds)
        let responses = removeWaiting { connection, entry in
            if entry.deadline <= now { return Self.lateError }
            return entry.deadline == .max && connection.lastStart.addingClamped(maxWait) <= now ? busy : nil
        }
        nextWaitingCheck = .max
        if waitingCount > 0 {
            for connection in connections.byRouting.values where !connection.waiting.isEmpty {
                let next = min(connection.waiting.earliestDeadline, stallTime(of: connection))
                nextWaitingCheck = min(nextWaitingCheck, max(next, now.addingClamped(Self.waitingCheckPause)))
            }
        }
        return responses
    }

    /// Removes the waiting requests for which `error` returns one, and returns their responses.
    mutating func removeWaiting(_ error: (Connection, WaitingRequests.Entry) -> RPCError?) -> [ServerResponse] {
        guard waitingCount > 0 else { return [] }
        var responses: [ServerResponse] = []
        for connection in connections.byRouting.values where !connection.waiting.isEmpty {
            for (entry, error) in connection.waiting.removeAll(with: { error(connection, $0) }) {
                let recipient = Recipient(connection: connection, prefix: entry.prefix)
                responses.append(ServerResponse(content: .error(error), id: entry.request.id, recipient: recipient))
            }
        }
        waitingCount -= responses.count
        return responses
    }

    /// Removes all waiting requests of a server that stops, and returns their responses.
    mutating func stopWaiting() -> [ServerResponse] { removeWaiting { _, _ in Self.stopping } }

    /// The error of a request that can be neither opened nor queued.
    var busy: RPCError {
        .busy(
            "a connection has at most \(limits.requestsPerConnection) open requests and the service \(limits.requests), "
                + "and \(limits.waitingRequestsPerConnection) of a connection wait for them, for at most "
                + "\(limits.defaultDeadline.microseconds / 1_000_000) s without any progress; wait for responses, and "
                + "use a separate connection for streams"
        )
    }

    /// The time at which a connection's waiting requests end if none of them could be opened before.
    private func stallTime(of connection: Connection) -> Int64 {
        connection.lastStart.addingClamped(limits.defaultDeadline.microseconds)
    }

    /// The shortest time between two scans of all waiting requests, in microseconds.
    private static var waitingCheckPause: Int64 { 100_000 }

    static var lateError: RPCError {
        .deadlineExceeded("the deadline has passed; send the request with a longer deadlineMs")
    }

    static var stopping: RPCError { .busy("the service is stopping; connect again later").ofStoppingService }
}

// MARK: - The waiting requests of a connection

/// Requests of one connection that wait until others have ended, in the order of their arrival.
struct WaitingRequests {
    /// A decoded request, without the bytes of its JSON frame.
    struct Entry {
        var request: RPCMessage.Request
        /// The attachments and the reserved memory.
        let message: IncomingMessage
        /// The frames that precede every response to it.
        let prefix: [Bytes]
        /// The deadline that the request names, counted from its arrival; `.max` if it names none.
        let deadline: Int64
    }

    private var entries: [JSON: Entry] = [:]
    /// The ids in the order of arrival, also of requests that were removed meanwhile.
    private var order: Deque<JSON> = []

    var isEmpty: Bool { entries.isEmpty }
    var count: Int { entries.count }
    /// The length of the queue. A removed request stays in it until its turn comes, or until no request waits.
    var queueLength: Int { order.count }

    subscript(id: JSON) -> Entry? { entries[id] }

    mutating func append(_ entry: Entry) {
        entries[entry.request.id] = entry
        order.append(entry.request.id)
    }

    mutating func popFirst() -> Entry? {
        defer { clearQueueIfEmpty() }
        while let id = order.popFirst() {
            if let entry = entries.removeValue(forKey: id) { return entry }
        }
        return nil
    }

    mutating func remove(_ id: JSON) -> Entry? {
        defer { clearQueueIfEmpty() }
        return entries.removeValue(forKey: id)
    }

    /// Clears the queue of removed requests if no request waits: the connection then has no turn at which they would be
    /// removed from it.
    private mutating func clearQueueIfEmpty() { if entries.isEmpty { order = [] } }

    /// Adds credit to a waiting request; returns false if it was not sent with credit.
    mutating func addCredit(_ bytes: Int, to id: JSON, limit: Int) -> Bool {
        guard let credit = entries[id]?.request.credit else { return false }
        entries[id]?.request.credit = min(limit, credit.addingClamped(bytes))
        return true
    }

    /// Removes and returns the requests for which `error` returns one, in no particular order. It is called once for
    /// each request, because its result may change meanwhile.
    mutating func removeAll(with error: (Entry) -> RPCError?) -> [(entry: Entry, error: RPCError)] {
        var ending: [(entry: Entry, error: RPCError)] = []
        for entry in entries.values {
            if let error = error(entry) { ending.append((entry, error)) }
        }
        for (entry, _) in ending { entries[entry.request.id] = nil }
        clearQueueIfEmpty()
        return ending
    }

    /// The earliest deadline that a request names; `.max` if none does.
    var earliestDeadline: Int64 { entries.values.reduce(.max) { min($0, $1.deadline) } }
}
