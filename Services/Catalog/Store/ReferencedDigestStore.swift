import Basics
import GRDB
import Storage

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A query of the stored bytes that the database refers to.
struct ReferencedDigestStore {
    let database: Database

    /// Returns all referenced digests that begin with two hexadecimal digits.
    func digests(in part: String) throws -> Set<ResourceDigest> {
        guard let first = UInt8(part, radix: 16) else { return [] }
        // Digests have 32 bytes, so the range from one first byte to the next contains exactly those of this prefix; 33
        // bytes of 255 are greater than any digest.
        let (from, to) = (Data([first]), first == 255 ? Data(repeating: 255, count: 33) : Data([first + 1]))
        let rows = try Data.fetchCursor(
            database,
            sql: """
                SELECT digest FROM resource WHERE digest >= ? AND digest < ?
                UNION SELECT digest FROM kept_adjustment WHERE digest >= ? AND digest < ?
                """,
            arguments: [from, to, from, to]
        )
        var found: Set<ResourceDigest> = []
        while let row = try rows.next() {
            guard let digest = ResourceDigest(row.hexadecimal) else {
                throw DamagedRow("a digest does not have 32 bytes")
            }
            found.insert(digest)
        }
        return found
    }

    func contains(_ digest: ResourceDigest) throws -> Bool {
        guard let bytes = [UInt8](hexadecimal: digest.text) else { return false }
        let statement = try database.cachedStatement(
            sql: """
                SELECT EXISTS (SELECT 1 FROM resource WHERE digest = ?)
                    OR EXISTS (SELECT 1 FROM kept_adjustment WHERE digest = ?)
                """
        )
        return try Bool.fetchOne(statement, arguments: [Data(bytes), Data(bytes)]) ?? true
    }
}
