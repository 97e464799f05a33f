import Basics
import PhotoModel
import Storage

/// Reads and writes the jobs that clients have created (T-34), within one transaction. They are not part of the
/// history.
struct UploadJobStore {
    let database: SQLConnection

    // Kinds and states have PhotoKit's numbers. A trigger ends an upload job together with the upload of its bytes, in
    // the same transaction.
    static let schema = """
        CREATE TABLE upload_job (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            asset TEXT NOT NULL,
            resource_type INTEGER NOT NULL,
            digest BLOB NOT NULL CHECK (length(digest) = 32),
            kind INTEGER NOT NULL CHECK (kind IN (0, 1)),
            state INTEGER NOT NULL CHECK (state BETWEEN 1 AND 5),
            retried INTEGER NOT NULL CHECK (retried IN (0, 1)),
            date INTEGER NOT NULL,
            problem TEXT,
            message TEXT
        ) STRICT;
        CREATE INDEX upload_job_open ON upload_job (digest) WHERE state < 3;
        CREATE TRIGGER upload_job_ended AFTER UPDATE OF state ON remote_object WHEN NEW.state IN (3, 4, 6) BEGIN
            UPDATE upload_job SET state = CASE NEW.state WHEN 6 THEN 5 ELSE NEW.state END,
                date = NEW.date, problem = NEW.problem, message = NEW.message
            WHERE digest = NEW.digest AND kind = 0 AND state < 3;
        END;
        """

    /// The identities of jobs, and the versions of their states: a change of a state has the next number.
    static let versions = """
        ALTER TABLE upload_job ADD COLUMN identity TEXT;
        ALTER TABLE upload_job ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
        CREATE INDEX upload_job_version ON upload_job (version);
        CREATE INDEX upload_job_identity ON upload_job (identity, id);
        CREATE TABLE upload_job_clock (
            only INTEGER PRIMARY KEY CHECK (only = 1),
            version INTEGER NOT NULL
        ) STRICT;
        INSERT INTO upload_job_clock (only, version) VALUES (1, 1);
        CREATE TRIGGER upload_job_new AFTER INSERT ON upload_job BEGIN
            UPDATE upload_job_clock SET version = version + 1;
            UPDATE upload_job SET version = (SELECT version FROM upload_job_clock) WHERE id = NEW.id;
        END;
        CREATE TRIGGER upload_job_changed AFTER UPDATE OF state ON upload_job BEGIN
            UPDATE upload_job_clock SET version = version + 1;
            UPDATE upload_job SET version = (SELECT version FROM upload_job_clock) WHERE id = NEW.id;
        END;
        """

    /// The public keys of add-only clients, for the jobs that they have created as such.
    static let addOnlyKeys = "ALTER TABLE upload_job ADD COLUMN add_only_key TEXT"

    /// A filter for the jobs of one client.
    struct Filter: Sendable {
        var identity: String
        /// Only jobs that the identity has created as an add-only client with this key; nil for all.
        var addOnlyKey: String?

        init(_ identity: String) { self.identity = identity }

        init(_ client: AddOnlyClient) { (identity, addOnlyKey) = (client.identity, client.key) }

        fileprivate var condition: String {
            addOnlyKey.map { _ in "identity = ? AND add_only_key = ?" } ?? "identity = ?"
        }
        fileprivate var arguments: [SQLValue] { [.text(identity)] + (addOnlyKey.map { [.text($0)] } ?? []) }
    }

    /// The bytes that a job uploads or downloads.
    struct Subject: Sendable {
        let asset: ObjectID
        let resourceType: ResourceType
        let digest: ResourceDigest
        /// True if the job has no work left.
        let isDone: Bool
    }

    private static let columns =
        "id, asset, resource_type, digest, kind, state, retried, date, identity, problem, message"

    func count() throws -> Int { try database.first("SELECT count(*) FROM upload_job") { $0.int(0) } ?? 0 }

    /// Returns the number of further jobs that an identity can create.
    func capacity(of identity: String) throws -> Int {
        let sql = "SELECT count(*) FROM upload_job WHERE identity = ?"
        let own = try database.first(sql, identity) { $0.int(0) } ?? 0
        return max(0, min(UploadJob.limit - own, UploadJob.totalLimit - (try count())))
    }

