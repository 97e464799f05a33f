import Basics
import Storage

/// Reads and writes the states of uploads to the object store, within one transaction. They are not part of the
/// history: no change record mentions them.
struct UploadStateStore {
    let database: SQLConnection

    /// The jobs that wait for the bytes.
    var jobs: UploadJobStore { UploadJobStore(database: database) }

    // States 1 to 5 have the numbers of PHAssetResourceUploadJobState; 6 exists only here.
    static let schema = """
        CREATE TABLE remote_object (
            digest BLOB PRIMARY KEY NOT NULL CHECK (length(digest) = 32),
            size INTEGER NOT NULL CHECK (size >= 0),
            state INTEGER NOT NULL CHECK (state BETWEEN 1 AND 6),
            attempts INTEGER NOT NULL CHECK (attempts >= 0),
            problem TEXT,
            message TEXT,
            kept INTEGER NOT NULL CHECK (kept IN (0, 1)),
            date INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX remote_object_open ON remote_object (state, digest) WHERE state <> 4;
        CREATE TABLE remote_store (
            only INTEGER PRIMARY KEY CHECK (only = 1),
            location TEXT NOT NULL
        ) STRICT;
        """

    /// The column that marks bytes which are sent although the object store may have them.
    static let addAgainColumn =
        "ALTER TABLE remote_object ADD COLUMN again INTEGER NOT NULL DEFAULT 0 CHECK (again IN (0, 1))"

    /// The state of the upload of some bytes.
    enum State: Int {
        case registered = 1
        case pending, failed, succeeded, cancelled
        /// No resource refers to the bytes; they are being deleted from the object store.
        case deleting
    }

    /// Begins to register uploads to an object store, including those of all current resources. If the bucket or prefix
    /// is another one than before, all bytes have to be confirmed again. The address of the object store is not
    /// compared, because catalogs of one library may reach it by different names.
    func begin(_ location: String) throws {
        let known = try database.first("SELECT location FROM remote_store") { $0.text(0) }
        // Every new row of `resource` registers its bytes for upload, within its own transaction.
        let trigger = database.dialect.uploadTrigger
        let hasTrigger = try database.first(trigger.exists) { $0.flag(0) }
        try database.run("UPDATE remote_object SET state = 1 WHERE state = 2")
        if known != location {
            try database.run("UPDATE remote_object SET state = 1, attempts = 0 WHERE state <> 5")
            try database.run(
                """
                INSERT INTO remote_store ("only", location) VALUES (1, ?)
                ON CONFLICT ("only") DO UPDATE SET location = excluded.location
                """,
                location
            )
        }
        guard hasTrigger != true else { return }
        try database.run(once: trigger.create)
        try database.run(
            """
            INSERT OR IGNORE INTO remote_object (digest, size, state, attempts, kept, date)
            SELECT DISTINCT digest, 0, 1, 0, 0, 0 FROM resource
            """
        )
    }

    /// Makes the next ``begin(_:)`` confirm all objects again, as for another bucket: the object store may have deleted
    /// some because of changes that the database lacks. Until then they can be read.
    func confirmAgain() throws { try database.run("DELETE FROM remote_store") }

    /// Ends the registration of uploads; the states of earlier ones stay.
    func end() throws { try database.run(once: database.dialect.dropUploadTrigger) }

    /// Returns the digests of objects that are registered for upload, in ascending order, after a digest.
    func registered(after last: ResourceDigest?, limit: Int) throws -> [ResourceDigest] {
        try database.all(
            "SELECT digest FROM remote_object WHERE state = 1 AND digest > ? ORDER BY digest LIMIT ?",
            last?.bytes ?? [],
            limit
        ) { $0.bytes(0) }.compactMap { ResourceDigest($0.hexadecimal) }
    }

    /// Registers bytes again that were registered before, so that they are sent like new ones.
    ///
    /// They are added by a client that may not read the library, which must not learn from the duration of its upload
    /// if the object store had them. The local files must exist; they stay until the object store has the bytes again.
    func uploadAgain(_ digests: [ResourceDigest]) throws {
        for digest in digests {
            try database.run(
                "UPDATE remote_object SET state = 1, attempts = 0, again = 1 WHERE digest = ? AND state IN (3, 4, 5)",
                digest.bytes
            )
        }
    }

