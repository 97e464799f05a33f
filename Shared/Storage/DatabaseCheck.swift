import Dispatch
import GRDB
import Synchronization

/// How a look at a database's integrity ended; damage is thrown.
public enum DatabaseCheck: Sendable, Equatable {
    /// Nobody looked.
    case skipped
    case sound
    /// The time was over before everything was looked at; what was looked at is sound.
    case unfinished

    static let advice =
        "Stop the catalog and restore a backup into a new folder (safelight restore BACKUP --library NEW); "
        + "keep this folder until that library is complete."

    /// `PRAGMA quick_check` that ends after a time, however large the database is.
    ///
    /// - Throws: ``StorageError/corrupt(_:)`` with what is wrong and what to do.
    static func quick(_ pool: DatabasePool, path: String, seconds: Double) throws -> DatabaseCheck {
        guard seconds > 0 else { return .skipped }
        let box = Running()
        let timer = DispatchSource.makeTimerSource(queue: .global())
        // Again and again: it has no effect in the moments before the statement runs.
        timer.schedule(deadline: .now() + seconds, repeating: .milliseconds(20))
        timer.setEventHandler {
            // Only the check: whatever runs after it must not be interrupted.
            box.whileRunning { pool.interrupt() }
        }
        timer.resume()
        defer {
            timer.cancel()
            box.end()
        }
        do {
            try pool.writeWithoutTransaction { try require("quick_check", $0, path: path) }
            return .sound
        } catch let error as DatabaseError where error.resultCode == .SQLITE_INTERRUPT {
            return .unfinished
        }
    }

    /// Everything about a database that SQLite can check: structure, indexes, constraints and references.
    ///
    /// It is only read, also while a catalog uses it.
    ///
    /// - Throws: ``StorageError/corrupt(_:)`` with what is wrong and what to do.
    public static func full(path: String) throws(StorageError) {
        do {
            var configuration = Configuration()
            configuration.readonly = true
            configuration.busyMode = .timeout(5)
            let queue = try DatabaseQueue(path: path, configuration: configuration)
            try queue.read { database in
                try require("integrity_check", database, path: path)
                let orphans = try Row.fetchAll(database, sql: "PRAGMA foreign_key_check").count
                guard orphans == 0 else {
                    throw StorageError.corrupt("\(path): \(orphans) rows name others that are gone. \(advice)")
                }
            }
            try queue.close()
        } catch {
            throw StorageError(database: error, path: path)
        }
    }

    private static func require(_ check: String, _ database: Database, path: String) throws {
        let problems = try String.fetchAll(database, sql: "PRAGMA \(check)(3)")
        guard problems == ["ok"] else {
            throw StorageError.corrupt("\(path): \(problems.joined(separator: "; ")). \(advice)")
        }
    }

    private final class Running: Sendable {
        private let isRunning = Mutex(true)
        func end() { isRunning.withLock { $0 = false } }
        func whileRunning(_ body: () -> Void) { isRunning.withLock { if $0 { body() } } }
    }
}

extension DatabaseFile {
    /// Copies one unchanging state of the database into a new file that needs no other beside it; blocks.
    ///
    /// Writers go on meanwhile: the copy is of the moment at which it began. It is checked as a whole.
    ///
    /// - Parameter path: a file that is not there yet.
    public func copy(to path: String) throws(StorageError) {
        do {
            let copy = try DatabaseQueue(path: path)
            try pool.backup(to: copy)
            try copy.writeWithoutTransaction { database in
                // The copy says that it has a write-ahead log, as its original does.
                try database.execute(sql: "PRAGMA journal_mode = DELETE")
            }
            try copy.close()
        } catch {
            throw StorageError(database: error, path: path)
        }
        try DatabaseCheck.full(path: path)
    }
}
