public import Contracts
public import Logging
public import Messaging
public import PhotoModel

/// The one door to a photo library: its services, and what takes more than one request.
///
/// Connects by itself and again when a service comes back. Use one for the life of a program, from any task.
public final class PhotoLibrary: Sendable {
    /// Fetches, changes, resources.
    public let catalog: ServiceClient
    /// Images.
    public let thumbnailer: ServiceClient
    /// Adjustments.
    public let editor: ServiceClient
    /// History and live changes.
    public let changeBroker: ServiceClient

    /// Where those four are.
    public let endpoints: ServiceEndpoints
    /// The name this program gives itself: the `client` in the origin of its changes.
    public let client: String

    let thread: PollThread
    let limits: MessagingLimits
    let logger: Logger

    /// Begins to connect; services that are not there yet are no error.
    ///
    /// - Parameters:
    ///   - client: at most 128 bytes; transactions are told apart by this name together with the connection's identity
    /// - Throws: only what is wrong with this side: no socket is left, or an address cannot be used
    public init(
        endpoints: ServiceEndpoints,
        client: String,
        limits: MessagingLimits = MessagingLimits(),
        logger: Logger
    ) throws(MessagingError) {
        let thread = try PollThread(name: "library")
        self.endpoints = endpoints
        self.client = client
        self.thread = thread
        self.limits = limits
        self.logger = logger
        func connect(_ address: EndpointAddress) throws(MessagingError) -> ServiceClient {
            try ServiceClient(
                address: address,
                thread: thread,
                limits: limits,
                security: endpoints.security(for: address),
                logger: logger
            )
        }
        self.catalog = try connect(endpoints.catalog)
        self.thumbnailer = try connect(endpoints.thumbnailer)
        self.editor = try connect(endpoints.editor)
        self.changeBroker = try connect(endpoints.changeBroker)
    }

    /// The library's present moment, and the oldest from which history is complete.
    public func currentToken(deadline: Duration = .seconds(30)) async throws(RPCError) -> CurrentToken.Result {
        try await retrying(deadline) { time throws(RPCError) in
            try await self.catalog.ask(CurrentToken(), deadline: time).result
        }
    }

    /// The changes after a token, each once, in order, without a gap.
    ///
    /// - Parameters:
    ///   - token: the last token seen; nil: from now on; for the whole history give the oldest that
    ///     ``currentToken(deadline:)`` answers
    ///   - topics: as ``FeedTopic`` names them; none, or `changes` among them: all changes
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

    /// Closes every connection; what is under way ends with `connection_lost`, and feeds end.
    public func close() async { await thread.shutdown() }

    /// Repeats what failed in passing, with growing pauses, until the time is up; then throws the last error.
    func retrying<Value>(
        _ deadline: Duration,
        _ attempt: (_ remaining: Duration) async throws(RPCError) -> Value
    ) async throws(RPCError) -> Value {
        let clock = ContinuousClock()
        let end = clock.now + deadline
        var backoff = Backoff()
        while true {
            do throws(RPCError) {
                return try await attempt(end - clock.now)
            } catch  where error.isPassing {
                let pause = backoff.pause(chance: .random(in: 0..<1))
                guard clock.now + pause < end else { throw error }
                try await PhotoClient.pause(pause)
            }
        }
    }
}
