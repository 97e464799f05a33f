import Synchronization

/// The topics that anybody subscribes to, as the publishing socket tells: messages for others need not be made.
///
/// libzmq compares the beginnings of topics, so a subscription to `asset.` or to nothing wants all that begin so.
final class WantedTopics: Sendable {
    private struct State {
        /// By topic the publishers where it is subscribed to, a bit each.
        var topics: [String: UInt8] = [:]
        /// How many subscribed topics have each length, in UTF-8 bytes.
        var lengths: [Int: Int] = [:]
        /// More were subscribed than are kept: everything is made.
        var isOverfull = false
    }

    private let state = Mutex(State())
    private let limit: Int

    /// - Parameter limit: topics that are kept
    init(limit: Int = 200_000) { self.limit = limit }

    var count: Int { state.withLock { $0.topics.count } }

    /// - Parameter publisher: its number, 0 to 7
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
                state.isOverfull = true
            } else {
                state.topics[topic] = bit
                state.lengths[length, default: 0] += 1
            }
        }
    }

    /// Whether somebody subscribes to a topic, or to a beginning of it.
    func wants(_ topic: String) -> Bool {
        state.withLock { state in
            state.isOverfull
                || state.lengths.keys.contains { length in
                    topic.utf8.count >= length
                        && state.topics[String(decoding: topic.utf8.prefix(length), as: UTF8.self)] != nil
                }
        }
    }

    /// Those of some topics that somebody subscribes to.
    func filter(_ parts: [BrokerRecord.Part]) -> [BrokerRecord.Part] {
        state.withLock { state in
            if state.isOverfull { return parts }
            if state.topics.isEmpty { return [] }
            return parts.filter { part in
                state.lengths.keys.contains { length in
                    part.topic.utf8.count >= length
                        && state.topics[String(decoding: part.topic.utf8.prefix(length), as: UTF8.self)] != nil
                }
            }
        }
    }
}