    /// Returns the number of waiting jobs, and of jobs whose transfer is running.
    func openCounts() throws -> (waiting: Int, running: Int) {
        let sql = "SELECT count(*) FILTER (WHERE state = 1), count(*) FILTER (WHERE state = 2) FROM upload_job"
        return try database.first(sql) { (waiting: $0[0], running: $0[1]) } ?? (0, 0)
    }

    /// Returns the version of the newest state.
    func version() throws -> Int64 { try database.first("SELECT version FROM upload_job_clock") { $0.int64(0) } ?? 0 }

    /// Returns the version of the newest state of the jobs that a filter selects, 0 if there are none; nil selects all.
    func version(of filter: Filter?) throws -> Int64 {
        guard let filter else { return try version() }
        let sql = "SELECT max(version) FROM upload_job WHERE \(filter.condition)"
        return try database.first(SQLFragment(sql, filter.arguments)) { $0.int64(0) } ?? 0
    }

    /// Creates a job for each subject.
    ///
    /// - Parameter addOnlyKey: the public key of an add-only client; nil for other clients
    /// - Returns: the jobs; nil if there would be too many
    func create(
        _ kind: UploadJob.Kind,
        _ subjects: [Subject],
        for identity: String,
        addOnlyKey: String? = nil,
        date: Int64
    ) throws -> [UploadJob]? {
        guard subjects.count <= (try capacity(of: identity)) else { return nil }
        return try subjects.map { subject in
            let state = try kind == .upload ? register(subject.digest) : subject.isDone ? .succeeded : .registered
            var statement = try SQLStatement(
                """
                INSERT INTO upload_job (asset, resource_type, digest, kind, state, retried, date, identity, add_only_key)
                VALUES (?, ?, ?, ?, ?, 0, ?, ?, ?)
                """,
                database
            )
            statement.bind(subject.asset.text)
            statement.bind(subject.resourceType.number)
            statement.bind(subject.digest.bytes)
            statement.bind(kind.number)
            statement.bind(state.number)
            statement.bind(date)
            statement.bind(identity)
            statement.bind(addOnlyKey)
            return UploadJob(
                id: try statement.insert(),
                asset: subject.asset,
                resourceType: subject.resourceType,
                digest: subject.digest.text,
                kind: kind,
                state: state,
                date: date,
                identity: identity
            )
        }
    }

    /// Registers the upload of bytes that the object store does not have and that are not being uploaded.
    ///
    /// - Returns: the state of a job for it, which has succeeded if the object store has the bytes
    private func register(_ digest: ResourceDigest) throws -> UploadJob.State {
        try database.run(
            """
            INSERT INTO remote_object (digest, size, state, attempts, kept, date) VALUES (?, 0, 1, 0, 0, 0)
            ON CONFLICT (digest) DO UPDATE SET state = 1, attempts = 0 WHERE remote_object.state IN (3, 5)
            """,
            digest.bytes
        )
        return try UploadStateStore(database: database).remoteSize(of: digest) == nil ? .registered : .succeeded
    }

    /// Returns jobs, the oldest first.
    ///
    /// - Parameters:
    ///   - filter: only jobs of this client; nil for all
    ///   - after: only jobs with higher numbers
    func all(of filter: Filter? = nil, after: Int64 = 0) throws -> [UploadJob] {
        try rows(filter, "id > ? ORDER BY id", [.integer(after)]).compactMap(\.job)
    }

    /// Returns jobs whose state has changed, the oldest change first, and the version of the last one.
    func changed(after version: Int64, limit: Int, of filter: Filter? = nil) throws -> (
        jobs: [UploadJob], version: Int64
    )? {
        let rows = try rows(filter, "version > ? ORDER BY version LIMIT ?", [.integer(version), SQLValue(limit)])
        guard let last = rows.last else { return nil }
        return (rows.compactMap(\.job), last.version)
    }

