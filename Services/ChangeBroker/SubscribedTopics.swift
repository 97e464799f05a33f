import Synchronization

/// The topics with at least one subscriber, as reported by the publishing sockets. Messages of other topics are not
/// encoded.
///
/// libzmq matches topics by prefix, so a subscription to `asset.` receives every topic that begins so, and one to the
/// empty topic receives all.
final class SubscribedTopics: Sendable {
    private struct State {
        /// The publishers that have a subscription to each topic, as a bit set.
        var topics: [String: UInt8] = [:]
        /// The number of subscribed topics of each length, in UTF-8 bytes.
        var lengths: [Int: Int] = [:]
        /// Set if there are more subscriptions than the limit: then every message is encoded.
        var exceedsLimit = false

        /// Returns true if a topic, or a prefix of it, has a subscriber.
        func matches(_ topic: String) -> Bool {
            exceedsLimit
                || lengths.keys.contains { length in
                    topic.utf8.count >= length
                        && topics[String(decoding: topic.utf8.prefix(length), as: UTF8.self)] != nil
                }
        }
    }

    private let state = Mutex(State())
    private let limit: Int

    /// - Parameter limit: the maximum number of topics
    init(limit: Int = 200_000) { self.limit = limit }

    var count: Int { state.withLock { $0.topics.count } }

    /// - Parameter publisher: the index of the publishing socket, 0 to 7
    func note(_ topic: String, isSubscribed: Bool, at publisher: Int = 0) {
        let bit = UInt8(1) << publisher
        let length = topic.utf8.count
        state.withLock { state in
            if !isSubscribed {
                guard let publishers = state.topics[topic] else { return }
                let rest = publishers & ~bit
                state.topics[topic] = rest == 0 ? nil : rest
                guard rest == 0 else { return }
                let left = (state.lengths[length] ?? 1) - 1
                state.lengths[length] = left > 0 ? left : nil
            } else if let publishers = state.topics[topic] {
                state.topics[topic] = publishers | bit
            } else if state.topics.count >= limit {
                state.exceedsLimit = true
            } else {
                state.topics[topic] = bit
                state.lengths[length, default: 0] += 1
            }
        }
    }

    /// Returns true if a topic, or a prefix of it, has a subscriber.
    func hasSubscriber(_ topic: String) -> Bool { state.withLock { $0.matches(topic) } }

    /// Returns true if there is a subscription to exactly this topic; true for every topic if there are too many
    /// subscriptions to know them all.
    func isSubscribed(exactly topic: String) -> Bool {
        state.withLock { $0.exceedsLimit || $0.topics[topic] != nil }
    }

    /// Returns the parts whose topic has a subscriber.
    func filter(_ parts: [BrokerRecord.Part]) -> [BrokerRecord.Part] {
        state.withLock { state in
            if state.exceedsLimit { return parts }
            if state.topics.isEmpty { return [] }
            return parts.filter { state.matches($0.topic) }
        }
    }
}
