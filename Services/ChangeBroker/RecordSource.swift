import Contracts
import JSONValue
import Messaging
import PhotoClient
import PhotoModel

/// The service whose records a change-broker publishes: the catalog, or another change-broker, so that one catalog serves few
/// brokers and these serve many.
enum RecordSource: Sendable {
    case catalog(ServiceClient)
    case broker(ServiceClient)

    /// Returns the newest token, and the one after which the history is complete.
    func current(deadline: Duration) async throws(RPCError) -> CurrentToken.Result {
        switch self {
        case .catalog(let catalog): return try await catalog.ask(CurrentToken(), deadline: deadline).result
        case .broker(let broker):
            let head = try await broker.ask(FeedHeadRequest(), deadline: deadline).result
            return CurrentToken.Result(
                token: head.token,
                oldest: ChangeToken(library: head.library, sequence: head.oldest)
            )
        }
    }

    /// Returns the stream of the records after a token.
    func records(after token: ChangeToken, credit: Int) -> EncodedStream {
        switch self {
        case .catalog(let catalog): catalog.encodedStream(ChangesFollow(token: token), credit: credit)
        case .broker(let broker): broker.encodedStream(FeedFollow(token: token), credit: credit)
        }
    }

    /// The one of several catalogs whose records can be read now; nil if there is no choice.
    var presentCatalog: ServiceClient? {
        guard case .catalog(let catalog) = self else { return nil }
        return catalog.presentCatalog
    }

    /// The method of the notifications that have records.
    var notification: String {
        switch self {
        case .catalog: ChangesFollow.notification
        case .broker: FeedFollow.notification
        }
    }
}
