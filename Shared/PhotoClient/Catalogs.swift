import Basics
import Contracts
import JSONValue
import Messaging
import Synchronization

/// The connections to the catalogs of one library, at least two: one of them writes, and all of them answer reads.
///
/// A read goes to the catalog that answered the previous one, at first to the first of the list, and to another one at
/// once if that is lost. If there is no answer for a short while, it is sent to another one too, and the first answer
/// counts: a read changes nothing. Everything else goes to the catalog that writes. A standby refuses a change with an
/// error of its own, and then the change is sent to the next catalog.
final class Catalogs: Sendable {
    /// A request to one of them.
    typealias Attempt<Value: Sendable> =
        @Sendable (
            _ connection: RequestClient,
            _ time: Duration,
            _ waitsForConnection: Bool
        ) async throws(RPCError) -> Value

    private struct State {
        /// The indexes of the catalog that has answered a read last, and of the one that has accepted a change last.
        var reader = 0
        var writer = 0
        /// The number of reads that were sent to a second catalog too and have not ended.
        var hedgedReads = 0
    }

    /// The time after which a read is sent to another catalog too.
    private static let hedgingDelay = Duration.milliseconds(300)
    /// The maximum number of reads that wait for two catalogs, so that a slow catalog does not make the others slow.
    private static let maxHedgedReads = 16
    /// The time between two attempts to find the catalog that writes.
    private static let retryDelay = Duration.milliseconds(100)

    let connections: [RequestClient]
    /// A second connection to each catalog, for `health` requests: over the first one they would wait for the open
    /// requests, and a working catalog would seem not to answer.
    private let healthConnections: [RequestClient]
    private let state = Mutex(State())

    /// - Parameter healthConnections: as many as there are catalogs, in the same order
    init(_ connections: [RequestClient], healthConnections: [RequestClient]) {
        (self.connections, self.healthConnections) = (connections, healthConnections)
    }

    func close() async { for connection in healthConnections { await connection.close() } }

    /// Sends a request to a catalog that can answer it.
    ///
    /// - Throws: the catalog's error; if no catalog writes until the deadline, that of a standby
    func send<R: Request, Value: Sendable>(
        _ request: R.Type,
        _ deadline: Duration,
        _ attempt: @escaping Attempt<Value>
    ) async throws(RPCError) -> Value {
        let end = ContinuousClock.now + deadline
        guard let read = request as? any CatalogRead.Type else { return try await change(until: end, attempt) }
        return try await read.mayBeAskedTwice ? readTwice(until: end, attempt) : readOnce(until: end, attempt)
    }

    // MARK: Choice

    private func order(from start: Int) -> [Int] { connections.indices.map { (start + $0) % connections.count } }

    private func usable(from start: Int) -> Int? {
        order(from: start).first { connections[$0].connection.isUsable }
    }

    /// Returns the first catalog from an index on that is connected; waits for one if there is none.
    private func choice(from start: Int, within limit: Duration?) async -> (index: Int, isConnected: Bool) {
        if let index = usable(from: start) { return (index, true) }
        await Instances(connections: connections).waitForAny(within: limit)
        return usable(from: start).map { ($0, true) } ?? (start, false)
    }

    private var reader: Int {
        get { state.withLock { $0.reader } }
        set { state.withLock { $0.reader = newValue } }
    }

    // MARK: Reads

    private enum Event<Value: Sendable>: Sendable {
        case response(Int, Result<Value, RPCError>)
        case hedgingDelayEnded
    }

    private func readTwice<Value>(
        until end: ContinuousClock.Instant,
        _ attempt: @escaping Attempt<Value>
    ) async throws(RPCError) -> Value {
        let first = await choice(from: reader, within: end - .now)
        let result = await withTaskGroup(of: Event<Value>.self) { group -> Result<Value, RPCError> in
            var requested = [first.index]
            var open = 0
            var failure: RPCError?
            func ask(_ index: Int, isConnected: Bool) {
                open += 1
                group.addTask { [connections] in
                    do throws(RPCError) {
                        let value = try await attempt(connections[index], end - .now, !isConnected)
                        return .response(index, .success(value))
                    } catch {
                        return .response(index, .failure(error))
                    }
                }
            }
            func askAnother() {
                let next = order(from: first.index).first {
                    !requested.contains($0) && connections[$0].connection.isUsable
                }
                guard let next else { return }
                requested.append(next)
                ask(next, isConnected: true)
            }
            func startHedgingDelay() { group.addTask { await Self.waitForHedgingDelay() } }
            var isHedged = false
            defer { if isHedged { state.withLock { $0.hedgedReads -= 1 } } }
            ask(first.index, isConnected: first.isConnected)
            startHedgingDelay()
            while let event = await group.next() {
                switch event {
                case .hedgingDelayEnded:
                    if Task.isCancelled || isHedged { continue }
                    isHedged = state.withLock { state in
                        guard state.hedgedReads < Self.maxHedgedReads else { return false }
                        state.hedgedReads += 1
                        return true
                    }
                    if isHedged { askAnother() } else { startHedgingDelay() }
                case .response(let index, .success(let value)):
                    reader = index
                    group.cancelAll()
                    return .success(value)
                case .response(let index, .failure(let error)):
                    open -= 1
                    if failure == nil || index == first.index { failure = error }
                    if error.mayBeDifferentElsewhere {
                        askAnother()
                    } else if index == first.index {
                        open = 0
                    }
                    if open == 0 {
                        group.cancelAll()
                        return .failure(failure ?? error)
                    }
                }
            }
            return .failure(failure ?? .internalError("no catalog was asked"))
        }
        return try result.get()
    }

