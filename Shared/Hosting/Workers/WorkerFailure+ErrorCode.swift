public import JSONValue
import Contracts

extension WorkerFailure {
    /// The failure as an error on the wire.
    public var rpcError: RPCError {
        let refusal: ErrorCode =
            switch self {
            case .crashed, .killed, .exited, .malformedResult: .workerCrashed
            case .timedOut(_, .working): .limitExceeded
            case .timedOut: .workerTimeout
            case .refused(let name, _):
                ErrorCode(rawValue: name) ?? (name == "too_large" ? .limitExceeded : .internalError)
            case .resultTooLarge: .limitExceeded
            case .queueFull: .busy
            case .unavailable: .unavailable
            case .cancelled: .userCancelled
            }
        return refusal.error(message)
    }
}
