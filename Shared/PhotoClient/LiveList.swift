import Basics
import Contracts
public import JSONValue
import Logging
import Messaging
public import PhotoModel

/// An observed fetch. Each iteration observes the fetch separately.
public struct LiveList: AsyncSequence, Sendable {
    public typealias Element = LiveListEvent
    public typealias Failure = RPCError

    let library: PhotoLibrary
    let fetch: FetchDescription

    public func makeAsyncIterator() -> Iterator { Iterator(reader: LiveListReader(library, fetch)) }

    public struct Iterator: AsyncIteratorProtocol {
        let reader: LiveListReader

        /// Waits for and returns the next event; nil if the task is cancelled or the library is closed.
        ///
        /// - Throws: permanent errors: `not_observable`, `limit_exceeded`, or an invalid fetch
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(RPCError) -> LiveListEvent? {
            try await reader.next()
        }

        public mutating func next() async throws(RPCError) -> LiveListEvent? { try await reader.next() }
    }
}

extension PhotoLibrary {
    /// Returns the result of an asset fetch, and every change of it (S-63 to S-70). The list is always exactly the
    /// result at its token, also across lost messages and restarts of the broker.
    public func live(_ fetch: FetchDescription) -> LiveList { LiveList(library: self, fetch: fetch) }
}

// MARK: - Events

/// An event of an observed fetch.
public enum LiveListEvent: Sendable, Hashable {
    /// The whole list at a token: at first, and again if there are no details for a change (S-69).
    case list([ObjectID], ChangeToken)
    /// The changes, the list after them, and its token.
    case changed(ChangeDetails, [ObjectID], ChangeToken)

    /// The token of the list.
    public var token: ChangeToken {
        switch self {
        case .list(_, let token), .changed(_, _, let token): token
        }
    }

    /// The list after the event.
    public var ids: [ObjectID] {
        switch self {
        case .list(let ids, _), .changed(_, let ids, _): ids
        }
    }
}

// MARK: - Reading

/// Executes the actions of a ``LiveListStateMachine``, one at a time.
final class LiveListReader {
    private let library: PhotoLibrary
    private let fetch: FetchDescription
    private var state = LiveListStateMachine()
    private var subscriber: Subscriber?
    private var messages: SubscriberMessages?
    private var silence: Task<Void, Never>?
    private var backoff = Backoff()

    init(_ library: PhotoLibrary, _ fetch: FetchDescription) {
        self.library = library
        self.fetch = fetch
    }

    deinit { silence?.cancel() }

    func next() async throws(RPCError) -> LiveListEvent? {
        do throws(RPCError) {
            if subscriber == nil { try await subscribe() }
            while true {
                if state.nextAction == .live {
                    switch await messages?.nextArrival() {
                    case .message(let topic, let frames): if let event = handle(topic, frames) { return event }
                    case .silence: state.missed()
                    case .end, nil: return nil
                    }
                } else if let event = try await step() {
                    return event
                }
            }
        } catch {
            if Task.isCancelled { return nil }
            throw error
        }
    }

    private func subscribe() async throws(RPCError) {
        let subscriber: Subscriber
        do throws(MessagingError) {
            subscriber = try Subscriber(
                address: library.endpoints.feed,
                thread: library.thread,
                limits: library.limits,
                security: library.endpoints.security(for: library.endpoints.feed),
                logger: library.logger
            )
        } catch {
            throw ErrorCode.unavailable.error("cannot subscribe to the feed: \(error)")
        }
        await subscriber.subscribe([FeedTopic.head])
        self.subscriber = subscriber
        messages = subscriber.messages
        silence = subscriber.messages.watchSilence()
    }

    /// Carries out the present action. After a transient error it waits and returns, and the state machine repeats the
    /// action.
    private func step() async throws(RPCError) -> LiveListEvent? {
        do throws(RPCError) {
            let event = try await attempt()
            backoff.reset()
            return event
        } catch {
            if state.refused(error.errorCode) { return nil }
            guard error.isTransient else { throw error }
            try await pause(backoff.pause(chance: .random(in: 0..<1)))
            return nil
        }
    }

    private func attempt() async throws(RPCError) -> LiveListEvent? {
        switch state.nextAction {
        case .list:
            var ids: [ObjectID] = []
            var token: ChangeToken?
            while true {
                let page = try await library.identifierPage(fetch, token: token, from: ids.count)
                token = page.token
                ids += page.ids
                if ids.count >= page.count || page.ids.isEmpty { return state.listed(ids, at: page.token) }
            }
        case .observe(let token):
            let request = FetchObserve(fetch: fetch, token: token)
            return state.observed(try await library.changeBroker.ask(request).result)
        case .subscribe(let topic):
            await subscriber?.subscribe([topic])
            state.didSubscribe(to: topic)
            return nil
        case .details(let observation, let token):
            let request = FetchDetails(observation: observation, token: token)
            return state.detailed(try await library.changeBroker.ask(request).result)
        case .live: return nil
        }
    }

    private func handle(_ topic: String, _ frames: [Bytes]) -> LiveListEvent? {
        do {
            let json = try JSON(parsing: frames.first ?? [])
            guard topic != FeedTopic.head else {
                state.handleHead(try FeedHead(json: json), now: MonotonicClock.system.nowMicroseconds())
                return nil
            }
            return state.handleLive(try LiveListStateMachine.Message(json: json), topic: topic)
        } catch {
            library.logger.warning("feed message cannot be decoded", metadata: ["topic": "\(topic)"])
            state.missed()
            return nil
        }
    }
}
