import PhotoModel

/// The head of the library: its history, the newest sequence, and the sequence after which the history is complete.
struct LibraryHead: Sendable, Equatable {
    var library: String
    var sequence: Int64
    var oldest: Int64

    var token: ChangeToken { ChangeToken(library: library, sequence: sequence) }
    var oldestToken: ChangeToken { ChangeToken(library: library, sequence: oldest) }
}
