import GRDB
import PhotoModel

/// The tables of the catalog, as migrations.
///
/// Every property that a predicate, a sort key or a membership rule reads has its own column. Constraints are part of
/// the schema, not of the code. Enumerations are stored as PhotoKit's numbers, dates as microseconds since 1970, text
/// in Unicode normalization form C.
enum CatalogSchema {
    static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1 entities") { database in
            try database.execute(sql: library)
            try database.execute(sql: assets)
            try database.execute(sql: collections)
            try database.execute(sql: memberships)
        }
        migrator.registerMigration("1 history") { database in
            try database.execute(sql: history)
        }
        migrator.registerMigration("1 published edits") { database in
            try database.execute(sql: publishedEdits)
        }
        migrator.registerMigration("2 quarantine") { database in
            try database.execute(sql: quarantine)
        }
        migrator.registerMigration("3 derived collections") { database in
            try database.execute(sql: DerivedSchema.columns)
            try database.execute(sql: DerivedSchema.indexes)
        }
        migrator.registerMigration("4 damage") { database in
            try database.execute(sql: "ALTER TABLE resource ADD COLUMN damage TEXT")
        }
        migrator.registerMigration("5 usual orders") { database in
            try database.execute(sql: OrderSchema.sortIndexes)
            try database.execute(sql: OrderSchema.keywords)
        }
        migrator.registerMigration("6 visible bursts") { database in
            try database.execute(sql: OrderSchema.bursts)
        }
        migrator.registerMigration("7 durations") { database in
            try database.execute(sql: "ALTER TABLE resource ADD COLUMN duration INTEGER CHECK (duration >= 0)")
            try database.execute(
                sql: "UPDATE resource SET duration = (SELECT duration FROM asset WHERE row = asset) WHERE type = ?",
                arguments: [ResourceType.video.number]
            )
        }
        migrator.registerMigration("8 kept adjustments") { database in
            try database.execute(sql: KeptAdjustmentStore.schema)
            try KeptAdjustmentStore(database: SQLConnection(database)).backfill()
        }
        migrator.registerMigration("9 all smart albums") { database in
            try database.execute(sql: DerivedSchema.indexes)
        }
        migrator.registerMigration("10 sharpness of bursts") { database in
            try database.execute(sql: "ALTER TABLE asset ADD COLUMN sharpness REAL CHECK (sharpness >= 0)")
        }
        migrator.registerMigration("11 metadata") { database in
            try database.execute(sql: MetadataStore.schema)
        }
        migrator.registerMigration("12 parts of files") { database in
            try database.execute(sql: "ALTER TABLE resource ADD COLUMN file_offset INTEGER CHECK (file_offset >= 0)")
            try database.execute(sql: MetadataStore.rereadAll)
        }
        migrator.registerMigration("13 favorites") { database in
            try database.execute(sql: DerivedSchema.favorites)
        }
        migrator.registerMigration("14 grants") { database in
            try database.execute(sql: GrantStore.schema)
        }
        migrator.registerMigration("15 remote objects") { database in
            try database.execute(sql: UploadStateStore.schema)
        }
        migrator.registerMigration("17 image digests") { database in
            try database.execute(sql: ImageDigestStore.schema)
            try database.execute(sql: MetadataStore.rereadAll)
        }
        migrator.registerMigration("18 upload jobs") { database in
            try database.execute(sql: UploadJobStore.schema)
        }
        migrator.registerMigration("19 gain maps") { database in
            try database.execute(sql: MetadataStore.rereadAll)
        }
        migrator.registerMigration("20 versions of upload jobs") { database in
            try database.execute(sql: UploadJobStore.versions)
        }
        migrator.registerMigration("21 jobs of add-only clients") { database in
            try database.execute(sql: AddedResourceStore.schema)
            try database.execute(sql: UploadStateStore.addAgainColumn)
            try database.execute(sql: UploadJobStore.addOnlyKeys)
        }
        migrator.registerMigration("22 outcomes of records") { database in
            try database.execute(sql: recordedOutcomes)
        }
        return migrator
    }

    /// The history is complete after `oldest`. The newest sequence is that of the newest record, and at least `head`:
    /// ``HistoryStore/newestSequence``.
    private static let library = """
        CREATE TABLE library (
            only INTEGER PRIMARY KEY CHECK (only = 1),
            history TEXT NOT NULL CHECK (length(history) = 32),
            created INTEGER NOT NULL,
            head INTEGER NOT NULL CHECK (head >= 0),
            oldest INTEGER NOT NULL CHECK (oldest BETWEEN 0 AND head)
        ) STRICT;
        CREATE TABLE counter (
            name TEXT PRIMARY KEY NOT NULL,
            value INTEGER NOT NULL CHECK (value >= 0)
        ) STRICT, WITHOUT ROWID;
        """

    // AUTOINCREMENT: a row number is never reused, because cached results refer to assets by row number.
    // `visible` is the first column of most indexes. An asset is visible if it is neither hidden nor in the trash,
    // belongs to the user's own library and, in a burst, is the representative or a pick.
    private static let assets = """
        CREATE TABLE asset (
            row INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE CHECK (length(id) = 27),
            visible INTEGER NOT NULL CHECK (visible IN (0, 1)),
            revision INTEGER NOT NULL,
            content_revision INTEGER NOT NULL,
            media_type INTEGER NOT NULL,
            media_subtypes INTEGER NOT NULL,
            playback_style INTEGER NOT NULL,
            playback_variation TEXT NOT NULL,
            source_type INTEGER NOT NULL,
            content_type TEXT NOT NULL,
            pixel_width INTEGER NOT NULL CHECK (pixel_width >= 0),
            pixel_height INTEGER NOT NULL CHECK (pixel_height >= 0),
            duration INTEGER NOT NULL CHECK (duration >= 0),
            creation_date INTEGER,
            creation_offset INTEGER,
            modification_date INTEGER NOT NULL,
            content_modification_date INTEGER NOT NULL,
            added_date INTEGER NOT NULL,
            trashed_date INTEGER,
            latitude REAL CHECK (latitude BETWEEN -90 AND 90),
            longitude REAL CHECK (longitude BETWEEN -180 AND 180),
            altitude REAL,
            is_favorite INTEGER NOT NULL CHECK (is_favorite IN (0, 1)),
            is_hidden INTEGER NOT NULL CHECK (is_hidden IN (0, 1)),
            burst_identifier TEXT,
            represents_burst INTEGER NOT NULL CHECK (represents_burst IN (0, 1)),
            burst_selection_types INTEGER NOT NULL,
            rating INTEGER NOT NULL CHECK (rating BETWEEN 0 AND 5),
            caption TEXT,
            caption_folded TEXT,
            original_filename TEXT,
            original_filename_folded TEXT,
            camera_make TEXT,
            camera_make_folded TEXT,
            camera_model TEXT,
            camera_model_folded TEXT,
            lens_model TEXT,
            lens_model_folded TEXT,
            adjustment_format_identifier TEXT,
            adjustment_format_version TEXT,
            adjustment_date INTEGER,
            CHECK ((latitude IS NULL) = (longitude IS NULL)),
            CHECK (burst_identifier IS NOT NULL OR represents_burst = 0)
        ) STRICT;
        CREATE INDEX asset_added ON asset (visible, added_date, id);
        CREATE INDEX asset_created ON asset (visible, creation_date DESC, id);
        CREATE INDEX asset_modified ON asset (visible, modification_date DESC, id);
        CREATE INDEX asset_favorite ON asset (visible, creation_date DESC, id) WHERE is_favorite = 1;
        CREATE INDEX asset_burst ON asset (burst_identifier, id) WHERE burst_identifier IS NOT NULL;

        -- Deleted assets that the kept history still mentions: results at earlier sequences refer to them by row
        -- number.
        CREATE TABLE departed (
            row INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            sequence INTEGER NOT NULL
        ) STRICT;
        CREATE INDEX departed_sequence ON departed (sequence);

        CREATE TABLE resource (
            asset INTEGER NOT NULL REFERENCES asset ON DELETE CASCADE,
            position INTEGER NOT NULL,
            type INTEGER NOT NULL,
            digest BLOB NOT NULL CHECK (length(digest) = 32),
            size INTEGER NOT NULL CHECK (size >= 0),
            content_type TEXT NOT NULL,
            original_filename TEXT,
            pixel_width INTEGER NOT NULL,
            pixel_height INTEGER NOT NULL,
            PRIMARY KEY (asset, position)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX resource_digest ON resource (digest, type, asset);

        CREATE TABLE keyword (
            asset INTEGER NOT NULL REFERENCES asset ON DELETE CASCADE,
            position INTEGER NOT NULL,
            text TEXT NOT NULL,
            folded TEXT NOT NULL,
            PRIMARY KEY (asset, position)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX keyword_text ON keyword (text, asset);
        CREATE INDEX keyword_folded ON keyword (folded, asset);
        """

    private static let collections = """
        CREATE TABLE list (
            row INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE CHECK (length(id) = 27),
            revision INTEGER NOT NULL,
            type INTEGER NOT NULL,
            subtype INTEGER NOT NULL,
            title TEXT,
            title_folded TEXT,
            parent INTEGER REFERENCES list,
            parent_key TEXT,
            creation_date INTEGER NOT NULL,
            modification_date INTEGER NOT NULL,
            start_date INTEGER,
            end_date INTEGER,
            child_count INTEGER NOT NULL CHECK (child_count >= 0),
            CHECK ((parent IS NULL) = (parent_key IS NULL))
        ) STRICT;
        CREATE UNIQUE INDEX list_place ON list (parent, parent_key) WHERE parent IS NOT NULL;

        CREATE TABLE collection (
            row INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE CHECK (length(id) = 27),
            revision INTEGER NOT NULL,
            type INTEGER NOT NULL,
            subtype INTEGER NOT NULL,
            title TEXT,
            title_folded TEXT,
            parent INTEGER REFERENCES list,
            parent_key TEXT,
            creation_date INTEGER NOT NULL,
            modification_date INTEGER NOT NULL,
            start_date INTEGER,
            end_date INTEGER,
            asset_count INTEGER CHECK (asset_count >= 0),
            key_asset TEXT,
            CHECK ((parent IS NULL) = (parent_key IS NULL))
        ) STRICT;
        CREATE UNIQUE INDEX collection_place ON collection (parent, parent_key) WHERE parent IS NOT NULL;
        CREATE INDEX collection_created ON collection (type, subtype, creation_date, id);
        """

    // The members of an album in album order. The columns after `asset` are copies of the asset's columns, for
    // common sort orders and filters in an album. `shown`: neither hidden nor in the trash and, in a burst, the
    // representative or a pick.
    private static let memberships = """
        CREATE TABLE membership (
            collection INTEGER NOT NULL REFERENCES collection ON DELETE CASCADE,
            order_key TEXT NOT NULL,
            asset INTEGER NOT NULL REFERENCES asset ON DELETE CASCADE,
            shown INTEGER NOT NULL CHECK (shown IN (0, 1)),
            creation_date INTEGER,
            added_date INTEGER NOT NULL,
            PRIMARY KEY (collection, order_key)
        ) STRICT, WITHOUT ROWID;
        CREATE UNIQUE INDEX membership_asset ON membership (asset, collection);
        CREATE INDEX membership_created ON membership (collection, shown, creation_date DESC, asset);
        """

    // Stored bytes that crashed or hung a worker, whether or not an asset refers to them.
    private static let quarantine = """
        CREATE TABLE quarantine (
            digest TEXT PRIMARY KEY NOT NULL CHECK (length(digest) = 64),
            name TEXT NOT NULL,
            reason TEXT NOT NULL,
            service TEXT NOT NULL,
            failures INTEGER NOT NULL CHECK (failures > 0),
            date INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX quarantine_date ON quarantine (date);
        """

    // A change's record is its final JSON, in bytes. Topics let a filtered reader find its records without reading the
    // rest.
    private static let history = """
        CREATE TABLE change (
            sequence INTEGER PRIMARY KEY CHECK (sequence > 0),
            date INTEGER NOT NULL,
            library TEXT NOT NULL,
            size INTEGER NOT NULL,
            record BLOB NOT NULL
        ) STRICT;
        CREATE TABLE change_topic (
            topic TEXT NOT NULL,
            sequence INTEGER NOT NULL,
            PRIMARY KEY (topic, sequence)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE outcome (
            identity TEXT NOT NULL,
            client TEXT NOT NULL,
            "transaction" TEXT NOT NULL,
            digest BLOB NOT NULL CHECK (length(digest) = 32),
            reply BLOB NOT NULL,
            sequence INTEGER NOT NULL,
            date INTEGER NOT NULL,
            PRIMARY KEY (identity, client, "transaction")
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX outcome_date ON outcome (date);
        """

    /// An outcome is deleted with the record that has its sequence. Without a record, the sequence is 0 and the outcome
    /// is deleted by its date; so are all outcomes of earlier versions.
    static let recordedOutcomes = """
        DROP INDEX outcome_date;
        UPDATE outcome SET sequence = 0;
        CREATE INDEX outcome_unrecorded ON outcome (date) WHERE sequence = 0;
        """

    // A published edit, from its acceptance until it is deleted. A finished edit is kept as long as change records are,
    // so that a repeated id is neither applied again nor left without an answer. Only the outcome of a finished edit is
    // kept.
    private static let publishedEdits = """
        CREATE TABLE published_edit (
            publisher TEXT NOT NULL,
            id TEXT NOT NULL CHECK (length(id) BETWEEN 1 AND 48),
            asset TEXT NOT NULL CHECK (length(asset) = 27),
            state TEXT NOT NULL CHECK (state IN ('accepted', 'applied', 'failed')),
            predecessor TEXT,
            digest TEXT NOT NULL,
            content BLOB NOT NULL,
            error_name TEXT,
            error_message TEXT,
            accepted INTEGER NOT NULL,
            sequence INTEGER NOT NULL,
            date INTEGER NOT NULL,
            PRIMARY KEY (publisher, id),
            CHECK ((state = 'failed') = (error_name IS NOT NULL)),
            CHECK (state = 'accepted' OR length(content) = 0)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX published_edit_pending ON published_edit (accepted) WHERE state = 'accepted';
        CREATE INDEX published_edit_finished ON published_edit (date) WHERE state <> 'accepted';
        """
}
