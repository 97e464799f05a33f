public import Basics
public import Contracts
import Dispatch
public import JSONValue
public import Logging
public import Messaging
public import PhotoModel

/// A client of a photo library: connections to its services, and operations that need more than one request.
///
/// It connects and reconnects automatically. A program uses one instance for its whole lifetime, from any task.
public final class PhotoLibrary: Sendable {
    /// The catalog, or several: fetches, changes and resources.
    public let catalog: ServiceClient
    /// The thumbnailer, or several: images.
    public let thumbnailer: ServiceClient
    /// The editor, or several: adjustments and renders.
    public let editor: ServiceClient
    /// The change-broker: change history and observed fetches.
    public let changeBroker: ServiceClient

    /// The addresses of the services.
    public let endpoints: ServiceEndpoints
    /// Name of the client program, recorded as `client` in the origin of its changes.
    public let client: String

    let thread: PollThread
    let limits: MessagingLimits
    let logger: Logger
    private let executor: (any TaskExecutor)?
    /// The queue on which a client with an executor waits before it repeats a request.
    private static let retryQueue = DispatchQueue(label: "photo-library.retries")

    /// Begins to connect. Services that are not running yet are not an error.
    ///
    /// - Parameters:
    ///   - client: name of at most 128 bytes; transaction ids are unique per identity and client name
    ///   - executor: the executor of the tasks that the client starts, for callers that block threads of Swift's pool
    /// - Throws: local errors only: no more sockets are available, or an address is invalid
    public init(
        endpoints: ServiceEndpoints,
        client: String,
        limits: MessagingLimits = MessagingLimits(),
        logger: Logger,
        executor: (any TaskExecutor)? = nil
    ) throws(MessagingError) {
        let thread = try PollThread(name: "library")
        self.endpoints = endpoints
        self.client = client
        self.thread = thread
        self.limits = limits
        self.logger = logger
        self.executor = executor
        func connect(_ addresses: [EndpointAddress]) throws(MessagingError) -> [RequestClient] {
            try RequestClient.connections(to: addresses, thread: thread, limits: limits, logger: logger) { address in
                endpoints.security(for: address)
            }
        }
        let catalogs = endpoints.catalogs
        self.catalog = ServiceClient(
            try connect(catalogs),
            healthConnections: try connect(catalogs.count > 1 ? catalogs : [])
        )
        self.thumbnailer = ServiceClient(try connect(endpoints.thumbnailers))
        self.editor = ServiceClient(try connect(endpoints.editors))
        self.changeBroker = ServiceClient(try connect([endpoints.changeBroker]))
    }

    /// Returns the newest token of the library, and the oldest from which the history is complete.
    public func currentToken(deadline: Duration = .seconds(30)) async throws(RPCError) -> CurrentToken.Result {
        try await withRetries(deadline) { time throws(RPCError) in
            try await self.catalog.ask(CurrentToken(), deadline: time).result
        }
    }

    /// Returns the changes after a token, each exactly once, in order and without gaps.
    ///
    /// - Parameters:
    ///   - token: the last token that was processed; nil for new changes only; for the whole history, the oldest token
    ///     of ``currentToken(deadline:)``
    ///   - topics: see ``FeedTopic``; all changes if empty or if `changes` is among them
    public func changes(since token: ChangeToken?, topics: [String] = []) -> ChangeFeed {
        ChangeFeed(
            broker: changeBroker,
            feed: endpoints.feed,
            thread: thread,
            limits: limits,
            security: endpoints.security(for: endpoints.feed),
            logger: logger,
            since: token,
            topics: topics
        )
    }

    /// Closes all connections. Pending requests end with `connection_lost`, and feeds end.
    public func close() async { await thread.shutdown() }

    /// Retries transient errors with increasing delays until the deadline, then throws the last error.
    func withRetries<Value>(
        _ deadline: Duration,
        _ attempt: (_ remaining: Duration) async throws(RPCError) -> Value
    ) async throws(RPCError) -> Value {
        let clock = ContinuousClock()
        let end = clock.now + deadline
        var backoff = Backoff()
        while true {
            do throws(RPCError) {
                return try await attempt(end - clock.now)
            } catch  where error.isTransient {
                let delay = backoff.nextDelay()
                guard clock.now + delay < end else { throw error }
                try await waitBeforeRetry(delay, on: executor == nil ? nil : Self.retryQueue)
            }
        }
    }

