import PhotoModel

/// The indexes that keep the cost of a first page independent of the library's size for each documented sort: one for
/// each sort key, and keywords with copies of the columns that common sort orders need.
enum OrderSchema {
    // A key of few values needs no second index for the other direction: it is read value by value. The media type,
    // which is usually combined with the size, is part of the index too, so that other types are skipped without
    // reading their rows.
    static let sortIndexes = """
        CREATE INDEX asset_media_type ON asset (visible, media_type, id);
        CREATE INDEX asset_media_subtypes ON asset (visible, media_subtypes, id);
        CREATE INDEX asset_is_favorite ON asset (visible, is_favorite, id);
        CREATE INDEX asset_pixel_width ON asset (visible, pixel_width, id, media_type);
        CREATE INDEX asset_pixel_height ON asset (visible, pixel_height, id, media_type);
        CREATE INDEX asset_duration ON asset (visible, duration, id);
        CREATE INDEX asset_smart_\(SmartAlbum.videos.rawValue)_duration ON asset (visible, duration, id)
        WHERE \(DerivedSchema.condition(.videos, prefix: ""));
        """

    // Few frames of a burst besides the representative are visible, so there is little to skip. `is_favorite` costs
    // little here, since few assets belong to a burst.
    static let bursts = """
        CREATE INDEX asset_visible_burst ON asset (burst_identifier, id, is_favorite)
        WHERE visible = 1 AND burst_identifier IS NOT NULL;
        """

    // `visible` and the dates are copies of the asset's columns. `repeats`: 0 for the first keyword with its folded
    // text, 1 if an earlier keyword has another spelling of it, 2 if an earlier keyword has the same text.
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
