import Logging
package import PhotoModel
import Storage

/// Creates a library from complete change records, without the service and its rules, for tools that generate
/// libraries.
package struct LibraryBuilder: Sendable {
    /// The identifier of the history of the new library.
    package let historyID: String
    /// The root folder of the new library.
    package let root: CollectionList
    private let store: LibraryStore
    private let lock: LockFile

    /// Creates an empty library.
    ///
    /// - Parameters:
    ///   - folder: created if it does not exist
    ///   - server: the address of the database on PostgreSQL; nil for a file in the folder
    ///   - now: microseconds since 1970, the date of the library
    ///   - newHistoryID: 32 hexadecimal digits that were never used before
    /// - Throws: an error if the folder contains a library or cannot be used
    package init(folder: String, server: String? = nil, now: Int64, newHistoryID: String) async throws {
        try LibraryFolder.make(folder)
        lock = try LibraryFolder.lock(folder)
        store = try LibraryStore(
            folder: folder,
            server: server,
            now: now,
            newHistoryID: newHistoryID,
            logger: Logger(label: "builder") { _ in SwiftLogNoOpLogHandler() }
        )
        let (head, root) = try await store.read { (try $0.head(), try $0.collections.list(.root)) }
        guard head.sequence == 0, let root else {
            throw StorageError.invalid("\(folder) already contains a library; choose an empty folder with --library")
        }
        historyID = head.library
        self.root = root
    }

    /// Appends a record to the history and applies it, without checking it.
    ///
    /// - Parameter bytes: the encoded record
    package func append(_ record: ChangeRecord, bytes: [UInt8]) async throws {
        try await store.append(record, bytes: bytes)
    }

    /// Writes the head file and closes the library.
    package func close() async throws {
        let head = try await store.read { try $0.head() }
        try store.headFile.store(library: head.library, sequence: head.sequence)
        try store.close()
    }
}
