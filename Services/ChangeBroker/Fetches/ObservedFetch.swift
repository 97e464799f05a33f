import Contracts
import Messaging
import PhotoModel

/// An observed fetch: the part of an ``ObservedResult`` that its offset and limit select. All observers of the same
/// fetch share it.
///
/// Offset and limit are applied last, to the whole result, so that change details are exact in spite of them (P-04).
final class ObservedFetch {
    /// An observer of the fetch.
    struct Observer: Hashable {
        let identity: String
        /// Nil for a connection that has ended: another connection of the identity may take over or end its
        /// observations.
        let connection: ConnectionID?
    }

    let observation: String
    let topic: String
    let fetch: Fetch
    let number: Int
    private(set) var result: ObservedResult
    /// The last sequence at which the topic carried a message; initially the sequence of the result.
    var previous: Int64
    /// The observers, with the time of their last request in microseconds.
    var observers: [Observer: Int64] = [:]

    init(_ observation: String, _ fetch: Fetch, number: Int, of result: ObservedResult, at sequence: Int64) {
        self.observation = observation
        self.topic = FeedTopic.fetch(observation)
        self.fetch = fetch
        self.number = number
        self.result = result
        self.previous = max(sequence, result.sequence)
    }

    /// Changes to another result of the same fetch, whose log does not have earlier changes.
    func move(to other: ObservedResult) {
        result = other
        previous = max(previous, other.sequence)
    }

    /// The identities of the observers.
    var identities: Set<String> { Set(observers.keys.map(\.identity)) }

    /// The number of objects.
    var count: Int { fetch.shown(of: result.tree.count).count }

    /// The identifiers of the objects.
    var ids: [ObjectID] { result.tree.ids(at: fetch.shown(of: result.tree.count)) }

    /// Returns the change details of this fetch for net changes of its result.
    func details(_ changes: NetChanges) -> ChangeDetails? {
        ChangeDetailsBuilder(changes.all, result.tree).details(of: fetch)
    }
}
