import Storage

extension WriterElection {
    /// The servers that have answered this catalog.
    enum Connection: Sendable {
        case answering
        /// The server answers, and refuses to write.
        case readOnly
        /// The server does not answer, and its replica does.
        case replicaOnly
        /// Neither answers.
        case away
    }
    /// The part of a catalog in the writing.
    enum Role: Sendable, Equatable {
        /// This catalog writes, with the number of its epoch.
        case writer(epoch: Int64)
        /// Another catalog writes, as far as is known.
        case standby(writer: String)
    }

    /// A catalog that follows the writer.
    struct Follower: Sendable {
        /// The history that the catalog has in memory.
        var history: String
        /// Returns the newest sequence that the catalog knows.
        var head: @Sendable () -> Int64
        /// A sequence that the catalog has acknowledged or shown before it started: a replica may not have had it then.
        var acknowledged: Int64 = 0
        /// Receives records of the writer, in order, and the newest sequence among them.
        var receive: @Sendable ([StoredRecord], Int64) throws -> Void
        /// Called with the role whenever it changes.
        var changed: @Sendable (Role) -> Void
        /// Returns 32 hexadecimal digits that were never used before, the name of another history.
        var newHistory: @Sendable () -> String
    }

    /// Has the server notice within 40 seconds that the other host has vanished: its session ends then, and with it the
    /// lock of a writer that renews no date.
    static let keepalives =
        "SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 6"

    /// - Throws: `StorageError.resourceChanged` if the library has begun another history than the catalog knows
    func require(_ head: LibraryHead?, of follower: Follower) throws(StorageError) {
        guard let head, head.library != follower.history else { return }
        throw .resourceChanged("the library began another history; start the catalog again")
    }
}
