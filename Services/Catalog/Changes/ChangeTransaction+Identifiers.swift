import PhotoModel

extension ChangeTransaction {
    /// Returns the identifier of a new object: the one that the client generated, or a new one.
    ///
    /// Identifiers are never used twice (S-01): one that the history knows is refused, and one that was generated long
    /// ago, because it may have been that of a deleted object that the history has forgotten.
    ///
    /// - Throws: ``ChangeError/identifierRefused(_:)`` if an object has or had it, or if it was not generated within a day
    func newID(_ kind: ObjectKind, _ chosen: ObjectID?) throws -> ObjectID {
        guard let chosen else { return makeID(kind) }
        guard chosen.kind == kind else { throw ChangeError.wrongKind(chosen, expected: kind) }
        let isTaken: Bool =
            switch kind {
            case .asset: try asset(chosen) != nil
            case .assetCollection: try collection(chosen) != nil
            case .collectionList: try list(chosen) != nil
            }
        let day: Int64 = 86_400_000
        let age = now / 1000 - chosen.milliseconds
        guard try !isTaken && !state.hasHistory(of: chosen), (-day...day).contains(age) else {
            throw ChangeError.identifierRefused(chosen)
        }
        return chosen
    }
}
