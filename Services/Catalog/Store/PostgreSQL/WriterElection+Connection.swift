import Storage

extension WriterElection {
    /// The servers that answered the last attempt of this catalog.
    enum Connection: Sendable {
        case answering
        /// The server answers, and refuses to write.
        case readOnly
        /// The server does not answer, and its replica does.
        case replicaOnly
        /// Neither the server nor a replica answers.
        case unreachable
    }

    /// The role of a catalog.
    enum Role: Sendable, Equatable {
        /// This catalog writes, with the number of its epoch.
        case writer(epoch: Int64)
        /// Another catalog writes, as far as is known.
        case standby(writer: String)
    }

    /// A catalog that follows the writer.
    struct Follower: Sendable {
        /// The identifier of the history that the catalog has in memory.
        var historyID: String
        /// Returns the newest sequence that the catalog knows.
        var head: @Sendable () -> Int64
        /// A sequence that the catalog had acknowledged or read before it started; a replica may not have replayed it.
        var acknowledged: Int64 = 0
        /// Receives records of the writer, in order, and the newest sequence among them.
        var receive: @Sendable ([StoredRecord], Int64) throws -> Void
        /// Called with the role whenever it changes.
        var changed: @Sendable (Role) -> Void
        /// Returns 32 hexadecimal digits that were never used before, the identifier of another history.
        var newHistoryID: @Sendable () -> String
    }

    /// The settings with which the server detects within 40 seconds that the host of a session has vanished. The
    /// session then ends and releases the lock of a writer that does not renew its date.
    static let keepalives =
        "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 6"

    /// The name that is recorded for the writer if the library was moved to a file.
    private static let moved = "none: the library was moved to a file"

    /// Records that the library was moved to a file, so that no catalog continues to use the tables.
    ///
    /// - Returns: false if another catalog has taken over since the epoch
    static func noteMoved(_ database: SQLConnection, _ epoch: Int64) throws -> Bool {
        var isNoted = false
        try database.inImmediateTransaction {
            let sql = "UPDATE safelight_writer SET name = ? WHERE epoch = ? AND (SELECT epoch FROM library) = ?"
            isNoted = try database.runCounting(sql, moved, epoch, epoch) == 1
        }
        return isNoted
    }

    /// Checks that the library was not moved to a file.
    ///
    /// - Throws: `StorageError.offline` if it was
    static func requireNotMoved(_ database: SQLConnection) throws {
        let sql = "SELECT EXISTS (SELECT 1 FROM safelight_writer WHERE name = ?)"
        guard try database.first(sql, moved, read: { $0.flag(0) }) == true else { return }
        throw wasMoved
    }

    private static var wasMoved: StorageError {
        .offline(
            "the library of these tables was moved to a file: start the catalog of its folder without --store, and "
                + "drop the tables; to discard the file and continue with them, execute DELETE FROM safelight_writer"
        )
    }

    /// Records the writer of an epoch. A repeated move to a file keeps the mark of the first one.
    ///
    /// - Parameter allowsMoved: true to record the writer even if the library was moved to a file
    /// - Throws: `StorageError.offline` if the library was moved, even after ``requireNotMoved(_:)`` was checked
    static func noteWriter(
        _ database: SQLConnection,
        _ epoch: Int64,
        _ name: String,
        allowsMoved: Bool = false
    ) throws {
        let count = try database.runCounting(
            """
            INSERT INTO safelight_writer VALUES (1, ?, ?, pg_backend_pid(), clock_timestamp())
            ON CONFLICT ("only") DO UPDATE SET epoch = excluded.epoch,
                name = CASE WHEN safelight_writer.name = ? THEN safelight_writer.name ELSE excluded.name END,
                backend = excluded.backend, renewed = excluded.renewed
            WHERE safelight_writer.name <> ?
            """,
            epoch,
            name,
            moved,
            allowsMoved ? "" : moved
        )
        guard count == 1 else { throw wasMoved }
    }

    /// Checks that the library still has the history that a follower knows.
    ///
    /// - Throws: `StorageError.resourceChanged` if it has begun another one
    func require(_ head: LibraryHead?, of follower: Follower) throws(StorageError) {
        guard let head, head.library != follower.historyID else { return }
        throw .resourceChanged("the library began another history; start the catalog again")
    }
}
