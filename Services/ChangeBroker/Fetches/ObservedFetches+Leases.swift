extension ObservedFetches {
    var count: Int { fetches.count }

    /// Removes a result by its number, with all observations of it.
    mutating func removeResult(_ number: Int) -> [String] { results[number].map { remove($0) } ?? [] }

    /// Gives up those that nobody holds.
    ///
    /// - Parameters:
    ///   - time: leases that were last renewed before this time have expired
    ///   - isListened: returns whether there is a subscription to a topic, which renews all leases of its fetch
    mutating func expire(before time: Int64, isListened: (String) -> Bool) {
        for observed in Array(fetches.values) where !isListened(observed.topic) {
            for (holder, renewed) in observed.holders where renewed < time { _ = removeHolder(observed, holder) }
            if observed.holders.isEmpty { remove(observed.observation) }
        }
        for result in Array(results.values) where result.windows.isEmpty { remove(result) }
    }
}
