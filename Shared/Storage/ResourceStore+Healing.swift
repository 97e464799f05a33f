import Glibc

/// The follow-up after intact bytes have replaced a damaged stored file: marks of the damage are removed elsewhere.
///
/// An empty file beside the stored one records that the follow-up is open, so that it is not lost if the process is
/// killed in between, or if the disk is full: the bytes are then reported as healed again when they arrive again.
extension ResourceStore {
    private static let healingEnding = ".healed"

    private func healingPath(of digest: ResourceDigest) -> String { path(of: digest) + Self.healingEnding }

    /// Records that intact bytes are about to replace a damaged file. The folder is synced afterwards, with both names;
    /// the time of another sync, of the empty file, would reveal that there was a file.
    ///
    /// Errors are ignored: without this record the follow-up is lost only by a kill.
    func noteHealing(of digest: ResourceDigest) {
        let flags = O_WRONLY | O_CREAT | O_NOFOLLOW
        try? Descriptor(opening: healingPath(of: digest), flags, mode: 0o600).setMode(0o600)
    }

    /// Returns true if the follow-up for stored bytes is open.
    func isHealingOpen(_ digest: ResourceDigest) -> Bool { access(healingPath(of: digest), F_OK) == 0 }

    /// Ends the follow-up for some bytes, after all its steps.
    public func endHealing(of digest: ResourceDigest) { unlink(healingPath(of: digest)) }
}
