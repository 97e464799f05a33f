import Basics
import CWriteAheadLog
public import GRDB
import Glibc
import Synchronization

/// An SQLite database in WAL mode with exactly one connection that writes and checkpoints.
///
/// Debian's SQLite 3.40.1 can corrupt a database when two connections checkpoint at once (the WAL-reset bug), so
/// readers are opened read-only and never checkpoint. The writer uses `synchronous=FULL`: committed transactions
/// survive a power failure.
public final class DatabaseFile: Sendable {
    /// The options of a database.
    public struct Options: Sendable {
        /// The maximum number of reading connections, at least 1.
        public var readers = 4
        /// The busy timeout in seconds.
        public var busySeconds = 5.0
        /// The memory for cached pages in bytes: one half for the writer, the other for all readers together.
        public var pageCacheBytes = 64 << 20
        /// The size of the write-ahead log, in pages, from which ``checkpointIfDue()`` checkpoints on a fast disk: 64
        /// MiB. On a slow one it does so from a sixteenth of it, and a commit itself at twice the size.
        public var checkpointPages = 16_000
        /// The time limit of `PRAGMA quick_check` at start, in seconds; 0 skips the check.
        public var checkSeconds = 0.0
        /// Called for every new connection, to add custom functions and collations.
        public var prepare: (@Sendable (Database) throws -> Void)?

        /// Makes the default options.
        public init() {}
    }

    /// The connection pool, for stores; statements run on GRDB's own threads, never on Swift's cooperative pool.
    public let pool: DatabasePool
    /// The path of the database file.
    public let path: String
    /// The result of the check at start.
    public let check: DatabaseCheck
    private let log: LogSize
    private let pace: Mutex<CheckpointPace>
    private let isClosed = Atomic(false)

    /// Opens or creates a database and migrates it to the newest schema.
    ///
    /// The caller must hold a ``LockFile`` that keeps other processes from writing.
    ///
    /// - Parameters:
    ///   - path: the file; its folder must exist.
    ///   - migrator: the versions of the schema, oldest first.
    ///   - options: how to open it.
    /// - Throws: ``StorageError``.
    public init(path: String, migrator: DatabaseMigrator, options: Options = Options()) throws(StorageError) {
        self.path = path
        guard safelight_gather_log_writes() == 0 else { throw .io("SQLite accepts no VFS") }
        do {
            try Self.syncLog(of: path)
            try Self.requireKnownVersion(path, migrator)
            let openedFile = OpenedFile()
            let log = LogSize(maxPages: options.checkpointPages * 2)
            self.log = log
            pace = Mutex(CheckpointPace(maxPages: options.checkpointPages))
            pool = try DatabasePool(path: path, configuration: Self.configuration(options, openedFile, log))
            try pool.writeWithoutTransaction { database in
                // Set after opening, because opening a pool in WAL mode sets NORMAL.
                try database.execute(sql: "PRAGMA synchronous = FULL")
                try Self.requireFull(database)
            }
            check = try DatabaseCheck.quick(pool, path: path, seconds: options.checkSeconds)
            if try pool.read(migrator.hasBeenSuperseded) { throw Self.newerVersion(path) }
            try migrator.migrate(pool)
            try pool.writeWithoutTransaction(Self.requireFull)
            try openedFile.record(path)
        } catch {
            throw StorageError(database: error, path: path)
        }
    }

    /// Makes the log of an earlier process durable. If that process was killed while it synced a commit, the commit can
    /// be read from the page cache, and must not be lost in a power failure after a reply has shown it.
    private static func syncLog(of path: String) throws(StorageError) {
        let log = path + "-wal"
        guard access(log, F_OK) == 0 else { return }
        try Descriptor(opening: log, O_RDONLY).syncData()
    }

