import Storage

/// Proves that a cache's folder holds what it should, and nothing else.
///
/// For a cache that nobody uses: files come and go under a running service.
struct CacheAudit: Sendable {
    /// Pictures found whole.
    private(set) var entries = 0
    /// What they take on the disk, as the accounting counts it.
    private(set) var bytes: Int64 = 0
    /// What is wrong, in words; empty for a good cache.
    private(set) var problems: [String] = []

    /// Reads every file: its name must be the key in its head, the key the hash of what its head says it was made from,
    /// and the checksum that of its bytes.
    ///
    /// - Parameter mayHoldPartial: files that a kill left half-written are no fault before the next start removes them
    init(root: String, mayHoldPartial: Bool = false) {
        for folder in RenditionStore.folders(of: root) {
            for name in RenditionStore.names(in: folder.path) {
                let path = "\(folder.path)/\(name)"
                if name.hasSuffix(".part") {
                    if !mayHoldPartial { problems.append("\(path): left over from a write that did not end") }
                    continue
                }
                guard let key = RenditionKey(name), name.hasPrefix(folder.prefix) else {
                    problems.append("\(path): no name of a picture in this folder")
                    continue
                }
                guard let file = RenditionStore.read(path, isUse: false),
                    RenditionFile.decode(file, key: key) != nil
                else {
                    problems.append("\(path): damaged, or of another key")
                    continue
                }
                guard let made = RenditionFile.canonical(file), RenditionKey(canonical: made) == key else {
                    problems.append("\(path): not what its name is the hash of")
                    continue
                }
                entries += 1
                bytes += RenditionStore.blocks(Int64(file.count))
            }
        }
    }
}
