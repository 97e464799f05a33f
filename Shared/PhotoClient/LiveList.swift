import Contracts
import JSONValue
import Logging
public import Messaging
public import PhotoModel

extension PhotoLibrary {
    /// The result of a fetch of assets, and every change of it (spec S-63 to S-70): through lost messages and restarts of
    /// the broker the list is at any time exactly that of its moment.
    public func live(_ fetch: FetchDescription) -> LiveList { LiveList(library: self, fetch: fetch) }
}

/// A live fetch. Each iteration is a reader of its own.
public struct LiveList: AsyncSequence, Sendable {
    public typealias Element = LiveListEvent
    public typealias Failure = RPCError

    let library: PhotoLibrary
    let fetch: FetchDescription

    public func makeAsyncIterator() -> Iterator { Iterator(reader: LiveListReader(library, fetch)) }

    public struct Iterator: AsyncIteratorProtocol {
        let reader: LiveListReader

        /// The next event, waiting for it; nil when the task is cancelled or the library closed.
        ///
        /// - Throws: what waiting cannot cure: `not_observable`, `limit_exceeded`, a malformed fetch
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(RPCError) -> LiveListEvent? {
            try await reader.next()
        }

        public mutating func next() async throws(RPCError) -> LiveListEvent? { try await reader.next() }
    }
}

/// Carries out what a ``LiveListMachine`` decides, one step at a time.
final class LiveListReader {
    private let library: PhotoLibrary
    private let fetch: FetchDescription
    private var machine = LiveListMachine()
    private var subscriber: Subscriber?
    private var messages: SubscriberMessages.Iterator?
    private var backoff = Backoff()

    init(_ library: PhotoLibrary, _ fetch: FetchDescription) {
        self.library = library
        self.fetch = fetch
    }

    func next() async throws(RPCError) -> LiveListEvent? {
        do throws(RPCError) {
            if subscriber == nil { try await subscribe() }
            while true {
                if machine.want == .live {
                    guard let message = await messages?.next(isolation: #isolation) else { return nil }
                    if let event = take(message.topic, message.frames) { return event }
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
        let made: Subscriber
        do throws(MessagingError) {
            made = try Subscriber(
                address: library.endpoints.feed,
                thread: library.thread,
                limits: library.limits,
                security: library.endpoints.security(for: library.endpoints.feed),
                logger: library.logger
            )
        } catch {
            throw Refusal.unavailable.error("the feed cannot be subscribed to: \(error)")
        }
        await made.subscribe([FeedTopic.head])
        subscriber = made
        messages = made.messages.makeAsyncIterator()
    }

    /// Tries what is wanted; where a service is away, pauses and returns, so that the machine asks again.
    private func step() async throws(RPCError) -> LiveListEvent? {
        do throws(RPCError) {
            let event = try await attempt()
            backoff.reset()
            return event
        } catch {
            if machine.refused(error.refusal) { return nil }
            guard error.isPassing else { throw error }
            try await pause(backoff.pause(chance: .random(in: 0..<1)))
            return nil
        }
    }

    private func attempt() async throws(RPCError) -> LiveListEvent? {
        switch machine.want {
        case .list:
            var ids: [ObjectID] = []
            var token: ChangeToken?
            while true {
                let page = try await library.assets(fetch, token: token, from: ids.count, count: FetchAssets.maxPage)
                token = page.token
                ids += page.assets.map(\.id)
                if ids.count >= page.count || page.assets.isEmpty { return machine.listed(ids, at: page.token) }
            }
        case .observe(let token):
            let request = FetchObserve(fetch: fetch, token: token)
            return machine.observed(try await library.changeBroker.ask(request).result)
        case .subscribe(let topic):
            await subscriber?.subscribe([topic])
            machine.didSubscribe(to: topic)
            return nil
        case .details(let observation, let token):
            let request = FetchDetails(observation: observation, token: token)
            return machine.detailed(try await library.changeBroker.ask(request).result)
        case .live: return nil
        }
    }

    private func take(_ topic: String, _ frames: [Bytes]) -> LiveListEvent? {
        do {
            let json = try JSON(parsing: frames.first ?? [])
            guard topic != FeedTopic.head else {
                machine.head(try FeedHead(json: json), now: MonotonicClock.system.nowMicroseconds())
                return nil
            }
            return machine.live(try LiveListMachine.Message(json: json), topic: topic)
        } catch {
            library.logger.warning("a message of the feed cannot be read", metadata: ["topic": "\(topic)"])
            machine.missed()
            return nil
        }
    }
}
