import PhotoModel

/// The columns and indexes of derived collections: for each asset its smart albums and its moment, for each moment the
/// lists that contain it, and an index for each order by date.
enum DerivedSchema {
    // `smart` holds the bits of `SmartAlbum.mask(of:)` except that of the favorites, `moment` the key of
    // `Asset.moment`; both are written with the asset.
    static let columns = """
        ALTER TABLE asset ADD COLUMN smart INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE asset ADD COLUMN moment INTEGER;
        ALTER TABLE collection ADD COLUMN moment INTEGER;
        ALTER TABLE collection ADD COLUMN cluster INTEGER;
        ALTER TABLE collection ADD COLUMN year INTEGER;
        CREATE INDEX asset_moment ON asset (moment, creation_date, id) WHERE moment IS NOT NULL;
        CREATE INDEX asset_trash ON asset (trashed_date, id) WHERE trashed_date IS NOT NULL;
        CREATE INDEX collection_cluster ON collection (cluster, start_date, id) WHERE cluster IS NOT NULL;
        CREATE INDEX collection_year ON collection (year, start_date, id) WHERE year IS NOT NULL;
        CREATE INDEX collection_started ON collection (type, start_date, id);
        CREATE INDEX list_started ON list (type, subtype, start_date, id);
        CREATE INDEX asset_media_created ON asset (visible, media_type, creation_date DESC, id);
        CREATE INDEX asset_content_modified ON asset (visible, content_modification_date DESC, id);
        DROP INDEX asset_favorite;
        """

    /// True if a smart album has indexes of its own. Albums with much of the library use the indexes of the table.
    static func hasIndexes(_ album: SmartAlbum) -> Bool { album != .userLibrary && album != .generic }

    /// A small index for each smart album with indexes and each order by date; those of the favorites are part of
    /// ``favorites``.
    static var indexes: String {
        SmartAlbum.allCases.filter { hasIndexes($0) && $0 != .favorites }.map(indexes).joined(separator: "\n")
    }

    private static func indexes(_ album: SmartAlbum) -> String {
        [("added", "added_date"), ("created", "creation_date DESC")].map { name, column in
            """
            CREATE INDEX IF NOT EXISTS asset_smart_\(album.rawValue)_\(name) ON asset (visible, \(column), id)
            WHERE \(condition(album, prefix: ""));
            """
        }.joined(separator: "\n")
    }

    // SQLite deletes a changed row from all partial indexes whose condition mentions a changed column, and inserts it
    // again. Favorites change often, so they have a column of their own, and the other albums' indexes are left alone.
    static let favorites = """
        DROP INDEX IF EXISTS asset_smart_\(SmartAlbum.favorites.rawValue)_added;
        DROP INDEX IF EXISTS asset_smart_\(SmartAlbum.favorites.rawValue)_created;
        ALTER TABLE asset ADD COLUMN smart_favorites INTEGER NOT NULL DEFAULT 0;
        UPDATE asset SET smart_favorites = smart & \(SmartAlbum.favorites.bit), smart = smart & ~\(SmartAlbum.favorites.bit)
            WHERE smart & \(SmartAlbum.favorites.bit) <> 0;
        \(indexes(.favorites))
        """

    /// The value of the column `smart` of an asset.
    static func smart(_ asset: Asset) -> Int { SmartAlbum.mask(of: asset) & ~SmartAlbum.favorites.bit }

    /// The value of the column `smart_favorites` of an asset.
    static func favorites(_ asset: Asset) -> Int {
        SmartAlbum.favorites.contains(asset) ? SmartAlbum.favorites.bit : 0
    }

    /// Returns the clause that makes SQLite use an index of a smart album: the index that has the order of the fetch or
    /// else, since the result has to be sorted anyway, the one by added date.
    static func hint(_ album: SmartAlbum, _ fetch: Fetch) -> String {
        "INDEXED BY asset_smart_\(album.rawValue)_\(fetch.isOfVideosByDuration ? "duration" : "added")"
    }

    /// Returns the condition that an asset belongs to a smart album, for a scan in the order of another index; written
    /// so that SQLite does not choose the album's own index.
    ///
    /// Favorites are looked up in their part of an index, which is small; the row itself is then not read.
    static func scanCondition(_ album: SmartAlbum) -> String {
        guard album == .favorites else { return condition(album, prefix: "+a.") }
        return """
            EXISTS (SELECT 1 FROM asset f INDEXED BY asset_is_favorite
                WHERE f.visible = 1 AND f.is_favorite = 1 AND f.id = a.id)
            """
    }

    /// Returns the condition that an asset belongs to a smart album. Queries and partial indexes must use identical
    /// text: only then does SQLite recognize that the index applies.
    ///
    /// - Parameter prefix: the text before the name of the column: the alias of the table in a query, with a plus if
    ///   SQLite must not choose the album's own index; empty in the definition of an index
    static func condition(_ album: SmartAlbum, prefix: String = "a.") -> String {
        let column = album == .favorites ? "smart_favorites" : "smart"
        return "(\(prefix)\(column) & \(album.bit)) <> 0"
    }
}
