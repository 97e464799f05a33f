import GRDB
import Glibc
import PhotoModel
import PostgreSQL
import Storage

extension LibraryMigration {
    /// The outcome of a migration.
    struct Outcome: Sendable {
        var token: ChangeToken
        var rows: Int
    }

    /// The direction of a migration, with the address of the database on PostgreSQL.
    enum Direction {
        case toServer(String)
        case toFile(from: String)
    }

    /// Moves the database of the library in a folder, whose catalogs must not run. The files of the resources stay.
    ///
    /// - Parameter verifies: true to compare all rows before the move is completed
    static func run(
        _ direction: Direction,
        folder: String,
        verifies: Bool,
        progress: @escaping (_ table: String, _ rows: Int) -> Void
    ) throws -> Outcome {
        let lock = try LibraryFolder.lock(
            folder,
            advice: "stop it first: a library can be moved only while no catalog uses it"
        )
        defer { withExtendedLifetime(lock) {} }
        switch direction {
        case .toServer(let address): return try moveToServer(address, folder, verifies, progress)
        case .toFile(let address): return try moveToFile(address, folder, verifies, progress)
        }
    }

    private static func moveToServer(
        _ address: String,
        _ folder: String,
        _ verifies: Bool,
        _ progress: @escaping (String, Int) -> Void
    ) throws -> Outcome {
        let path = folder + "/library.sqlite"
        guard access(path, F_OK) == 0 else { throw StorageError.notFound("\(folder) has no SQLite database") }
        let file = try DatabaseFile(path: path, migrator: CatalogSchema.migrator)
        // The file is renamed without its log, so the log is written into it. On a full disk this fails before anything
        // is copied.
        try file.checkpoint()
        let session = PostgreSQLSession(address)
        try PostgreSQLSchema.prepare(SQLConnection(session))
        try readInOrder(session)
        let outcome = try file.pool.read { database in
            let source = SQLConnection(database)
            let migration = LibraryMigration(file: source, server: session, progress: progress)
            guard let head = try HistoryStore(database: source).head() else {
                throw StorageError.notFound("\(path) has no library yet")
            }
            return Outcome(token: head.token, rows: try migration.toServer(verifies: verifies))
        }
        try file.close()
        // A catalog that is started without --store must not use the file.
        guard rename(path, path + LibraryFolder.movedExtension) == 0 else {
            throw StorageError.io("\(path) cannot be renamed")
        }
        try writeHeadFile(outcome.token, folder, database: nil)
        return outcome
    }

    private static func moveToFile(
        _ address: String,
        _ folder: String,
        _ verifies: Bool,
        _ progress: @escaping (String, Int) -> Void
    ) throws -> Outcome {
        let path = folder + "/library.sqlite"
        guard access(path, F_OK) != 0 else {
            throw StorageError.inUse("\(path) exists already; move it away, or name another folder")
        }
        let changed = StorageError.inUse("the library was changed meanwhile; stop all catalogs and try again")
        let election = WriterElection(address)
        defer { election.close() }
        // This writer does not renew its date, and the copy may take longer than the expiry of a writer.
        let head = try election.open(renews: false) { database, isWriter -> LibraryHead in
            guard isWriter else { throw StorageError.inUse("a catalog uses the database; stop all of them") }
            guard let head = try HistoryStore(database: database).head() else {
                throw StorageError.notFound("the database on PostgreSQL has no library")
            }
            return head
        }
        let partial = folder + "/library-new.sqlite"
        func removePartial() { for ending in ["", "-wal", "-shm"] { unlink(partial + ending) } }
        removePartial()
        // After an error, a partial file may have filled the disk.
        defer { removePartial() }
        let file = try DatabaseFile(path: partial, migrator: CatalogSchema.migrator)
        let session = PostgreSQLSession(address)
        let rows = try file.pool.writeWithoutTransaction { database in
            try readInOrder(session)
            try session.begin(reading: true)
            defer { session.rollBack() }
            let target = SQLConnection(database)
            let migration = LibraryMigration(file: target, server: session, progress: progress)
            let rows = try migration.toFile()
            if verifies { try migration.verify() }
            guard try HistoryStore(database: target).head() == head else {
                throw changed
            }
            return rows
        }
        try file.checkpoint()
        try file.close()
        // The lock is lost with its connection, and a catalog that has taken over has raised the epoch.
        guard let epoch = election.epoch, try WriterElection.noteMoved(SQLConnection(session), epoch) else {
            throw changed
        }
        for ending in ["-wal", "-shm"] {
            unlink(partial + ending)
            // SQLite would write a log that remains from another database into this one.
            unlink(path + ending)
        }
        guard rename(partial, path) == 0 else { throw StorageError.io("\(path) cannot be renamed") }
        let outcome = Outcome(token: head.token, rows: rows)
        try writeHeadFile(outcome.token, folder, database: path)
        return outcome
    }

    /// Makes the server read rows in the order of an index, instead of sorting a whole table before the first row.
    private static func readInOrder(_ session: PostgreSQLSession) throws {
        try session.connect().execute(script: "SET enable_sort = off")
    }

    /// Writes a new head file: the old one has the identity of the other database.
    private static func writeHeadFile(_ token: ChangeToken, _ folder: String, database: String?) throws {
        unlink(folder + "/head")
        let head = try HeadFile(path: folder + "/head", database: database)
        guard database == nil else {
            _ = try head.renew(library: token.library, sequence: token.sequence)
            return
        }
        try head.store(library: token.library, sequence: token.sequence)
    }

    /// Compares all rows of the two databases.
    ///
    /// - Throws: `StorageError.corrupt` if they differ
    func verify() throws {
        let tables = try differences()
        guard tables.isEmpty else {
            throw StorageError.corrupt("the rows of \(tables.joined(separator: ", ")) differ after the copy")
        }
    }
}
