public import JSONValue
public import Messaging
public import PhotoModel

/// Every error of the house, with its number: PhotoKit's where PhotoKit has one (spec section 11), JSON-RPC's own below
/// zero, and ours from 9001 up.
public enum Refusal: String, Sendable, CaseIterable {
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

    // Ours
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
    case resourcesDisagree = "resources_disagree"

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
        case .resourcesDisagree: 9030
        }
    }

    /// What it means, for the documents.
    public var summary: String {
        switch self {
        case .parseError: "The message is not JSON."
        case .invalidRequest: "The message is not a JSON-RPC request, or breaks a limit of the connection."
        case .methodNotFound: "The service has no such method; rpc.discover lists those it has."
        case .invalidParams: "A parameter is missing, unknown, of the wrong kind or out of range."
        case .internalError: "A fault of the service; its log tells more under the request's id."
        case .userCancelled: "The request was cancelled."
        case .tokenExpired: "The token is older than the history kept, or of another history: fetch again."
        case .libraryOffline: "The library's folder cannot be reached."
        case .identifierNotFound: "No entity has this identifier."
        case .multipleIdentifiers: "More than one entity fits."
        case .detailsUnavailable: "There are no details of this change."
        case .changeNotSupported: "This kind of change is not possible for this entity."
        case .interrupted: "The work was interrupted; ask again."
        case .invalidResource: "The bytes are not a picture that can be taken in."
        case .missingResource: "The asset lacks the resource that the request needs."
        case .notEnoughSpace: "The disk is full."
        case .requestNotSupported: "The request does not fit this asset."
        case .accessRestricted: "Access is restricted by configuration."
        case .accessDenied: "This identity may not do that."
        case .busy: "Too much is under way; ask again a little later."
        case .deadlineExceeded:
            "The work was not done by the deadline. A write may still have been committed: repeat it "
                + "under the same transaction id to learn."
        case .connectionLost: "The service went away before it answered. Repeat writes under the same transaction id."
        case .limitExceeded: "The request goes beyond a limit, which the message names."
        case .behind: "The service has not reached the token in atLeast yet."
        case .idReused: "This transaction id was used for other content."
        case .conflict: "The entity has changed since the revision named."
        case .cycle: "A folder cannot be put into itself."
        case .handleExpired: "The upload, cache or observation is gone; begin again."
        case .resourceChanged: "The stored bytes are not those that were taken in."
        case .unsupportedFormat: "The format is not supported; the message lists those that are."
        case .unsupportedPredicate: "The predicate uses a key or operation that this class does not offer."
        case .unsupportedSortKey: "The class cannot be sorted by this key."
        case .invalidPredicate: "The predicate cannot be read."
        case .invalidOptions: "The options contradict each other."
        case .rangeError: "An index is out of range."
        case .snapshotRequired: "Index operations need the token at which the indexes were read."
        case .nestedChange: "A change cannot hold another."
        case .notObservable: "Fetches of this kind cannot be observed."
        case .missingPredecessor: "The edit that this one comes after is unknown."
        case .predecessorFailed: "The edit that this one is to be appended to has failed."
        case .workerCrashed: "The worker process died over these bytes."
        case .workerTimeout: "The worker process took too long over these bytes."
        case .quarantined: "These bytes were set aside because they did harm before."
        case .unavailable: "A service that is needed does not answer."
        case .resourcesDisagree: "The files are not of one picture; take them in as assets of their own."
        }
    }

    /// The error as it goes over the wire.
    ///
    /// - Parameters:
    ///   - message: what went wrong with which thing, and what to do
    ///   - data: what was offered instead: allowed keys, the oldest token and the like
    public func error(_ message: String, _ data: JSONObject = [:]) -> RPCError {
        RPCError(code: code, name: rawValue, message: message, data: data)
    }
}

extension RPCError {
    /// The entry of the table, where the sender uses one that we know.
    public var refusal: Refusal? { Refusal(rawValue: name) }
}

extension PredicateError {
    /// The error as it goes over the wire: what was refused, where, and what would have been accepted.
    public var refusal: RPCError {
        var data: JSONObject = [:]
        if let key { data["key"] = .string(key) }
        if let entityClass { data["class"] = .string(entityClass.rawValue) }
        if let offset { data["offset"] = JSON(offset) }
        if !allowed.isEmpty { data["allowed"] = JSON(allowed) }
        return (Refusal(rawValue: name.rawValue) ?? .invalidPredicate).error(description, data)
    }
}
