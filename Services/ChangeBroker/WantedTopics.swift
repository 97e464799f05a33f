import Synchronization

/// The topics that anybody subscribes to, as the publishing socket tells: messages for others need not be made.
///
/// libzmq compares the beginnings of topics, so a subscription to `asset.` or to nothing wants all that begin so.
final class WantedTopics: Sendable {
    private struct State {
        var topics: Set<String> = []
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

    func note(_ topic: String, isSubscribed: Bool) {
        let length = topic.utf8.count
        state.withLock { state in
            if !isSubscribed {
                guard state.topics.remove(topic) != nil else { return }
                let left = (state.lengths[length] ?? 1) - 1
                state.lengths[length] = left > 0 ? left : nil
            } else if state.topics.count >= limit {
                state.isOverfull = true
            } else if state.topics.insert(topic).inserted {
                state.lengths[length, default: 0] += 1
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
                        && state.topics.contains(String(decoding: part.topic.utf8.prefix(length), as: UTF8.self))
                }
            }
        }
    }
}
