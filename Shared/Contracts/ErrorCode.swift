public import JSONValue
public import PhotoModel

/// All errors of the services and their codes: PhotoKit's code if PhotoKit has the error, JSON-RPC's own below zero,
/// and Safelight's from 9001 up.
public enum ErrorCode: String, Sendable, CaseIterable {
    // JSON-RPC
    case parseError = "parse_error"
    case invalidRequest = "invalid_request"
    case methodNotFound = "method_not_found"
    case invalidParams = "invalid_params"
    case internalError = "internal_error"

    // PhotoKit
    case userCancelled = "user_cancelled"
    case tokenExpired = "token_expired"
    case libraryOffline = "library_offline"
    case libraryRelinquished = "library_relinquished"
    case librarySwitching = "library_switching"
    case networkAccessRequired = "network_access_required"
    case networkError = "network_error"
    case identifierNotFound = "identifier_not_found"
    case multipleIdentifiers = "multiple_identifiers"
    case detailsUnavailable = "details_unavailable"
    case changeNotSupported = "change_not_supported"
    case interrupted = "interrupted"
    case invalidResource = "invalid_resource"
    case missingResource = "missing_resource"
    case notEnoughSpace = "not_enough_space"
    case requestNotSupported = "request_not_supported"
    case accessRestricted = "access_restricted"
    case accessDenied = "access_denied"

    // Safelight
    case busy = "busy"
    case deadlineExceeded = "deadline_exceeded"
    case connectionLost = "connection_lost"
    case limitExceeded = "limit_exceeded"
    case behind = "behind"
    case idReused = "id_reused"
    case conflict = "conflict"
    case cycle = "cycle"
    case handleExpired = "handle_expired"
    case resourceChanged = "resource_changed"
    case unsupportedFormat = "unsupported_format"
    case unsupportedPredicate = "unsupported_predicate"
    case unsupportedSortKey = "unsupported_sort_key"
    case invalidPredicate = "invalid_predicate"
    case invalidOptions = "invalid_options"
    case rangeError = "range_error"
    case snapshotRequired = "snapshot_required"
    case nestedChange = "nested_change"
    case notObservable = "not_observable"
    case missingPredecessor = "missing_predecessor"
    case predecessorFailed = "predecessor_failed"
    case workerCrashed = "worker_crashed"
    case workerTimeout = "worker_timeout"
    case quarantined = "quarantined"
    case unavailable = "unavailable"
    case libraryReadOnly = "library_read_only"
    case resourcesDisagree = "resources_disagree"
    case notDetermined = "not_determined"
    case missingPurpose = "missing_purpose"

    /// The number of the error on the wire.
    public var code: Int {
        switch self {
        case .parseError: -32700
        case .invalidRequest: -32600
        case .methodNotFound: -32601
        case .invalidParams: -32602
        case .internalError: -32603
        case .userCancelled: 3072
        case .tokenExpired: 3105
        case .libraryOffline: 3114
        case .libraryRelinquished: 3142
        case .librarySwitching: 3143
        case .networkAccessRequired: 3164
        case .networkError: 3169
        case .identifierNotFound: 3201
        case .multipleIdentifiers: 3202
        case .detailsUnavailable: 3210
        case .changeNotSupported: 3300
        case .interrupted: 3301
        case .invalidResource: 3302
        case .missingResource: 3303
        case .notEnoughSpace: 3305
        case .requestNotSupported: 3306
        case .accessRestricted: 3310
        case .accessDenied: 3311
        case .busy: 9001
        case .deadlineExceeded: 9002
        case .connectionLost: 9003
        case .limitExceeded: 9004
        case .behind: 9005
        case .idReused: 9006
        case .conflict: 9007
        case .cycle: 9008
        case .handleExpired: 9009
        case .resourceChanged: 9010
        case .unsupportedFormat: 9011
        case .unsupportedPredicate: 9012
        case .unsupportedSortKey: 9013
        case .invalidPredicate: 9014
        case .invalidOptions: 9015
        case .rangeError: 9016
        case .snapshotRequired: 9017
        case .nestedChange: 9018
        case .notObservable: 9019
        case .missingPredecessor: 9020
        case .workerCrashed: 9021
        case .workerTimeout: 9022
        case .quarantined: 9023
        case .unavailable: 9024
        case .predecessorFailed: 9025
        case .libraryReadOnly: 9026
        case .resourcesDisagree: 9030
        case .notDetermined: 9040
        case .missingPurpose: 9041
        }
    }

