import PhotoModel

extension PostgreSQLSchema {
    // `json_each` has the columns that statements use: `value` for texts, `atom` for numbers. PostgreSQL expands these
    // functions in the statement.
    static let functions = """
        CREATE FUNCTION json_each(list text) RETURNS TABLE (key bigint, value text, atom bigint)
        LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 100 AS $$
            SELECT o - 1, v #>> '{}', CASE jsonb_typeof(v) WHEN 'number' THEN (v #>> '{}')::bigint END
            FROM jsonb_array_elements(list::jsonb) WITH ORDINALITY AS t (v, o)
        $$;
        CREATE FUNCTION json_extract(object text, path text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
            SELECT object::jsonb ->> substr(path, 3)
        $$;
        CREATE FUNCTION instr(whole text, part text) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
            SELECT strpos(whole, part)
        $$;
        CREATE FUNCTION substr(whole text, first integer, count bigint) RETURNS text
        LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
            SELECT substr(whole, first, least(count, 2147483647)::integer)
        $$;
        CREATE FUNCTION max(one bigint, other bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
            SELECT greatest(one, other)
        $$;
        """

    static var indexes: String {
        let albums = SmartAlbum.allCases.filter(DerivedSchema.hasIndexes).flatMap { album in
            [("added", "added_date"), ("created", "creation_date DESC NULLS LAST")].map { name, column in
                """
                CREATE INDEX asset_smart_\(album.rawValue)_\(name) ON asset (visible, \(column), id)
                WHERE \(DerivedSchema.condition(album, prefix: ""));
                """
            }
        }
        let videos = """
            CREATE INDEX asset_smart_\(SmartAlbum.videos.rawValue)_duration ON asset (visible, duration, id)
            WHERE \(DerivedSchema.condition(.videos, prefix: ""))
            """
        return (otherIndexes + albums + [videos]).joined(separator: "\n")
    }

    private static let otherIndexes = [
        """
        CREATE INDEX asset_added ON asset (visible, added_date, id);
        CREATE INDEX asset_created ON asset (visible, creation_date DESC NULLS LAST, id);
        CREATE INDEX asset_modified ON asset (visible, modification_date DESC, id);
        CREATE INDEX asset_burst ON asset (burst_identifier, id) WHERE burst_identifier IS NOT NULL;
        CREATE INDEX departed_sequence ON departed (sequence);
        CREATE INDEX resource_digest ON resource (digest, type, asset);
        CREATE UNIQUE INDEX list_place ON list (parent, parent_key) WHERE parent IS NOT NULL;
        CREATE UNIQUE INDEX collection_place ON collection (parent, parent_key) WHERE parent IS NOT NULL;
        CREATE INDEX collection_created ON collection (type, subtype, creation_date, id);
        CREATE UNIQUE INDEX membership_asset ON membership (asset, collection);
        CREATE INDEX membership_created ON membership (collection, shown, creation_date DESC NULLS LAST, asset);
        CREATE INDEX outcome_unrecorded ON outcome (date) WHERE sequence = 0;
        CREATE INDEX published_edit_pending ON published_edit (accepted) WHERE state = 'accepted';
        CREATE INDEX published_edit_finished ON published_edit (date) WHERE state <> 'accepted';
        CREATE INDEX quarantine_date ON quarantine (date);
        CREATE INDEX asset_moment ON asset (moment, creation_date, id) WHERE moment IS NOT NULL;
        CREATE INDEX asset_trash ON asset (trashed_date, id) WHERE trashed_date IS NOT NULL;
        CREATE INDEX collection_cluster ON collection (cluster, start_date, id) WHERE cluster IS NOT NULL;
        CREATE INDEX collection_year ON collection (year, start_date, id) WHERE year IS NOT NULL;
        CREATE INDEX collection_started ON collection (type, start_date, id);
        CREATE INDEX list_started ON list (type, subtype, start_date, id);
        CREATE INDEX asset_media_created ON asset (visible, media_type, creation_date DESC NULLS LAST, id);
        CREATE INDEX asset_content_modified ON asset (visible, content_modification_date DESC, id);
        CREATE INDEX asset_media_type ON asset (visible, media_type, id);
        CREATE INDEX asset_media_subtypes ON asset (visible, media_subtypes, id);
        CREATE INDEX asset_is_favorite ON asset (visible, is_favorite, id);
        CREATE INDEX asset_pixel_width ON asset (visible, pixel_width, id, media_type);
        CREATE INDEX asset_pixel_height ON asset (visible, pixel_height, id, media_type);
        CREATE INDEX asset_duration ON asset (visible, duration, id);
        CREATE INDEX keyword_text_created ON keyword (text, visible, creation_date DESC NULLS LAST, asset, repeats);
        CREATE INDEX keyword_text_added ON keyword (text, visible, added_date, asset, repeats);
        CREATE INDEX keyword_folded_created ON keyword (folded, visible, creation_date DESC NULLS LAST, asset, repeats);
        CREATE INDEX keyword_folded_added ON keyword (folded, visible, added_date, asset, repeats);
        CREATE INDEX asset_visible_burst ON asset (burst_identifier, id, is_favorite)
            WHERE visible = 1 AND burst_identifier IS NOT NULL;
        CREATE INDEX kept_adjustment_digest ON kept_adjustment (digest);
        CREATE INDEX remote_object_open ON remote_object (state, digest) WHERE state <> 4;
        CREATE INDEX image_digest_digest ON image_digest (digest);
        CREATE INDEX upload_job_open ON upload_job (digest) WHERE state < 3;
        CREATE INDEX upload_job_version ON upload_job (version);
        CREATE INDEX upload_job_identity ON upload_job (identity, id);
        CREATE INDEX added_resource_asset ON added_resource (asset);
        """
    ]

