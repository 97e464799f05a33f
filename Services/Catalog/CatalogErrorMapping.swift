import Contracts
import JSONValue
import PhotoModel
import Storage

/// Conversions of the catalog's errors to errors on the wire.
enum CatalogErrorMapping {
    /// Returns the error to send to the client. Internal errors are reported as such; details are in the log.
    static func rpcError(_ error: any Error) -> RPCError {
        switch error {
        case let error as RPCError: error
        case let error as StorageError: error.rpcError
        case let error as PredicateError: rpcError(error)
        case is CancellationError: ErrorCode.userCancelled.error("the request was cancelled")
        default: ErrorCode.internalError.error("the catalog failed; see its log")
        }
    }

    /// Returns true for an internal error, which is to be logged.
    static func isFault(_ error: any Error) -> Bool {
        switch error {
        case is RPCError, is PredicateError, is CancellationError: false
        default: true
        }
    }

    private static func rpcError(_ error: PredicateError) -> RPCError {
        var data = JSONObject()
        if let key = error.key { data["key"] = .string(key) }
        if let entityClass = error.entityClass { data["class"] = .string(entityClass.rawValue) }
        if let offset = error.offset { data["offset"] = JSON(offset) }
        if !error.allowed.isEmpty { data["allowed"] = JSON(error.allowed) }
        return (ErrorCode(rawValue: error.name.rawValue) ?? .invalidOptions).error(error.message, data)
    }

    /// Returns the error for a fetch of an object that does not exist.
    static func notFound(_ fetch: Fetch) -> RPCError {
        switch fetch.kind {
        case .assets(.collection(let id)), .assets(.below(let id)), .children(let id),
            .collectionsContaining(let id, _),
            .listsContaining(let id):
            notFound(id)
        case .assets(.moment(let moment)): notFound(moment.id)
        default: ErrorCode.identifierNotFound.error("the object that the fetch refers to does not exist")
        }
    }

    static func notFound(_ id: ObjectID) -> RPCError {
        ErrorCode.identifierNotFound.error("no object has the identifier \(id)", ["id": .string(id.text)])
    }

    /// Returns the error for a token of another history, or whose following records have been deleted.
    static func tokenExpired(_ token: ChangeToken, _ head: LibraryHead) -> RPCError {
        ErrorCode.tokenExpired.error(
            "the history after \(token) is not available; fetch again and continue from the head",
            ["oldest": .string(head.oldestToken.description), "head": .string(head.token.description)]
        )
    }

    /// Checks that a token is of this history and that all records after it are available.
    ///
    /// - Throws: `token_expired`
    static func check(_ token: ChangeToken, _ head: LibraryHead) throws(RPCError) {
        guard token.library == head.library, token.sequence >= head.oldest, token.sequence <= head.sequence else {
            throw tokenExpired(token, head)
        }
    }
}
extension StorageError {
    /// The error as a client sees it; paths of this machine appear only in the log.
    var rpcError: RPCError {
        switch self {
        case .notEnoughSpace: ErrorCode.notEnoughSpace.error("the disk of the library is full; free some space")
        case .busy: ErrorCode.busy.error("the database is locked; try again later")
        case .tooLarge(let message): ErrorCode.limitExceeded.error(message)
        case .notFound(let message): ErrorCode.missingResource.error(message)
        case .resourceChanged(let message): ErrorCode.resourceChanged.error(message)
        case .io, .corrupt, .inUse, .readOnly, .newerVersion, .invalid:
            ErrorCode.internalError.error("the library's disk failed (\(name)); see the catalog's log")
        }
    }
}