    /// Refuses a database of a newer version before a connection that may write is opened: opening a pool writes to the
    /// file.
    ///
    /// If the file cannot be opened read-only, the pool reports the error.
    private static func requireKnownVersion(_ path: String, _ migrator: DatabaseMigrator) throws {
        guard access(path, F_OK) == 0 else { return }
        var configuration = GRDB.Configuration()
        configuration.readonly = true
        guard let queue = try? DatabaseQueue(path: path, configuration: configuration) else { return }
        let isNewer = try? queue.read(migrator.hasBeenSuperseded)
        try? queue.close()
        if isNewer == true { throw newerVersion(path) }
    }

    private static func newerVersion(_ path: String) -> StorageError {
        .newerVersion(
            "\(path) was written by a newer version of Safelight; run that version, or restore a backup of this "
                + "version into another folder"
        )
    }

    /// The database file that was opened. A connection that is opened later must not open another library's file, which
    /// may be at the same path by then.
    private final class OpenedFile: Sendable {
        private let presence = Mutex<FilePresence?>(nil)

        func record(_ path: String) throws(StorageError) {
            let found = try FilePresence(of: path)
            presence.withLock { $0 = found }
        }

        func check() throws(StorageError) {
            if let absence = presence.withLock({ $0 })?.absence() { throw absence }
        }
    }

    /// The size of the log, which the writing connection records with each commit. The configuration of the connections
    /// owns it.
    // Unchecked: the pointer itself never changes.
    private final class LogSize: @unchecked Sendable {
        private let size: UnsafeMutablePointer<safelight_log_size>

        init(maxPages: Int) {
            size = .allocate(capacity: 1)
            size.initialize(to: safelight_log_size(pages: 0, max_pages: Int32(clamping: maxPages)))
        }

        deinit { size.deallocate() }

        var pages: Int { Int(safelight_log_pages(size)) }

        func follow(_ database: Database) {
            guard let connection = database.sqliteConnection else { return }
            safelight_note_log_size(UnsafeMutableRawPointer(connection), size)
        }
    }

    /// Writes in one transaction, `BEGIN IMMEDIATE`; it is durable when this returns. A large log is written into the
    /// database afterwards.
    ///
    /// - Throws: ``StorageError`` for errors of the disk and of SQLite; every other error of `updates` unchanged.
    public func write<Value: Sendable>(_ updates: @escaping @Sendable (Database) throws -> Value) async throws -> Value
    {
        do {
            let value = try await pool.write(updates)
            // The log is still valid if this fails.
            if recordLogSize() { try? await pool.writeWithoutTransaction { try self.checkpointPassively($0) } }
            return value
        } catch {
            throw mapped(error)
        }
    }

    /// Reads from one snapshot of the database.
    ///
    /// - Throws: ``StorageError`` for errors of the disk and of SQLite; every other error of `value` unchanged.
    public func read<Value: Sendable>(_ value: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
        do {
            return try await pool.read(value)
        } catch {
            throw mapped(error)
        }
    }

    /// Maps errors of the disk and of SQLite to ``StorageError``; returns others unchanged.
    public func mapped(_ error: any Error) -> any Error {
        guard let error = error as? DatabaseError, StorageError.isDiskFailure(error) else { return error }
        return StorageError(database: error, path: path)
    }

    /// Writes the write-ahead log into the database if it is large; called between commits, so that none of them waits
    /// for it. It blocks if the log is large: while it writes, and while another write has the connection.
    ///
    /// - Throws: ``StorageError`` if that fails; the log is still valid then
    public func checkpointIfDue() throws(StorageError) {
        guard recordLogSize() else { return }
        do {
            try pool.writeWithoutTransaction(checkpointPassively)
        } catch {
            throw StorageError(database: error, path: path)
        }
    }

    private func recordLogSize() -> Bool {
        let pages = log.pages
        return pace.withLock { $0.recordLogSize(pages) }
    }

    private func checkpointPassively(_ database: Database) throws {
        let start = MonotonicClock.system.nowMicroseconds()
        let (all, written) = try database.checkpoint(.passive)
        let duration = MonotonicClock.system.nowMicroseconds() - start
        pace.withLock { $0.checkpointEnded(isWhole: written == all, after: duration) }
    }

