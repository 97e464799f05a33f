import JSONValue
import PhotoModel

/// A request that is refused, as an error of the catalog. ``CatalogErrorMapping`` converts it to the error on the wire.
protocol RefusedRequest: Error, CustomStringConvertible {}

extension RefusedRequest {
    /// The message of the error on the wire, for logs.
    var description: String { CatalogErrorMapping.rpcError(self).message }
}

/// The reasons for refusals that several parts of the catalog have in common.
enum CatalogError: RefusedRequest, Equatable {
    /// No object has the identifier.
    case objectNotFound(ObjectID)
    /// The object that a fetch refers to does not exist, and the fetch does not name it by an identifier.
    case fetchedObjectNotFound
    /// No transaction with this id was committed.
    case transactionNotFound(String)
    /// The transaction id was used for other requests.
    case transactionReused(String)
    /// The token is of another history, or the records after it have been deleted.
    case tokenExpired(ChangeToken, LibraryHead)
    /// The catalog has not reached a sequence in time.
    case behind(head: ChangeToken, requested: Int64)
    /// The record of a transaction is too large.
    case recordTooLarge(bytes: Int, limit: Int)
    /// Too many transactions wait for the writer.
    case tooManyTransactions(limit: Int)
    /// Too many requests of an identity wait for a change. A request without the parameter does not wait, and the topic
    /// of the feed has the same changes.
    case tooManyWaiting(limit: Int, parameter: String, topic: String)
    /// Too many writes outside of transactions wait for the writing connection.
    case tooManyWrites(limit: Int)
    /// A request that only services may send came from another client.
    case notAService(String, request: String)
    /// A request that only the user who runs the catalog may send came from another client.
    case notOwner(action: String)
    /// This catalog does not write: another one does.
    case standby(writer: String)
    /// A transaction failed because of a fault, which is in the log.
    case transactionFailed
    /// A commit failed because of a fault, which is in the log.
    case commitFailed

    /// Returns the error for a fetch of an object that does not exist.
    static func notFound(_ fetch: Fetch) -> CatalogError {
        fetch.kind.object.map { .objectNotFound($0) } ?? .fetchedObjectNotFound
    }
}

extension LibraryHead {
    /// Checks that a token is of this history and that all records after it are available.
    ///
    /// - Throws: ``CatalogError/tokenExpired(_:_:)``
    func check(_ token: ChangeToken) throws(CatalogError) {
        guard token.library == library, token.sequence >= oldest, token.sequence <= sequence else {
            throw .tokenExpired(token, self)
        }
    }
}
