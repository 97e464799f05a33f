import Contracts
import Logging
import Messaging
import PhotoModel
import Storage

/// What follows when good bytes have replaced a damaged stored file: what was concluded from the damaged ones is taken
/// back.
struct ResourceHealing: Sendable {
    let store: LibraryStore
    let writer: Writer
    let quarantine: Quarantine
    let pictures: PictureReader
    let logger: Logger

    func healed(_ digests: [ResourceDigest]) async {
        for digest in digests {
            logger.notice("a damaged stored file was replaced by good bytes", metadata: ["digest": "\(digest)"])
            do {
                _ = try await quarantine.lift(LiftQuarantine(digest: digest.text))
                try await lookAgain(digest)
            } catch {
                logger.warning(
                    "marks of damaged bytes were left on healed ones",
                    metadata: ["digest": "\(digest)", "error": "\(error)"]
                )
            }
        }
    }

    /// An asset that was marked because of the damaged bytes is marked as the good ones are, or not at all.
    private func lookAgain(_ digest: ResourceDigest) async throws {
        let assets = try await store.read { try $0.assets.damaged(by: digest) }
        guard !assets.isEmpty else { return }
        let damage = try await pictures.damage(of: digest)
        let marks = assets.map { DamageMark(asset: $0, digest: digest.text, damage: damage) }
        _ = try await writer.perform(.marking(marks))
    }
}