    /// Runs work that the cancellation of the caller does not end, without Swift's pool if the client has an executor.
    func runToEnd(_ work: @escaping @Sendable () async -> Void) async {
        await Task(executorPreference: executor) { await work() }.value
    }
}

// MARK: - Changing

extension PhotoLibrary {
    /// Performs one transaction: all of its requests or none, exactly once.
    ///
    /// If the connection is lost or the catalog is unavailable, the transaction is sent again with the same id until
    /// the deadline. A caller that repeats a failed transaction must pass the same id.
    ///
    /// - Parameters:
    ///   - attachments: bytes that the requests refer to by number
    ///   - transaction: transaction id of at most 128 bytes; nil for a new one
    ///   - onBehalfOf: for services: the identity of the client they act for
    /// - Throws: the catalog's error; or the last transient error, after which it is unknown whether the transaction
    ///   was committed
    public func perform(
        _ requests: [ChangeRequest],
        attachments: [Bytes] = [],
        transaction: String? = nil,
        onBehalfOf: String? = nil,
        deadline: Duration = .seconds(30)
    ) async throws(RPCError) -> PerformChanges.Result {
        let request = PerformChanges(
            requests: requests,
            client: client,
            transaction: transaction ?? Self.uniqueTransaction(),
            onBehalfOf: onBehalfOf
        )
        return try await withRetries(deadline) { time throws(RPCError) in
            try await self.catalog.ask(request, attachments: attachments, deadline: time).result
        }
    }

    /// Returns a unique transaction id: a UUID of version 7 (RFC 9562, section 5.7), as 32 hexadecimal digits.
    ///
    /// It begins with the time. The catalog keeps the outcomes of transactions in the order of their ids, so those of
    /// one client are next to each other, and a commit writes fewer pages than with random ids.
    public static func uniqueTransaction() -> String {
        var random = SystemRandomNumberGenerator()
        return random.nextTimeOrderedHexadecimal(milliseconds: WallClock.nowMicroseconds() / 1000)
    }
}

// MARK: - Retrying

/// Delays between attempts: exponential with jitter, so that clients of a restarted service do not all retry at the
/// same time.
struct Backoff: Sendable {
    static let firstDelay = Duration.milliseconds(50)
    static let maxDelay = Duration.seconds(2)

    private var next = firstDelay

    /// Returns the delay before the next attempt, and doubles the one after it.
    ///
    /// - Parameter jitter: 0..<1; the fraction of a quarter of the delay that is subtracted
    mutating func nextDelay(jitter: Double = .random(in: 0..<1)) -> Duration {
        let delay = next
        next = min(next * 2, Self.maxDelay)
        return delay - delay / 4 * jitter
    }

    mutating func reset() { next = Self.firstDelay }
}

/// Waits between two attempts.
///
/// - Parameter queue: waits without Swift's pool, whose threads the caller may block; nil to sleep as a task
/// - Throws: `user_cancelled` if the task is cancelled
func waitBeforeRetry(_ delay: Duration, on queue: DispatchQueue? = nil) async throws(RPCError) {
    if let queue { await TaskDelay.retryDelay(delay, on: queue) } else { await TaskDelay.retryDelay(delay) }
    guard !Task.isCancelled else { throw ErrorCode.userCancelled.error("the waiting task was cancelled") }
}

extension RPCError {
    /// True if the error is transient: the same request may succeed if it is retried.
    ///
    /// A write may have been committed nevertheless, so it must be retried with its transaction id.
    public var isTransient: Bool {
        switch errorCode {
        case .busy, .connectionLost, .unavailable, .deadlineExceeded, .behind, .interrupted: true
        // Services of earlier versions end requests in this way when they stop. The error is permanent if the owner of
        // the library did not consent, or if a later edit replaced this one.
        case .userCancelled: data["question"] == nil && data["isReplaced"] == nil && !Task.isCancelled
        default: false
        }
    }
}
