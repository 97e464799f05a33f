import Contracts
import JSONValue
import PhotoModel
import Storage

/// Conversions of the catalog's errors to errors on the wire. No other part of the catalog defines their codes and
/// texts.
enum CatalogErrorMapping {
    /// Returns the error to send to the client. Internal errors are reported as such; details are in the log.
    static func rpcError(_ error: any Error) -> RPCError {
        switch error {
        case let error as RPCError: error
        case let error as CatalogError: rpcError(error)
        case let error as ChangeError: rpcError(error)
        case let error as FetchError: rpcError(error)
        case let error as ResourceError: rpcError(error)
        case let error as MaintenanceError: rpcError(error)
        case let error as GrantError: rpcError(error)
        case let error as StorageError: error.rpcError
        case let error as PredicateError: error.rpcError
        case is CancellationError: ErrorCode.userCancelled.error("the request was cancelled")
        default: ErrorCode.internalError.error("the catalog failed; see its log")
        }
    }

    /// Returns true for an internal error, which must be logged.
    static func isFault(_ error: any Error) -> Bool {
        switch error {
        case is RPCError, is any RefusedRequest, is PredicateError, is CancellationError: false
        default: true
        }
    }

    private static func rpcError(_ error: CatalogError) -> RPCError {
        switch error {
        case .objectNotFound(let id):
            ErrorCode.identifierNotFound.error("no object has the identifier \(id)", ["id": .string(id.text)])
        case .fetchedObjectNotFound:
            ErrorCode.identifierNotFound.error("the object that the fetch refers to does not exist")
        case .transactionNotFound(let id):
            ErrorCode.identifierNotFound.error("no transaction \"\(id)\" was committed")
        case .transactionReused(let id):
            ErrorCode.idReused.error(
                "the transaction id \"\(id)\" was used for other requests; use a new id for each transaction",
                ["transaction": .string(id)]
            )
        case .tokenExpired(let token, let head):
            ErrorCode.tokenExpired.error(
                "the history after \(token) is not available; fetch again and continue from the head",
                ["oldest": .string(head.oldestToken.description), "head": .string(head.token.description)]
            )
        case .behind(let head, let requested):
            ErrorCode.behind.error(
                "the catalog is at \(head.sequence) and has not reached \(requested); try again later",
                ["head": .string(head.description)]
            )
        case .recordTooLarge(let bytes, let limit):
            ErrorCode.limitExceeded.error(
                "the change record would have at least \(bytes) bytes, the limit is \(limit); split the transaction",
                ["limit": JSON(limit)]
            )
        case .tooManyTransactions(let limit):
            ErrorCode.busy.error("\(limit) transactions are already waiting; try again later")
        case .tooManyWaiting(let limit, let parameter, let topic):
            ErrorCode.limitExceeded.error(
                "\(limit) of your requests are waiting; ask without \(parameter), or subscribe to \(topic)",
                ["limit": JSON(limit)]
            )
        case .tooManyWrites(let limit):
            ErrorCode.busy.error("\(limit) writes are already waiting; try again later", ["limit": JSON(limit)])
        case .notAService(let identity, let request):
            ErrorCode.accessDenied.error("\(request) is for services only, and \(identity) is not a service")
        case .notOwner(let action):
            ErrorCode.accessDenied.error("only the catalog's own user may \(action), and only over ipc")
        case .standby(let writer) where writer.hasPrefix("unknown: "):
            ErrorCode.libraryReadOnly.error(
                "this catalog cannot write, and does not know whether another one does (\(writer)); start PostgreSQL "
                    + "or wait until it is reachable again",
                ["standby": true, "writer": .string(writer)]
            )
        case .standby(let writer):
            ErrorCode.libraryReadOnly.error(
                "this catalog is a standby and does not write; send changes to the writing catalog (\(writer)), or stop "
                    + "that one and try again",
                ["standby": true, "writer": .string(writer)]
            )
        case .transactionFailed: ErrorCode.internalError.error("the transaction failed; see the catalog's log")
        case .commitFailed: ErrorCode.internalError.error("the commit failed; see the catalog's log")
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
        case .offline: LibraryStatus.Problem.folder(.offline).rpcError
        case .serverOffline: LibraryStatus.Problem.databaseServer.rpcError
        case .relinquished: LibraryStatus.Problem.folder(.relinquished).rpcError
        case .readOnly: LibraryStatus.Problem.folder(.readOnly).rpcError
        case .io, .corrupt, .inUse, .newerVersion, .invalid:
            ErrorCode.internalError.error("the library's disk failed (\(name)); see the catalog's log")
        }
    }
}

extension RPCError {
    /// Returns the error with the index of the request that caused it, unless it has one already.
    func about(request index: Int) -> RPCError {
        var error = self
        if error.data["request"] == nil { error.data["request"] = JSON(index) }
        return error
    }
}
