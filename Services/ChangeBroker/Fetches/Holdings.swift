import Messaging

/// The observations that each identity and each connection holds.
struct Holdings {
    /// For each identity its observations, with the number of its connections that hold them.
    private var byIdentity: [String: [Int: Int]] = [:]
    private var byConnection: [ConnectionID: Set<Holding>] = [:]

    private struct Holding: Hashable {
        let identity: String
        let number: Int
    }

    /// Returns the number of different observations that an identity holds.
    func count(of identity: String) -> Int { byIdentity[identity]?.count ?? 0 }

    /// Returns the numbers of the observations that an identity holds.
    func numbers(of identity: String) -> [Int] { byIdentity[identity].map { Array($0.keys) } ?? [] }

    mutating func insert(_ holder: ObservedFetch.Holder, _ number: Int) {
        byIdentity[holder.identity, default: [:]][number, default: 0] += 1
        guard let connection = holder.connection else { return }
        byConnection[connection, default: []].insert(Holding(identity: holder.identity, number: number))
    }

    mutating func remove(_ holder: ObservedFetch.Holder, _ number: Int) {
        release(holder.identity, number)
        guard let connection = holder.connection else { return }
        byConnection[connection]?.remove(Holding(identity: holder.identity, number: number))
        if byConnection[connection]?.isEmpty == true { byConnection[connection] = nil }
    }

    private mutating func release(_ identity: String, _ number: Int) {
        guard let count = byIdentity[identity]?[number] else { return }
        byIdentity[identity]?[number] = count > 1 ? count - 1 : nil
        if byIdentity[identity]?.isEmpty == true { byIdentity[identity] = nil }
    }

    /// Removes and returns the observations that a connection holds.
    mutating func removeAll(of connection: ConnectionID) -> [(identity: String, number: Int)] {
        let held = byConnection.removeValue(forKey: connection) ?? []
        for holding in held { release(holding.identity, holding.number) }
        return held.map { ($0.identity, $0.number) }
    }
}