    /// The SQLSTATE of a commit of a catalog that is no longer the writer.
    static let otherEpoch = "SL001"

    // The lock on the library's row keeps another catalog from taking over until the commit has ended. The function
    // also notifies the followers of the commit.
    static let requireEpoch = """
        CREATE OR REPLACE FUNCTION require_epoch(own bigint) RETURNS void LANGUAGE plpgsql AS $$
        DECLARE current record;
        BEGIN
            SELECT epoch, \(HistoryStore.newestSequence) AS head INTO current FROM library FOR SHARE;
            IF current.epoch <> own THEN
                RAISE EXCEPTION 'another catalog has taken over' USING ERRCODE = '\(otherEpoch)';
            END IF;
            PERFORM pg_notify('safelight_records', current_schema() || ' ' || current.head);
        END $$;
        """

    static let triggers = """
        \(requireEpoch)
        CREATE FUNCTION added_resource_deleted() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            DELETE FROM added_resource WHERE asset = OLD.id;
            RETURN NULL;
        END $$;
        CREATE TRIGGER added_resource_deleted AFTER DELETE ON asset
            FOR EACH ROW EXECUTE FUNCTION added_resource_deleted();
        CREATE FUNCTION upload_job_ended() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            UPDATE upload_job SET state = CASE NEW.state WHEN 6 THEN 5 ELSE NEW.state END,
                date = NEW.date, problem = NEW.problem, message = NEW.message
            WHERE digest = NEW.digest AND kind = 0 AND state < 3;
            RETURN NULL;
        END $$;
        CREATE TRIGGER upload_job_ended AFTER UPDATE OF state ON remote_object
            FOR EACH ROW WHEN (NEW.state IN (3, 4, 6)) EXECUTE FUNCTION upload_job_ended();
        CREATE FUNCTION upload_job_changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            UPDATE upload_job_clock SET version = version + 1;
            UPDATE upload_job SET version = (SELECT version FROM upload_job_clock) WHERE id = NEW.id;
            RETURN NULL;
        END $$;
        CREATE TRIGGER upload_job_new AFTER INSERT ON upload_job
            FOR EACH ROW EXECUTE FUNCTION upload_job_changed();
        CREATE TRIGGER upload_job_changed AFTER UPDATE OF state ON upload_job
            FOR EACH ROW EXECUTE FUNCTION upload_job_changed();
        CREATE FUNCTION remote_object_new() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            INSERT INTO remote_object (digest, size, state, attempts, kept, date)
                VALUES (NEW.digest, 0, 1, 0, 0, 0) ON CONFLICT DO NOTHING;
            RETURN NULL;
        END $$
        """
}
