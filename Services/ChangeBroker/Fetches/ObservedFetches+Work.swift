import PhotoModel

extension ObservedFetches {
    /// The message published for one fetch.
    struct Message {
        let topic: String
        let previous: Int64
        let details: ChangeDetails
        /// True if the record deletes the object of the fetch.
        var objectWasDeleted = false
    }

    /// The effects of one transaction.
    struct Outcome {
        var messages: [Message] = []
        /// The fetches that the transaction does not fit; they were removed.
        var broken: [String] = []
        /// Fetches that were given up because all together are too large.
        var tooLarge: [String] = []
    }

    /// A record on its way over the fetches, done in steps so that nobody waits for all of it.
    struct Work {
        let record: ChangeRecord
        let recordBytes: Int
        /// The next entity to look up, in the order assets, collections, lists.
        var entity = 0
        /// The entity that was looked up last, with the fetches that are left to evaluate.
        var open: (entity: RecordEntity, candidates: [Int])?
        /// By the number of a result its net changes.
        var changes: [Int: [NetChange]] = [:]
        var circumstances: [Int: ObservedResult.Circumstances] = [:]
        /// The fetches with another scope after the record.
        var after: [Int: Fetch] = [:]
        var reloaded: [Int: LoadedKeys] = [:]
        /// The results that are left, the next one last; nil: not all entities have been looked up.
        var left: [Int]?
        /// The messages that are left.
        var messages: [(observed: ObservedFetch, previous: Int64, builder: ChangeDetailsBuilder?)] = []

        var isDone: Bool { left?.isEmpty == true && messages.isEmpty }

        /// Adds a net change of a result, if there is one.
        mutating func add(_ change: NetChange?, to number: Int) {
            if let change { changes[number, default: []].append(change) }
        }
    }
}