    private static func waitForHedgingDelay<Value>() async -> Event<Value> {
        _ = await TaskDelay.timeout(hedgingDelay)
        return .hedgingDelayEnded
    }

    private func readOnce<Value>(
        until end: ContinuousClock.Instant,
        _ attempt: @escaping Attempt<Value>
    ) async throws(RPCError) -> Value {
        var failure: RPCError?
        var start = reader
        for _ in connections {
            let choice = await choice(from: start, within: end - .now)
            do throws(RPCError) {
                let value = try await attemptWhileAnswering(choice, until: end, attempt)
                reader = choice.index
                return value
            } catch {
                failure = failure ?? error
                guard error.mayBeDifferentElsewhere else { throw error }
            }
            start = choice.index + 1
        }
        throw failure ?? .internalError("no catalog was asked")
    }

    // MARK: Changes

    private func change<Value>(
        until end: ContinuousClock.Instant,
        _ attempt: @escaping Attempt<Value>
    ) async throws(RPCError) -> Value {
        var start = state.withLock { $0.writer }
        var failures = 0
        while true {
            let choice = await choice(from: start, within: end - .now)
            do throws(RPCError) {
                let value = try await attemptWhileAnswering(choice, until: end, attempt)
                state.withLock { $0.writer = choice.index }
                return value
            } catch {
                start = (choice.index + 1) % connections.count
                // Without a response, or if the database was lost, the change may have been committed. The caller
                // decides whether to repeat it, at another catalog, which may have become the writer by then.
                let isLost = error.isOfLostInstance || [.deadlineExceeded, .libraryOffline].contains(error.errorCode)
                if isLost { state.withLock { $0.writer = start } }
                guard error.isOfStandby || error.isUnsent else { throw error }
                failures += 1
                // Every catalog has refused: a takeover may be in progress.
                let delay = failures % connections.count == 0 ? Self.retryDelay : .zero
                guard .now + delay < end else { throw error }
                if delay > .zero { try await waitBeforeRetry(delay) }
            }
        }
    }

    /// Sends a request that may take long, and cancels it if its catalog no longer answers `health` requests.
    private func attemptWhileAnswering<Value>(
        _ choice: (index: Int, isConnected: Bool),
        until end: ContinuousClock.Instant,
        _ attempt: @escaping Attempt<Value>
    ) async throws(RPCError) -> Value {
        let connection = connections[choice.index]
        return try await healthConnections[choice.index].whileAnswering { () async throws(RPCError) -> Value in
            try await attempt(connection, end - .now, !choice.isConnected)
        }
    }

    // MARK: Streams

    /// Returns the stream of an attempt to send a request, 0 for the first one; nil if all catalogs were tried.
    func stream<R: Request>(
        _ request: R.Type,
        _ number: Int,
        _ deadline: Duration?,
        _ make: (_ connection: RequestClient, _ waitsForConnection: Bool) -> RequestStream
    ) async -> RequestStream? {
        guard number < connections.count else { return nil }
        let start = state.withLock { request is any CatalogRead.Type ? $0.reader : $0.writer }
        guard number == 0 else {
            let index = (start + number) % connections.count
            return connections[index].connection.isUsable ? make(connections[index], false) : nil
        }
        let choice = await choice(from: start, within: deadline)
        return make(connections[choice.index], !choice.isConnected)
    }

    /// The catalog to which a read is sent now.
    var currentReader: RequestClient { connections[usable(from: reader) ?? reader] }
}

// MARK: - Health

extension RequestClient {
    private static let healthInterval = Duration.seconds(1)
    private static let healthDeadline = Duration.seconds(2)

    /// Runs work as long as the service answers `health` requests over this connection.
    ///
    /// - Throws: the error of the work; `connection_lost` if the service does not answer; `user_cancelled` if the task
    ///   is cancelled
    nonisolated func whileAnswering<Value: Sendable>(
        _ work: @escaping @Sendable () async throws(RPCError) -> Value
    ) async throws(RPCError) -> Value {
        let result = await withTaskGroup(of: Result<Value, RPCError>?.self) { group in
            group.addTask {
                do throws(RPCError) {
                    return .success(try await work())
                } catch {
                    return .failure(error)
                }
            }
            group.addTask { await self.healthFailure().map { .failure($0) } }
            var result: Result<Value, RPCError>?
            while result == nil, let next = await group.next() { result = next }
            group.cancelAll()
            return result
        }
        guard let result else { throw .cancelled("the waiting task was cancelled") }
        return try result.get()
    }

    /// Requests the health of the service once a second until it does not answer.
    ///
    /// - Returns: the error for requests that wait for it; nil if the task is cancelled
    private nonisolated func healthFailure() async -> RPCError? {
        while await TaskDelay.timeout(Self.healthInterval) {
            do throws(RPCError) {
                _ = try await call(Health.method, deadline: Self.healthDeadline)
            } catch  where error.errorCode == .deadlineExceeded {
                return .connectionLost("the service at \(address) does not answer")
            } catch {}
        }
        return nil
    }
}

// MARK: - Errors

extension RPCError {
    /// True if another catalog may answer: this one was lost, does not reach the database, or lacks a file.
    var mayBeDifferentElsewhere: Bool {
        if isOfLostInstance || isOfStandby { return true }
        return switch errorCode {
        case .unavailable, .libraryOffline, .behind, .missingResource, .networkAccessRequired, .networkError: true
        // A transient collection is in the memory of the catalog that created it.
        case .handleExpired: true
        default: false
        }
    }
}