    /// Returns the given digests whose bytes are sent although the object store may have them.
    func repeated(_ digests: [ResourceDigest]) throws -> Set<ResourceDigest> {
        Set(
            try digests.filter {
                try database.first(
                    "SELECT EXISTS (SELECT 1 FROM remote_object WHERE digest = ? AND again = 1)",
                    $0.bytes
                ) { $0.flag(0) } == true
            }
        )
    }

    /// Registers bytes for upload that the object store has lost or changed.
    func registerLost(_ digest: ResourceDigest) throws {
        try database.run(
            "UPDATE remote_object SET state = 1, attempts = 0, problem = NULL, message = NULL WHERE digest = ?",
            digest.bytes
        )
    }

    /// Records that the object store has the bytes.
    ///
    /// - Parameter size: the size of the whole file
    func confirm(_ digest: ResourceDigest, size: Int64, date: Int64) throws {
        try database.run(
            """
            UPDATE remote_object
            SET state = 4, size = ?, attempts = 0, date = ?, problem = NULL, message = NULL, again = 0
            WHERE digest = ? AND state <> 6
            """,
            size,
            date,
            digest.bytes
        )
    }

    /// Records a failed upload; after `maxAttempts` attempts it waits for a retry.
    func fail(_ digest: ResourceDigest, problem: String, message: String, date: Int64, maxAttempts: Int) throws {
        try database.run(
            """
            UPDATE remote_object SET attempts = attempts + 1, problem = ?, message = ?, date = ?,
                state = CASE WHEN attempts + 1 >= ? THEN 3 ELSE 1 END
            WHERE digest = ? AND state <> 6
            """,
            problem,
            message,
            date,
            maxAttempts,
            digest.bytes
        )
    }

    /// Registers failed uploads again.
    ///
    /// - Returns: their number
    func retryFailed() throws -> Int {
        try database.runCounting("UPDATE remote_object SET state = 1, attempts = 0 WHERE state = 3")
    }

    /// The condition that an object can be read: the object store has confirmed it, now or before the upload was
    /// registered again. Confirming the objects of another bucket takes a while.
    private static let readableCondition = "(state = 4 OR state IN (1, 2) AND size > 0)"

    /// Returns the size of an object that can be read from the object store; nil if the object store never had it.
    func readableSize(of digest: ResourceDigest) throws -> Int64? {
        let sql = "SELECT size FROM remote_object WHERE digest = ? AND \(Self.readableCondition)"
        return try database.first(sql, digest.bytes) { $0.int64(0) }
    }

    /// Returns the size of an object in the object store; nil if it is not there, or has to be confirmed again.
    func remoteSize(of digest: ResourceDigest) throws -> Int64? {
        try database.first("SELECT size FROM remote_object WHERE digest = ? AND state = 4", digest.bytes) {
            $0.int64(0)
        }
    }

    /// Returns true if a local file may be removed: the object store has the bytes, they are not kept on this machine
    /// by request, and they are not the data of an edit, which is small and often read.
    func isReleasable(_ digest: ResourceDigest) throws -> Bool {
        try database.first(
            """
            SELECT EXISTS (SELECT 1 FROM remote_object WHERE digest = ?1 AND state = 4 AND kept = 0)
                AND NOT EXISTS (SELECT 1 FROM resource WHERE digest = ?1 AND type = 7)
                AND NOT EXISTS (SELECT 1 FROM kept_adjustment WHERE digest = ?1)
            """,
            digest.bytes
        ) { $0.flag(0) } ?? false
    }

    /// Sets whether the local files of some bytes are kept.
    func setKept(_ isKept: Bool, _ digests: [ResourceDigest]) throws {
        for digest in digests {
            try database.run(
                """
                INSERT INTO remote_object (digest, size, state, attempts, kept, date) VALUES (?, 0, 1, 0, ?, 0)
                ON CONFLICT (digest) DO UPDATE SET kept = excluded.kept
                """,
                digest.bytes,
                isKept
            )
        }
    }

