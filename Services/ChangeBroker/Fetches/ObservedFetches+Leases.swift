import Messaging

extension ObservedFetches {
    var count: Int { fetches.count }

    // MARK: Observers

    /// Returns the number of fetches that an identity observes.
    func count(observedBy identity: String) -> Int { observerIndex.count(of: identity) }

    /// Returns the fetches that an identity observes.
    func observedFetches(by identity: String) -> [ObservedFetch] {
        observerIndex.numbers(of: identity).compactMap { fetches[$0] }
    }

    /// Adds an observer of a fetch, or renews its lease.
    mutating func addObserver(_ observed: ObservedFetch, _ observer: ObservedFetch.Observer, at time: Int64) {
        let isNew = observed.observers.updateValue(time, forKey: observer) == nil
        if isNew { observerIndex.insert(observer, observed.number) }
    }

    /// Removes an observer of a fetch.
    ///
    /// - Returns: true if it observed the fetch
    mutating func removeObserver(_ observed: ObservedFetch, _ observer: ObservedFetch.Observer) -> Bool {
        guard observed.observers.removeValue(forKey: observer) != nil else { return false }
        observerIndex.remove(observer, observed.number)
        return true
    }

    /// Records the end of a connection: its observations are kept for its identity until the lease expires.
    mutating func connectionEnded(_ connection: ConnectionID) {
        for (identity, number) in observerIndex.removeAll(of: connection) {
            guard let observed = fetches[number],
                let time = observed.observers.removeValue(forKey: .init(identity: identity, connection: connection))
            else { continue }
            let detached = ObservedFetch.Observer(identity: identity, connection: nil)
            let isNew = observed.observers[detached] == nil
            observed.observers[detached] = max(time, observed.observers[detached] ?? time)
            if isNew { observerIndex.insert(detached, number) }
        }
    }

    // MARK: Ending

    /// Removes a result by its number, with all observations of it.
    mutating func removeResult(_ number: Int) -> [String] { results[number].map { remove($0) } ?? [] }

    /// Ends expired leases, and removes the observations without an observer.
    ///
    /// - Parameters:
    ///   - time: leases that were last renewed before this time have expired
    ///   - isSubscribed: returns true if there is a subscription to a topic, which renews all leases of its fetch
    mutating func expire(before time: Int64, isSubscribed: (String) -> Bool) {
        for observed in Array(fetches.values) where !isSubscribed(observed.topic) {
            for (observer, renewed) in observed.observers where renewed < time {
                _ = removeObserver(observed, observer)
            }
            if observed.observers.isEmpty { remove(observed.observation) }
        }
        for result in Array(results.values) where result.windows.isEmpty { remove(result) }
    }
}

/// The numbers of the observed fetches of each identity and of each connection.
struct ObserverIndex {
    /// For each identity its observed fetches, with the number of its connections that observe them.
    private var byIdentity: [String: [Int: Int]] = [:]
    private var byConnection: [ConnectionID: Set<Entry>] = [:]

    private struct Entry: Hashable {
        let identity: String
        let number: Int
    }

    /// Returns the number of different fetches that an identity observes.
    func count(of identity: String) -> Int { byIdentity[identity]?.count ?? 0 }

    /// Returns the numbers of the fetches that an identity observes.
    func numbers(of identity: String) -> [Int] { byIdentity[identity].map { Array($0.keys) } ?? [] }

    mutating func insert(_ observer: ObservedFetch.Observer, _ number: Int) {
        byIdentity[observer.identity, default: [:]][number, default: 0] += 1
        guard let connection = observer.connection else { return }
        byConnection[connection, default: []].insert(Entry(identity: observer.identity, number: number))
    }

    mutating func remove(_ observer: ObservedFetch.Observer, _ number: Int) {
        remove(observer.identity, number)
        guard let connection = observer.connection else { return }
        byConnection[connection]?.remove(Entry(identity: observer.identity, number: number))
        if byConnection[connection]?.isEmpty == true { byConnection[connection] = nil }
    }

    private mutating func remove(_ identity: String, _ number: Int) {
        guard let count = byIdentity[identity]?[number] else { return }
        byIdentity[identity]?[number] = count > 1 ? count - 1 : nil
        if byIdentity[identity]?.isEmpty == true { byIdentity[identity] = nil }
    }

    /// Removes and returns the fetches that a connection observes.
    mutating func removeAll(of connection: ConnectionID) -> [(identity: String, number: Int)] {
        let entries = byConnection.removeValue(forKey: connection) ?? []
        for entry in entries { remove(entry.identity, entry.number) }
        return entries.map { ($0.identity, $0.number) }
    }
}
