import Messaging

extension ObservedFetches {
    var count: Int { fetches.count }

    // MARK: Observers

    /// Returns the number of fetches that an identity observes.
    func count(heldBy identity: String) -> Int { holdings.count(of: identity) }

    /// Returns the fetches that an identity observes.
    func held(by identity: String) -> [ObservedFetch] { holdings.numbers(of: identity).compactMap { fetches[$0] } }

    /// Adds an observer of a fetch, or renews its lease.
    mutating func addHolder(_ observed: ObservedFetch, _ holder: ObservedFetch.Holder, at time: Int64) {
        if observed.holders.updateValue(time, forKey: holder) == nil { holdings.insert(holder, observed.number) }
    }

    /// - Returns: true if the holder observed the fetch
    mutating func removeHolder(_ observed: ObservedFetch, _ holder: ObservedFetch.Holder) -> Bool {
        guard observed.holders.removeValue(forKey: holder) != nil else { return false }
        holdings.remove(holder, observed.number)
        return true
    }

    /// Records the end of a connection: its observations are kept for its identity until the lease expires.
    mutating func connectionEnded(_ connection: ConnectionID) {
        for (identity, number) in holdings.removeAll(of: connection) {
            guard let observed = fetches[number],
                let time = observed.holders.removeValue(forKey: .init(identity: identity, connection: connection))
            else { continue }
            let heir = ObservedFetch.Holder(identity: identity, connection: nil)
            let isNew = observed.holders[heir] == nil
            observed.holders[heir] = max(time, observed.holders[heir] ?? time)
            if isNew { holdings.insert(heir, number) }
        }
    }

    // MARK: Ending

    /// Removes a result by its number, with all observations of it.
    mutating func removeResult(_ number: Int) -> [String] { results[number].map { remove($0) } ?? [] }

    /// Removes the observations without a holder.
    ///
    /// - Parameters:
    ///   - time: leases that were last renewed before this time have expired
    ///   - isListened: returns true if there is a subscription to a topic, which renews all leases of its fetch
    mutating func expire(before time: Int64, isListened: (String) -> Bool) {
        for observed in Array(fetches.values) where !isListened(observed.topic) {
            for (holder, renewed) in observed.holders where renewed < time { _ = removeHolder(observed, holder) }
            if observed.holders.isEmpty { remove(observed.observation) }
        }
        for result in Array(results.values) where result.windows.isEmpty { remove(result) }
    }
}