    /// The condition that the object of a row of `resource` can be read from the object store.
    static let resourceReadableCondition =
        "EXISTS (SELECT 1 FROM remote_object o WHERE o.digest = resource.digest AND \(readableCondition))"

    // MARK: Deleting

    private static let unreferenced = """
        NOT EXISTS (SELECT 1 FROM resource r WHERE r.digest = remote_object.digest)
            AND NOT EXISTS (SELECT 1 FROM kept_adjustment k WHERE k.digest = remote_object.digest)
        """

    /// Returns the digests of unreferenced objects, in ascending order: the same ones each time, until they are
    /// deleted.
    func unreferenced(limit: Int) throws -> [ResourceDigest] {
        try database.all(
            "SELECT digest FROM remote_object WHERE \(Self.unreferenced) ORDER BY digest LIMIT ?",
            limit
        ) { $0.bytes(0) }.compactMap { ResourceDigest($0.hexadecimal) }
    }

    /// Marks bytes for deletion from the object store unless they are referenced.
    ///
    /// - Returns: true if they are marked
    func beginDeleting(_ digest: ResourceDigest) throws -> Bool {
        try database.runCounting(
            "UPDATE remote_object SET state = 6 WHERE digest = ? AND \(Self.unreferenced)",
            digest.bytes
        ) > 0
    }

    /// Removes the row of an object that was deleted from the object store. If the bytes are referenced again, they are
    /// registered for upload instead.
    func endDeleting(_ digest: ResourceDigest) throws {
        try database.run(
            "DELETE FROM remote_object WHERE state = 6 AND digest = ? AND \(Self.unreferenced)",
            digest.bytes
        )
        try database.run(
            "UPDATE remote_object SET state = 1, attempts = 0, size = 0 WHERE state = 6 AND digest = ?",
            digest.bytes
        )
    }

    /// Registers objects for upload whose deletion was interrupted and which are referenced again. The object store may
    /// have them or not.
    ///
    /// - Returns: their number
    func registerReferenced() throws -> Int {
        try database.runCounting(
            """
            UPDATE remote_object SET state = 1, attempts = 0, size = 0 WHERE state = 6 AND NOT (\(Self.unreferenced))
            """
        )
    }

    // MARK: Counts

    /// The number of objects in each state, and the bytes of those in the object store.
    struct Counts: Sendable {
        var remote = 0
        var remoteBytes: Int64 = 0
        var waiting = 0
        var failed = 0
        var kept = 0
        var deleting = 0
    }

    func counts() throws -> Counts {
        var counts = Counts()
        try database.each(
            "SELECT state, count(*), CAST(sum(size) AS bigint), CAST(sum(kept) AS bigint) FROM remote_object GROUP BY state"
        ) { row in
            let (number, size, kept) = (row.int(1), row.int64(2), row.int(3))
            counts.kept += kept
            switch State(rawValue: row.int(0)) {
            case .succeeded: (counts.remote, counts.remoteBytes) = (number, size)
            case .registered, .pending: counts.waiting += number
            case .failed: counts.failed += number
            case .deleting: counts.deleting += number
            case .cancelled, nil: break
            }
        }
        return counts
    }

    /// Returns the problem of the latest failed upload.
    func latestFailure() throws -> (problem: String, message: String, date: Int64)? {
        try database.first(
            "SELECT problem, message, date FROM remote_object WHERE state = 3 ORDER BY date DESC LIMIT 1"
        ) { ($0[0] ?? "", $0[1] ?? "", $0[2]) }
    }

    /// Returns the digests and sizes of objects in the object store, in ascending order, after a digest.
    func remote(after last: ResourceDigest?, limit: Int) throws -> [(digest: ResourceDigest, size: Int64)] {
        try database.all(
            "SELECT digest, size FROM remote_object WHERE state = 4 AND digest > ? ORDER BY digest LIMIT ?",
            last?.bytes ?? [],
            limit
        ) { (ResourceDigest($0.hexadecimal(0)), $0.int64(1)) }
        .compactMap { digest, size in digest.map { ($0, size) } }
    }
}

extension ResourceDigest {
    /// The 32 bytes, as the database has them.
    var bytes: [UInt8] { [UInt8](hexadecimal: text) ?? [] }
}
