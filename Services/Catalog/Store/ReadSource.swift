import Messaging

/// The client that a read of the database is made for; clients take turns.
enum ReadSource: Sendable, Hashable {
    case catalog
    case connection(ConnectionID)

    /// The client whose request the present task answers.
    @TaskLocal static var current = ReadSource.catalog
}
