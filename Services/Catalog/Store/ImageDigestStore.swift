import PhotoModel

/// Reads and writes the digests of image data: equal for files that differ in their metadata only.
///
/// A digest is a fact of the stored file, so it is neither part of an asset's record nor of the history.
struct ImageDigestStore {
    let database: SQLConnection

    static let schema = """
        CREATE TABLE image_digest (
            asset INTEGER PRIMARY KEY REFERENCES asset ON DELETE CASCADE,
            digest BLOB NOT NULL CHECK (length(digest) = 32)
        ) STRICT;
        CREATE INDEX image_digest_digest ON image_digest (digest);
        """

    /// Sets the digests of assets; those without a row are ignored.
    func save(_ digests: [ImageDigest]) throws {
        for digest in digests {
            try database.run(
                """
                INSERT INTO image_digest SELECT row, ? FROM asset WHERE id = ?
                ON CONFLICT (asset) DO UPDATE SET digest = excluded.digest
                """,
                digest.bytes,
                digest.asset.text
            )
        }
    }

    /// Returns the assets with the same image data, except those in the trash, oldest import first.
    func assets(with digest: [UInt8], limit: Int) throws -> [ObjectID] {
        try database.all(
            """
            SELECT a.id FROM image_digest i JOIN asset a ON a.row = i.asset
            WHERE i.digest = ? AND a.trashed_date IS NULL ORDER BY i.asset LIMIT ?
            """,
            digest,
            limit
        ) { $0.text(0) }.map(AssetRowMapping.identifier)
    }

    /// Returns digests that several assets have, including assets in the trash, in ascending order.
    ///
    /// - Parameter start: the digests are greater than this one; nil for the first ones
    func repeated(after start: [UInt8]?, limit: Int) throws -> [[UInt8]] {
        try database.all(
            """
            SELECT digest FROM image_digest WHERE digest > ? GROUP BY digest HAVING count(*) > 1 ORDER BY digest LIMIT ?
            """,
            start ?? [],
            limit
        ) { $0.bytes(0) }.map { [UInt8]($0) }
    }
}

/// The digest of an asset's image data.
struct ImageDigest: Sendable, Equatable {
    let asset: ObjectID
    /// SHA-256, 32 bytes.
    let bytes: [UInt8]
}
