import PhotoModel

/// The results that depend on more than the properties of their entities.
extension ObservedFetches {
    /// Returns the results whose scope, or whose list of a limited grant, a record may change.
    func dependent(on record: ChangeRecord) -> Set<Int> {
        guard !limited.isEmpty, !record.grants.isEmpty else { return scoped }
        return record.grants.compactMap { ($0.after ?? $0.before)?.identity }
            .reduce(into: scoped) { $0.formUnion(limited[$1] ?? []) }
    }

    /// The effects of a record on the scopes of results, found in steps so that other work does not wait for all of
    /// them.
    struct ScopeWork {
        let record: ChangeRecord
        /// The results whose scopes have yet to be examined.
        fileprivate var remaining: [Int]
        fileprivate var examined: Set<Int> = []
        /// The effects on the lists of limited clients. All results of a client have the same list.
        fileprivate var lists: [LimitedClient: ScopeChange] = [:]
        /// The results that have to be read again at the record, because entities that are not in it entered or left
        /// them.
        fileprivate(set) var reloads: [(number: Int, fetch: Fetch)] = []
        /// The fetches with another scope after the record.
        fileprivate(set) var after: [Int: Fetch] = [:]
        fileprivate(set) var effects: [Int: ObservedResult.Effects] = [:]

        var isDone: Bool { remaining.isEmpty }
    }

    /// Begins to find the effects of a record on the scopes of results.
    func beginScopeWork(on record: ChangeRecord) -> ScopeWork {
        ScopeWork(record: record, remaining: Array(dependent(on: record)))
    }

    /// Finds the effect on one result. A result of a limited view whose access has ended is removed. One whose list
    /// changes by assets that are not in the record is suspended: reading all results of a view again would delay all
    /// other clients, and the client of a view has no live feed but asks for details.
    mutating func step(_ work: inout ScopeWork) {
        guard let number = work.remaining.popLast() else { return }
        // A result that is still loading may be installed before the last step, and is then examined again.
        guard let result = results[number], result.sequence < work.record.sequence else { return }
        work.examined.insert(number)
        switch Self.scopeChange(of: result.fetch, &work) {
        case .none: break
        case .to(let scope):
            work.after[number] = result.fetch.with(scope, at: work.record.sequence)
            work.effects[number] = .init(scope: scope)
        case .unknown where result.fetch.granted != nil: suspend(number)
        case .unknown: work.reloads.append((number, result.fetch))
        case .ended: _ = removeResult(number)
        }
    }

    /// Finds the remaining effects, also on results that were loaded since the first step.
    mutating func finish(_ work: inout ScopeWork) {
        work.remaining += dependent(on: work.record).subtracting(work.examined).subtracting(work.remaining)
        while !work.isDone { step(&work) }
    }

    /// Finds all effects of a record at once.
    mutating func findScopes(of record: ChangeRecord) -> ScopeWork {
        var work = beginScopeWork(on: record)
        finish(&work)
        return work
    }

    private static func scopeChange(of fetch: Fetch, _ work: inout ScopeWork) -> ScopeChange {
        guard let granted = fetch.granted else { return fetch.scopeChange(by: work.record) }
        let client = LimitedClient(granted)
        if let known = work.lists[client] { return known }
        let change = fetch.scopeChange(by: work.record)
        work.lists[client] = change
        return change
    }

    /// Returns true if the result of an observation has no keys at present (``suspend(_:)``).
    func isSuspended(_ observed: ObservedFetch) -> Bool { results[observed.result.number] !== observed.result }

    // MARK: Limits of limited views

    /// The divisor of the limits of objects and memory that gives the limits of one limited view.
    static let viewDivisor = 2

    /// Returns the identity of the limited view of a result, loading or not; nil for the whole library.
    func view(of number: Int) -> String? { limited.first { $0.value.contains(number) }?.key }

    /// Returns the objects in all results of a limited view, and the memory of these and of its list.
    func usage(ofView identity: String) -> (rows: Int, bytes: Int) {
        let used = viewUsage[identity] ?? (0, 0)
        return (used.rows, used.bytes + lists.bytes(of: identity))
    }

    /// Returns the list that the results of a limited view have; nil if there are none.
    func list(of client: LimitedClient) -> Set<ObjectID>? {
        let granted = limited[client.identity]?.lazy.compactMap { results[$0]?.fetch.granted }
        return granted?.first { LimitedClient($0) == client }?.ids
    }

    /// The largest result of a limited view that takes more memory than it may, or the largest of all results if there
    /// is no such view.
    var largest: ObservedResult? {
        let numbers =
            limited.first { view in
                usage(ofView: view.key).bytes > maxBytes / Self.viewDivisor
                    && view.value.contains { results[$0] != nil }
            }?.value ?? Set(results.keys)
        return numbers.compactMap { results[$0] }.max { $0.resultBytes < $1.resultBytes }
    }
}

/// The approximate memory of the lists of limited views.
struct ListMemory {
    static let assetBytes = 64

    private var byIdentity: [String: Int] = [:]
    private(set) var bytes = 0

    func bytes(of identity: String) -> Int { byIdentity[identity] ?? 0 }

    mutating func set(_ identity: String, assets: Int) {
        let size = assets * Self.assetBytes
        bytes += size - (byIdentity.updateValue(size, forKey: identity) ?? 0)
    }

    mutating func remove(_ identity: String) { bytes -= byIdentity.removeValue(forKey: identity) ?? 0 }
}
