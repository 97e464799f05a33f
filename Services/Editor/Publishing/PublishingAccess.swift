import Contracts
import Hosting

/// Decides whose published edits are accepted: those of identities that may change what they see.
struct PublishingAccess: Sendable {
    /// Returns the permissions of an identity; nil if the catalog has to be asked.
    let known: @Sendable (_ identity: String) -> Permission?
    /// Returns the permissions of an identity, asking the catalog; nil if they cannot be determined.
    let ask: @Sendable (_ identity: String) async -> Permission?
    /// Counts a dropped edit.
    let countRefusal: @Sendable (_ identity: String) -> Void

    /// Accepts the edits of everyone; for tests of a processor alone.
    static let everyone = PublishingAccess(known: { _ in Permission(.host) }, ask: { _ in nil }, countRefusal: { _ in })
}

extension PublishingAccess {
    init(_ table: AccessTable, _ refusals: RefusalCounts) {
        self.init(
            known: { table.knownPermission(of: $0) },
            ask: { try? await table.permission(of: $0, nil) },
            countRefusal: { refusals.count($0) }
        )
    }
}
