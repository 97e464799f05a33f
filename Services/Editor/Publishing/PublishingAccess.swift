import Contracts
import Hosting

/// Decides whose published edits are accepted.
struct PublishingAccess: Sendable {
    /// Returns whether an identity may publish; nil if it has to be asked about.
    let isKnown: @Sendable (_ identity: String) -> Bool?
    let ask: @Sendable (_ identity: String) async -> Bool
    /// Counts a dropped edit.
    let refused: @Sendable (_ identity: String) -> Void

    /// For tests of a processor alone.
    static let everyone = PublishingAccess(isKnown: { _ in true }, ask: { _ in true }, refused: { _ in })
}

extension PublishingAccess {
    init(_ table: AccessTable, _ refusals: RefusalCounts) {
        self.init(
            isKnown: { table.isAllowed(.view, for: $0) },
            ask: { (try? await table.permission(of: $0, nil))?.allows(.view) == true },
            refused: { refusals.count($0) }
        )
    }
}