    /// The meaning of the error, for the documentation.
    public var summary: String {
        switch self {
        case .parseError: "The message is not JSON."
        case .invalidRequest: "The message is not a JSON-RPC request, or breaks a limit of the connection."
        case .methodNotFound: "The service has no such method; rpc.discover lists those it has."
        case .invalidParams: "A parameter is missing, unknown, of the wrong type or out of range."
        case .internalError: "The service failed unexpectedly; see its log for the request's id."
        case .userCancelled: "The request was cancelled."
        case .tokenExpired: "The token is older than the retained history, or of another history: fetch again."
        case .libraryOffline: "The library's folder cannot be reached."
        case .libraryRelinquished: "The library's folder was moved, renamed or deleted."
        case .librarySwitching: "Another library is being put into the library's folder."
        case .networkAccessRequired: "The bytes are in remote storage, and the request does not allow network access."
        case .networkError: "The bytes are in remote storage, and could not be downloaded."
        case .identifierNotFound: "No entity has this identifier."
        case .multipleIdentifiers: "More than one entity matches."
        case .detailsUnavailable: "There are no details of this change."
        case .changeNotSupported: "This kind of change is not supported for this entity."
        case .interrupted: "The request was interrupted; send it again."
        case .invalidResource: "The bytes are not a photo or video that can be imported."
        case .missingResource: "The asset does not have the resource that the request needs."
        case .notEnoughSpace: "The disk is full."
        case .requestNotSupported: "The request is not supported for this asset."
        case .accessRestricted: "Access is restricted by configuration."
        case .accessDenied: "This identity is not allowed to do that."
        case .busy: "The service has too many requests in progress; retry after a short delay."
        case .deadlineExceeded:
            "The request was not completed by its deadline. A write may still have been committed: repeat it "
                + "with the same transaction id to find out."
        case .connectionLost: "The connection was lost before the response. Repeat writes with the same transaction id."
        case .limitExceeded: "The request exceeds a limit; the message names it."
        case .behind: "The service has not reached the token in atLeast yet."
        case .idReused: "This transaction id was used with other content."
        case .conflict: "The entity has changed since the given revision."
        case .cycle: "A folder cannot be moved into itself."
        case .handleExpired: "The upload, cache or observation has expired; begin again."
        case .resourceChanged: "The stored bytes are not the bytes that were imported."
        case .unsupportedFormat: "The format is not supported; the message lists the supported formats."
        case .unsupportedPredicate: "The predicate uses a key or operation that this class does not support."
        case .unsupportedSortKey: "This class cannot be sorted by this key."
        case .invalidPredicate: "The predicate cannot be parsed."
        case .invalidOptions: "The options contradict each other."
        case .rangeError: "An index is out of range."
        case .snapshotRequired: "Index operations need the token at which the indexes were read."
        case .nestedChange: "A transaction cannot contain another."
        case .notObservable: "Change records do not contain changes of transient collections."
        case .missingPredecessor: "The edit named in after is unknown."
        case .predecessorFailed: "The edit that this one appends to has failed."
        case .workerCrashed: "The worker process crashed while reading these bytes."
        case .workerTimeout: "The worker process exceeded its time limit while reading these bytes."
        case .quarantined: "These bytes are quarantined because workers crashed or hung while reading them."
        case .unavailable: "A required service does not respond."
        case .libraryReadOnly: "The library can only be read: its folder is not writable, or the catalog is a standby."
        case .notDetermined: "The owner of the library has not decided yet what this identity may do."
        case .missingPurpose: "Access is granted for a stated purpose only."
        case .resourcesDisagree: "The files do not show the same photo; import them as separate assets."
        }
    }

    /// Returns the error as it is sent on the wire.
    ///
    /// - Parameters:
    ///   - message: what failed, for which object, and what to do
    ///   - data: what is accepted instead, for example allowed keys or the oldest token
    public func error(_ message: String, _ data: JSONObject = [:]) -> RPCError {
        RPCError(code: code, name: rawValue, message: message, data: data)
    }
}

extension RPCError {
    /// The entry of ``ErrorCode`` with this error's name; nil if the name is unknown.
    public var errorCode: ErrorCode? { ErrorCode(rawValue: name) }
}

extension PredicateError {
    /// The error as it is sent on the wire: what was refused, at which offset, and what is accepted instead.
    public var rpcError: RPCError {
        var data: JSONObject = [:]
        if let key { data["key"] = .string(key) }
        if let entityClass { data["class"] = .string(entityClass.rawValue) }
        if let offset { data["offset"] = JSON(offset) }
        if !allowed.isEmpty { data["allowed"] = JSON(allowed) }
        return (ErrorCode(rawValue: name.rawValue) ?? .invalidPredicate).error(message, data)
    }
}
