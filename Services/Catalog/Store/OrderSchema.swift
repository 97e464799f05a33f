import PhotoModel

/// What makes the first page of each documented sort cost what it shows, however large the library is: an index for each
/// sort key, and keywords that carry what the usual sorts need.
enum OrderSchema {
    // A key of few values needs no second index for the other direction: it is read value by value. The kind of medium,
    // which goes with the size, stands in the index too, so that others are passed over without reading their rows.
    static let sortIndexes = """
        CREATE INDEX asset_media_type ON asset (visible, media_type, id);
        CREATE INDEX asset_media_subtypes ON asset (visible, media_subtypes, id);
        CREATE INDEX asset_is_favorite ON asset (visible, is_favorite, id);
        CREATE INDEX asset_pixel_width ON asset (visible, pixel_width, id, media_type);
        CREATE INDEX asset_pixel_height ON asset (visible, pixel_height, id, media_type);
        CREATE INDEX asset_duration ON asset (visible, duration, id);
        CREATE INDEX asset_smart_\(SmartAlbum.videos.rawValue)_duration ON asset (visible, duration, id)
        WHERE \(DerivedSchema.condition(.videos, "smart"));
        """

    // Of a burst hardly more than its representative is visible: the others need not be passed over. Whether it is a
    // favourite costs nothing here, since few assets are of a burst.
    static let bursts = """
        CREATE INDEX asset_visible_burst ON asset (burst_identifier, id, is_favorite)
        WHERE visible = 1 AND burst_identifier IS NOT NULL;
        """

    // `visible` and the dates are copies of the asset's. `repeats`: 0 for the first keyword of its folded text, 1 where
    // another spelling stands before it, 2 where the same text does.
    static let keywords = """
        ALTER TABLE keyword ADD COLUMN visible INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE keyword ADD COLUMN creation_date INTEGER;
        ALTER TABLE keyword ADD COLUMN added_date INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE keyword ADD COLUMN repeats INTEGER NOT NULL DEFAULT 0;
        UPDATE keyword SET
            (visible, creation_date, added_date) =
                (SELECT a.visible, a.creation_date, a.added_date FROM asset a WHERE a.row = keyword.asset),
            repeats = EXISTS (
                SELECT 1 FROM keyword k
                WHERE k.asset = keyword.asset AND k.position < keyword.position AND k.folded = keyword.folded)
                + EXISTS (
                SELECT 1 FROM keyword k
                WHERE k.asset = keyword.asset AND k.position < keyword.position AND k.text = keyword.text);
        DROP INDEX keyword_text;
        DROP INDEX keyword_folded;
        CREATE INDEX keyword_text_created ON keyword (text, visible, creation_date DESC, asset, repeats);
        CREATE INDEX keyword_text_added ON keyword (text, visible, added_date, asset, repeats);
        CREATE INDEX keyword_folded_created ON keyword (folded, visible, creation_date DESC, asset, repeats);
        CREATE INDEX keyword_folded_added ON keyword (folded, visible, added_date, asset, repeats);
        INSERT INTO counter SELECT 'keyword=' || text, count(*) FROM keyword WHERE visible = 1 AND repeats < 2
            GROUP BY text;
        INSERT INTO counter SELECT 'keyword~' || folded, count(*) FROM keyword WHERE visible = 1 AND repeats = 0
            GROUP BY folded;
        """
}
