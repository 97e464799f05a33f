import Contracts
public import Messaging

extension WorkerFailure {
    /// The failure as an error on the wire.
    public var refusal: RPCError {
        let refusal: Refusal =
            switch self {
            case .crashed, .killed, .exited, .malformedResult: .workerCrashed
            case .timedOut(_, .working): .limitExceeded
            case .timedOut: .workerTimeout
            case .refused(let name, _):
                Refusal(rawValue: name) ?? (name == "too_large" ? .limitExceeded : .internalError)
            case .resultTooLarge: .limitExceeded
            case .queueFull: .busy
            case .unavailable: .unavailable
            case .cancelled: .userCancelled
            }
        return refusal.error(message)
    }
}
