import Basics
import Contracts
import JSONValue
import Logging
import Messaging
import PhotoModel

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
                    case .silence: state.handleMissedMessages()
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

    /// Carries out the current action. After a transient error it waits and returns, and the state machine repeats the
    /// action.
    private func step() async throws(RPCError) -> LiveListEvent? {
        do throws(RPCError) {
            let event = try await attempt()
            backoff.reset()
            return event
        } catch {
            if state.recover(from: error.errorCode) { return nil }
            guard error.isTransient else { throw error }
            try await waitBeforeRetry(backoff.nextDelay())
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
                if ids.count >= page.count || page.ids.isEmpty { return state.setList(ids, at: page.token) }
            }
        case .observe(let token):
            let request = FetchObserve(fetch: fetch, token: token)
            return state.didObserve(try await library.changeBroker.ask(request).result)
        case .subscribe(let topic):
            await subscriber?.subscribe([topic])
            state.didSubscribe(to: topic)
            return nil
        case .details(let observation, let token):
            let request = FetchDetails(observation: observation, token: token)
            return state.handleDetails(try await library.changeBroker.ask(request).result)
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
            state.handleMissedMessages()
            return nil
        }
    }
}
