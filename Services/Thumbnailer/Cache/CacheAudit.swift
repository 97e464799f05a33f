import Storage

/// A check that a disk cache's folder contains valid renditions and nothing else.
///
/// Only for a cache that no service uses: a running service adds and removes files.
struct CacheAudit: Sendable {
    /// The number of valid renditions.
    private(set) var entries = 0
    /// Their size on disk in bytes, counted in whole blocks as ``RenditionDiskCache`` does.
    private(set) var bytes: Int64 = 0
    /// One description for each invalid file; empty for a valid cache.
    private(set) var problems: [String] = []

    /// Reads and checks every file: its name must equal the key in its header, the key must be the hash of the plan in
    /// its header, and the checksum must match the content.
    ///
    /// - Parameter allowsPartial: true to accept partial files of a killed process, which the next start removes
    init(root: String, allowsPartial: Bool = false) {
        for folder in RenditionDiskCache.folders(of: root) {
            for name in RenditionDiskCache.names(in: folder.path) {
                let path = "\(folder.path)/\(name)"
                if name.hasSuffix(".part") {
                    if !allowsPartial { problems.append("\(path): left over from an interrupted write") }
                    continue
                }
                guard let key = RenditionKey(name), name.hasPrefix(folder.prefix) else {
                    problems.append("\(path): not the name of a rendition in this folder")
                    continue
                }
                guard let file = RenditionDiskCache.read(path, recordsUse: false),
                    RenditionFile.decode(file, key: key) != nil
                else {
                    problems.append("\(path): damaged, or the content of another key")
                    continue
                }
                guard let canonical = RenditionFile.canonical(file), RenditionKey(canonical: canonical) == key else {
                    problems.append("\(path): the name is not the hash of the plan in its header")
                    continue
                }
                entries += 1
                bytes += RenditionDiskCache.sizeOnDisk(Int64(file.count))
            }
        }
    }
}

extension CacheAudit {
    /// Checks every file of a cache, for `--verify-cache`. Returns a summary as text.
    ///
    /// - Throws: if a service uses the cache, or if any file is invalid
    static func verify(cache: String) throws -> String {
        let lock = try ThumbnailerService.lock(cache: cache)
        defer { withExtendedLifetime(lock) {} }
        let audit = CacheAudit(root: cache, allowsPartial: true)
        guard audit.problems.isEmpty else {
            throw CacheError(description: audit.problems.prefix(100).joined(separator: "\n"))
        }
        return "\(audit.entries) renditions, \(audit.bytes >> 10) KiB; all are valid."
    }
}