    /// Returns the jobs whose transfer is running, at most ``UploadJob/limit``.
    func pending(of filter: Filter? = nil) throws -> [UploadJob] {
        try rows(filter, "state = 2 ORDER BY id LIMIT ?", [SQLValue(UploadJob.limit)]).compactMap(\.job)
    }

    private func rows(
        _ filter: Filter?,
        _ condition: String,
        _ values: [SQLValue]
    ) throws -> [(job: UploadJob?, version: Int64)] {
        let client = filter.map { "\($0.condition) AND " } ?? ""
        let query = SQLFragment(
            "SELECT \(Self.columns), version FROM upload_job WHERE \(client)\(condition)",
            (filter?.arguments ?? []) + values
        )
        return try database.all(query) { (Self.job($0), $0.int64(11)) }
    }

    // MARK: Uploads

    /// Records that the uploads of these digests are running, or with false that they no longer are.
    func setUploading(_ isUploading: Bool, _ digests: [ResourceDigest], date: Int64) throws {
        for digest in digests {
            try database.run(
                "UPDATE upload_job SET state = ?, date = ? WHERE digest = ? AND kind = 0 AND state = ?",
                isUploading ? 2 : 1,
                date,
                digest.bytes,
                isUploading ? 1 : 2
            )
        }
    }

    /// Returns true if an upload job for any of the digests has not ended.
    func hasOpenUploads(for digests: [ResourceDigest]) throws -> Bool {
        try digests.contains { digest in
            try database.first(
                "SELECT EXISTS (SELECT 1 FROM upload_job WHERE digest = ? AND kind = 0 AND state < 3)",
                digest.bytes
            ) { $0.flag(0) } == true
        }
    }

    /// Carries out an action on jobs that allow it.
    func update(_ jobs: [UploadJob], _ action: UploadJob.Action, date: Int64) throws {
        for job in jobs {
            switch action {
            case .acknowledge: try database.run("DELETE FROM upload_job WHERE id = ?", job.id)
            case .cancel:
                try database.run("UPDATE upload_job SET state = 5, date = ? WHERE id = ?", date, job.id)
            case .retry:
                // The bytes may have been uploaded since the job failed.
                let digest = job.kind == .upload ? ResourceDigest(job.digest) : nil
                let state = try digest.map { try register($0) } ?? .registered
                try database.run(
                    """
                    UPDATE upload_job SET state = ?, retried = 1, date = ?, problem = NULL, message = NULL
                    WHERE id = ?
                    """,
                    state.number,
                    date,
                    job.id
                )
            }
        }
    }

    // MARK: Downloads

    /// Resets the transfers that were running when the catalog ended to `registered`.
    func registerInterrupted() throws { try database.run("UPDATE upload_job SET state = 1 WHERE state = 2") }

    /// Returns the oldest download that is registered, and records that it is running.
    func nextDownload(date: Int64) throws -> UploadJob? {
        let sql = "SELECT \(Self.columns) FROM upload_job WHERE state = 1 AND kind = 1 ORDER BY id LIMIT 1"
        guard let job = try database.first(sql, read: Self.job).flatMap({ $0 }) else { return nil }
        try database.run("UPDATE upload_job SET state = 2, date = ? WHERE id = ?", date, job.id)
        return job
    }

    /// Records the outcome of a download that was not cancelled meanwhile.
    func end(_ id: Int64, _ state: UploadJob.State, problem: String? = nil, message: String? = nil, date: Int64) throws
    {
        try database.run(
            "UPDATE upload_job SET state = ?, problem = ?, message = ?, date = ? WHERE id = ? AND state = 2",
            state.number,
            problem,
            message,
            date,
            id
        )
    }

    private static func job(_ row: SQLRow) -> UploadJob? {
        guard let asset = ObjectID(row[1] as String), let type = ResourceType(number: row[2]),
            let kind = UploadJob.Kind(number: row[4]), let state = UploadJob.State(number: row[5])
        else { return nil }
        return UploadJob(
            id: row[0],
            asset: asset,
            resourceType: type,
            digest: row.hexadecimal(3),
            kind: kind,
            state: state,
            isRetried: row[6],
            date: row[7],
            identity: row[8],
            problem: row[9],
            message: row[10]
        )
    }
}
