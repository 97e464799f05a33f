import Basics
import Storage

/// A query of the stored bytes that the database refers to.
struct ReferencedDigestStore {
    let database: SQLConnection

    /// Returns all referenced digests that begin with two hexadecimal digits.
    func digests(in part: String) throws -> Set<ResourceDigest> {
        guard let first = UInt8(part, radix: 16) else { return [] }
        // Digests have 32 bytes, so the range from one first byte to the next contains exactly those of this prefix; 33
        // bytes of 255 are greater than any digest.
        let (from, to) = ([first], first == 255 ? [UInt8](repeating: 255, count: 33) : [first + 1])
        var found: Set<ResourceDigest> = []
        try database.each(
            """
            SELECT digest FROM resource WHERE digest >= ? AND digest < ?
            UNION SELECT digest FROM kept_adjustment WHERE digest >= ? AND digest < ?
            """,
            from,
            to,
            from,
            to
        ) { row in
            guard let digest = ResourceDigest(row.hexadecimal(0)) else {
                throw DamagedRow("a digest does not have 32 bytes")
            }
            found.insert(digest)
        }
        return found
    }

    func contains(_ digest: ResourceDigest) throws -> Bool {
        guard let bytes = [UInt8](hexadecimal: digest.text) else { return false }
        return try database.first(
            """
            SELECT EXISTS (SELECT 1 FROM resource WHERE digest = ?)
                OR EXISTS (SELECT 1 FROM kept_adjustment WHERE digest = ?)
            """,
            bytes,
            bytes
        ) { $0.flag(0) } ?? true
    }
}
