public import JSONValue
import Synchronization

/// The number of requests that were refused for want of access, by identity.
public final class RefusalCounts: Sendable {
    private let counts = Mutex<[String: Int]>([:])
    /// The most identities that are counted by name; the others are counted together.
    private static let limit = 1000

    public init() {}

    public func count(_ identity: String) {
        counts.withLock { counts in
            counts[counts[identity] != nil || counts.count < Self.limit ? identity : "others", default: 0] += 1
        }
    }

    /// The counters by identity, for the method `figures`.
    public var metrics: JSONObject {
        var object = JSONObject()
        for (identity, count) in counts.withLock({ $0 }).sorted(by: { $0.key < $1.key }) {
            object[identity] = JSON(count)
        }
        return ["refused": .object(object)]
    }
}
