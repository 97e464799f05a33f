import PhotoModel

/// What derived collections need in the database: for each asset which smart albums it is in and its moment, for each
/// moment the lists that it is in, and an index for each usual order.
enum DerivedSchema {
    // `smart` holds the bits of `SmartAlbum.mask(of:)`, `moment` the key of `Asset.moment`, both written with the asset.
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

    /// One small index for each smart album and usual order; that of the library itself is the asset's own.
    static var indexes: String {
        SmartAlbum.allCases.filter { $0 != .userLibrary }.flatMap { album in
            [("added", "added_date"), ("created", "creation_date DESC")].map { name, column in
                """
                CREATE INDEX asset_smart_\(album.rawValue)_\(name) ON asset (visible, \(column), id)
                WHERE \(condition(album, "smart"));
                """
            }
        }.joined(separator: "\n")
    }

    /// Holds a query to the index of a smart album: to the one that has the order, or else to any, and the order is made
    /// by sorting.
    static func hint(_ album: SmartAlbum, _ fetch: Fetch) -> String {
        "INDEXED BY asset_smart_\(album.rawValue)_\(fetch.isOfVideosByDuration ? "duration" : "added")"
    }

    /// Whether an asset that is come upon in another order belongs to a smart album; leads to no index of its own.
    ///
    /// Favourites are looked up in their part of an index: it is small, and the index of the order is enough besides.
    static func isInside(_ album: SmartAlbum) -> String {
        guard album == .favorites else { return condition(album, "+a.smart") }
        return """
            EXISTS (SELECT 1 FROM asset f INDEXED BY asset_is_favorite
                WHERE f.visible = 1 AND f.is_favorite = 1 AND f.id = a.id)
            """
    }

    /// The same words in queries as in the indexes: only then does SQLite see that they fit.
    static func condition(_ album: SmartAlbum, _ column: String = "a.smart") -> String {
        "(\(column) & \(album.bit)) <> 0"
    }
}