    /// Writes the whole write-ahead log into the database, so that the file is complete without it and can be renamed.
    ///
    /// - Throws: ``StorageError`` if a part of the log remains, for example because the disk is full
    public func checkpoint() throws(StorageError) {
        do {
            _ = try pool.writeWithoutTransaction { try $0.checkpoint(.truncate) }
        } catch {
            throw StorageError(database: error, path: path)
        }
    }

    /// Checkpoints the write-ahead log and closes all connections; does nothing if they are closed.
    public func close() throws(StorageError) {
        guard !isClosed.exchange(true, ordering: .relaxed) else { return }
        do {
            // Closing checkpoints only if the writer is the last connection. A remaining log is read at the next start.
            _ = try? pool.writeWithoutTransaction { try $0.checkpoint(.truncate) }
            try pool.close()
        } catch {
            throw StorageError(database: error, path: path)
        }
    }

    // MARK: Opening

    private static func configuration(_ options: Options, _ file: OpenedFile, _ log: LogSize) -> Configuration {
        var configuration = Configuration()
        configuration.label = "database"
        configuration.maximumReaderCount = max(1, options.readers)
        configuration.foreignKeysEnabled = true
        configuration.busyMode = .timeout(options.busySeconds)
        configuration.persistentReadOnlyConnections = true
        configuration.publicStatementArguments = false
        configuration.prepareDatabase { database in
            try file.check()
            // A damaged or hostile schema must not call functions with side effects.
            try database.execute(sql: "PRAGMA trusted_schema = OFF")
            try database.execute(sql: "PRAGMA cell_size_check = ON")
            // An I/O error in mapped memory would be a signal (SIGBUS) instead of an error.
            try database.execute(sql: "PRAGMA mmap_size = 0")
            if database.configuration.readonly {
                try database.execute(sql: "PRAGMA wal_autocheckpoint = 0")
                let readerBytes = options.pageCacheBytes / 2 / max(1, options.readers)
                try database.execute(sql: "PRAGMA cache_size = -\(readerBytes >> 10)")
            } else {
                log.follow(database)
                try database.execute(sql: "PRAGMA cache_size = -\(options.pageCacheBytes >> 11)")
                // Truncates a log that one large import has enlarged.
                try database.execute(sql: "PRAGMA journal_size_limit = 67108864")
            }
            try options.prepare?(database)
        }
        return configuration
    }

    private static func requireFull(_ database: Database) throws {
        let level = try Int.fetchOne(database, sql: "PRAGMA synchronous")
        guard level == 2 else {
            throw StorageError.io("the database does not accept synchronous=FULL (reads back \(level ?? -1))")
        }
    }
}

extension StorageError {
    static func isDiskFailure(_ error: DatabaseError) -> Bool {
        switch error.resultCode {
        case .SQLITE_FULL, .SQLITE_IOERR, .SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_CANTOPEN, .SQLITE_READONLY,
            .SQLITE_NOMEM, .SQLITE_BUSY, .SQLITE_LOCKED:
            true
        default: false
        }
    }

    /// Maps a failure of the database at a path.
    init(database error: any Error, path: String) {
        if let error = error as? StorageError {
            self = error
            return
        }
        guard let error = error as? DatabaseError else {
            self = .io("\(path): \(error)")
            return
        }
        let reason = "\(path): \(error.message ?? "SQLite error") (\(error.extendedResultCode.rawValue))"
        self =
            switch error.resultCode {
            case .SQLITE_FULL: .notEnoughSpace("\(reason). Free some space and try again.")
            case .SQLITE_CORRUPT, .SQLITE_NOTADB: .corrupt("\(reason). \(DatabaseCheck.advice)")
            case .SQLITE_BUSY, .SQLITE_LOCKED: .busy("\(reason). Try again.")
            case .SQLITE_READONLY: .readOnly("\(reason). Mount the filesystem for writing.")
            default: .io(reason)
            }
    }
}
