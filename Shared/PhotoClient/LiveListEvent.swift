import Contracts
import JSONValue
public import PhotoModel

/// An event of a live fetch.
public enum LiveListEvent: Sendable, Hashable {
    /// The whole list at a token: at first, and again if there are no details for a change (S-69).
    case list([ObjectID], ChangeToken)
    /// The changes, the list after them, and its token.
    case changed(ChangeDetails, [ObjectID], ChangeToken)

    /// The token of the list.
    public var token: ChangeToken {
        switch self {
        case .list(_, let token), .changed(_, _, let token): token
        }
    }

    /// The list after the event.
    public var ids: [ObjectID] {
        switch self {
        case .list(let ids, _), .changed(_, let ids, _): ids
        }
    }
}
