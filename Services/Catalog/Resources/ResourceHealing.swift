import Contracts
import Logging
import PhotoModel
import Storage

/// Removes the quarantine entries and damage marks of a stored file that intact bytes have replaced.
///
/// If that fails, or the catalog is killed before, the next import of the same bytes removes them.
struct ResourceHealing: Sendable {
    let store: LibraryStore
    let writer: TransactionWriter
    let quarantine: Quarantine
    let extractor: MetadataExtractor
    let logger: Logger

    func removeMarks(of digests: [ResourceDigest]) async {
        for digest in digests {
            logger.notice("intact bytes replaced a stored file", metadata: ["digest": "\(digest)"])
            do {
                _ = try await quarantine.lift(LiftQuarantine(digest: digest.text))
                try await updateDamage(of: digest)
                extractor.resources.endHealing(of: digest)
            } catch {
                logger.warning(
                    "damage marks of a healed file could not be removed",
                    metadata: ["digest": "\(digest)", "error": "\(error)"]
                )
            }
        }
    }

    /// Checks the bytes again, and updates or removes the damage marks of the assets that have them.
    private func updateDamage(of digest: ResourceDigest) async throws {
        let assets = try await store.read { try $0.assets.damaged(by: digest) }
        guard !assets.isEmpty else { return }
        let damage = try await extractor.damage(of: digest)
        let marks = assets.map { DamageReport(asset: $0, digest: digest.text, damage: damage) }
        _ = try await writer.perform(.marking(marks))
    }
}
