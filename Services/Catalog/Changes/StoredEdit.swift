import Contracts
import JSONValue
import PhotoModel

/// A published edit as the catalog stores it.
///
/// Publishers do not see each other: an edit is identified by its publisher's identity and the publisher's own id for
/// it. Topics of the feed contain only the id; the publisher is the record's `onBehalfOf`.
struct StoredEdit: Sendable, Equatable {
    var publisher: String
    var id: String
    var asset: ObjectID
    var state: PublishedEditState
    var predecessor: String?
    var digest: String
    /// The published content; empty once the edit is finished.
    var content: [UInt8]
    var errorName: String?
    var errorMessage: String?
    /// The sequence of the transaction that accepted the edit, or that ended it if it was never accepted.
    var accepted: Int64
    /// The sequence of the transaction that set the current state, and its time in microseconds since 1970.
    var sequence: Int64
    var date: Int64

    /// The form that records and replies contain.
    var published: PublishedEdit {
        PublishedEdit(
            id: id,
            asset: asset,
            state: state,
            predecessor: predecessor,
            errorName: errorName,
            errorMessage: errorMessage
        )
    }
}
