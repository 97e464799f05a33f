import CProcess
import Dispatch
import GRDB
import Glibc
import Synchronization

/// The result of an integrity check of a database; damage is thrown.
public enum DatabaseCheck: Sendable, Equatable {
    /// The check was not run.
    case skipped
    /// Everything was checked, and no damage was found.
    case sound
    /// The time limit was reached before everything was checked; the checked part is sound.
    case unfinished

    static let advice =
        "Stop the catalog and restore a backup into a new folder (safelight restore BACKUP --library NEW); "
        + "keep this folder until that library is complete."

    /// Runs `PRAGMA quick_check` and interrupts it after a time limit, however large the database is.
    ///
    /// - Throws: ``StorageError/corrupt(_:)`` with what is wrong and what to do.
    static func quick(_ writer: some DatabaseWriter, path: String, seconds: Double) throws -> DatabaseCheck {
        guard seconds > 0 else { return .skipped }
        let state = RunningState()
        // A queue of its own: threads of the global queues may all be busy.
        let timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "database-check"))
        // Repeats, because an interrupt has no effect before the statement runs.
        timer.schedule(deadline: .now() + seconds, repeating: .milliseconds(20))
        timer.setEventHandler {
            // Interrupts only the check: statements that run after it must not be interrupted.
            state.whileRunning { writer.interrupt() }
        }
        timer.resume()
        defer {
            timer.cancel()
            state.end()
        }
        let check: DatabaseCheck
        do {
            try writer.writeWithoutTransaction { try require("quick_check", $0, path: path) }
            check = .sound
        } catch let error as DatabaseError where error.resultCode == .SQLITE_INTERRUPT {
            check = .unfinished
        }
        // The next statement must not be interrupted.
        state.end()
        // The check has read pages into the connection's cache that may not be needed for days.
        try writer.writeWithoutTransaction { try $0.execute(sql: "PRAGMA shrink_memory") }
        safelight_return_freed_memory()
        return check
    }

    /// Runs the same check on a connection of its own, which only reads, while the database is in use. It ends early if
    /// the task is cancelled.
    ///
    /// - Throws: ``StorageError/corrupt(_:)`` with what is wrong and what to do.
    public static func quick(path: String, seconds: Double) async throws(StorageError) -> DatabaseCheck {
        do {
            let queue = try DatabaseQueue(path: path, configuration: reading)
            let check = try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    DispatchQueue(label: "database-check-run").async {
                        continuation.resume(with: Result { try quick(queue, path: path, seconds: seconds) })
                    }
                }
            } onCancel: {
                queue.interrupt()
            }
            try queue.close()
            return check
        } catch {
            throw StorageError(database: error, path: path)
        }
    }

    /// The configuration of a connection that only reads.
    private static var reading: Configuration {
        var configuration = Configuration()
        configuration.readonly = true
        configuration.busyMode = .timeout(5)
        return configuration
    }

    /// Runs all checks of SQLite: structure, indexes, constraints and foreign keys.
    ///
    /// The database is only read, and may be in use by a catalog.
    ///
    /// - Throws: ``StorageError/corrupt(_:)`` with what is wrong and what to do.
    public static func full(path: String) throws(StorageError) {
        do {
            let queue = try DatabaseQueue(path: path, configuration: reading)
            try queue.read { database in
                try require("integrity_check", database, path: path)
                let orphans = try Row.fetchAll(database, sql: "PRAGMA foreign_key_check").count
                guard orphans == 0 else {
                    throw StorageError.corrupt("\(path): \(orphans) rows refer to missing rows. \(advice)")
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

    private final class RunningState: Sendable {
        private let isRunning = Mutex(true)
        func end() { isRunning.withLock { $0 = false } }
        func whileRunning(_ body: () -> Void) { isRunning.withLock { if $0 { body() } } }
    }
}

extension DatabaseFile {
    /// Copies a snapshot of the database into a new, self-contained file; blocks.
    ///
    /// Writers are not blocked: the copy has the state at its beginning. Its integrity is checked completely.
    ///
    /// - Parameter path: a file that does not exist yet, and does not exist after an error either.
    /// - Throws: ``StorageError``; ``StorageError/notEnoughSpace(_:)`` before anything is written if it does not fit.
    public func copy(to path: String) throws(StorageError) {
        do {
            try requireSpace(forCopyAt: path)
            let copy = try DatabaseQueue(path: path)
            try pool.backup(to: copy)
            try copy.writeWithoutTransaction { database in
                // The copy's header says WAL mode, as the original's does.
                try database.execute(sql: "PRAGMA journal_mode = DELETE")
            }
            try copy.close()
            try DatabaseCheck.full(path: path)
        } catch {
            // SQLite leaves the partial copy, which may have filled the disk.
            for ending in ["", "-journal", "-wal", "-shm"] { unlink(path + ending) }
            throw StorageError(database: error, path: path)
        }
    }

    /// Refuses a copy that does not fit on its disk. The library may be on the same disk, and needs space for its
    /// changes.
    private func requireSpace(forCopyAt path: String) throws {
        let bytes = try pool.read { database in
            let pages = try Int.fetchOne(database, sql: "PRAGMA page_count") ?? 0
            let pageBytes = try Int.fetchOne(database, sql: "PRAGMA page_size") ?? 0
            return pages * pageBytes
        }
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        var status = statvfs()
        // Some filesystems report no size.
        guard statvfs(folder, &status) == 0, status.f_blocks > 0 else { return }
        guard Double(status.f_bavail) * Double(status.f_frsize) < Double(bytes) else { return }
        throw StorageError.notEnoughSpace(
            "\(path) needs \(bytes) bytes, which its disk does not have. Free some space and try again."
        )
    }
}
