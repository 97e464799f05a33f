import PhotoModel

/// The results that depend on more than the properties of their entities.
extension ObservedFetches {
    /// Returns the results whose scope, or whose list of a limited grant, a record may change.
    func dependent(on record: ChangeRecord) -> Set<Int> {
        guard !limited.isEmpty, !record.grants.isEmpty else { return scoped }
        return record.grants.compactMap { ($0.after ?? $0.before)?.identity }
            .reduce(into: scoped) { $0.formUnion(limited[$1] ?? []) }
    }

    /// Returns the results of limited views that end with a record, because their identity's access is another kind.
    func ended(by record: ChangeRecord) -> [Int] {
        guard !limited.isEmpty, !record.grants.isEmpty else { return [] }
        return dependent(on: record).filter { results[$0]?.fetch.scopeChange(by: record) == .ended }
    }

    /// Returns the results that have to be read again at a record, because entities that are not in it came or went.
    func reloads(for record: ChangeRecord) -> [(number: Int, fetch: Fetch)] {
        dependent(on: record).compactMap { number in
            guard let result = results[number], result.sequence < record.sequence,
                result.fetch.scopeChange(by: record) == .unknown
            else { return nil }
            return (number, result.fetch)
        }
    }

    // MARK: Shares of limited views

    /// The part of all objects and of the memory that one limited view may have: one half.
    static let viewShare = 2

    /// Returns the identity whose limited view a result, loading or not, is of; nil for the whole library.
    func view(of number: Int) -> String? { limited.first { $0.value.contains(number) }?.key }

    /// Returns the objects in all results of a limited view, and the memory of these.
    func usage(ofView identity: String) -> (rows: Int, bytes: Int) { viewUsage[identity] ?? (0, 0) }

    /// The largest result: of a limited view that has more than its share, if there is one.
    var largest: ObservedResult? {
        let view = viewUsage.first { $0.value.bytes > maxBytes / Self.viewShare }?.key
        let numbers = view.flatMap { limited[$0] } ?? Set(results.keys)
        return numbers.compactMap { results[$0] }.max { $0.resultBytes < $1.resultBytes }
    }
}
