import Contracts
public import JSONValue

/// A job for a worker process.
public struct WorkerJob: Sendable {
    /// The name of the operation, as defined by the worker's handler.
    public var method: String
    /// The parameters, an object.
    public var params: JSON
    /// Bytes that are copied to the worker: at most ``WorkerFrame/maxAttachments`` arrays.
    public var attachments: [[UInt8]]
    /// Open descriptors, at most 16, duplicated into the worker.
    ///
    /// The caller of the pool owns them and keeps them open until `run` returns. In a worker they are closed when the
    /// handler returns.
    public var files: [Int32]

    /// Creates a job.
    public init(method: String, params: JSON = [:], attachments: [[UInt8]] = [], files: [Int32] = []) {
        self.method = method
        self.params = params
        self.attachments = attachments
        self.files = files
    }
}

/// The result of a worker's job.
public struct WorkerResult: Sendable, Equatable {
    /// The result, an object.
    public var result: JSON
    /// The attached bytes.
    public var attachments: [[UInt8]]

    /// Creates a result.
    public init(result: JSON = [:], attachments: [[UInt8]] = []) {
        self.result = result
        self.attachments = attachments
    }
}

/// A named error of a job, for example that the bytes are not an image or the image is too large.
///
/// The worker keeps running.
public struct WorkerJobError: Error, Sendable, Equatable {
    /// The stable name, for example `unsupported_format`.
    public var name: String
    /// A description of the problem with advice.
    public var message: String

    /// Creates an error.
    public init(name: String, message: String) {
        self.name = name
        self.message = message
    }
}

/// The priority of a waiting job. High and normal ones order the jobs of one client; clients take turns. Jobs of low
/// priority run when no others wait.
public enum WorkerPriority: Int, Sendable, CaseIterable {
    case high, normal, low
}

/// The reason why a job has no result.
public enum WorkerFailure: Error, Sendable, Equatable {
    /// The worker was ended by a signal during the job, as happens to decoders with hostile bytes.
    case crashed(signal: Int32, phase: WorkerPhase = .reading)
    /// The worker was killed by another process or the kernel during the job, for example because memory ran short.
    case killed
    /// The worker exited during the job.
    case exited(code: Int32, phase: WorkerPhase = .reading)
    /// The job exceeded its wall clock or CPU time and the worker was killed. The phase is ``WorkerPhase/reading`` only
    /// if reading the bytes used at least half of that time in CPU time.
    case timedOut(seconds: Int, phase: WorkerPhase = .reading)
    /// The job's own named error.
    case refused(name: String, message: String)
    /// The result was larger than ``WorkerLimits/resultBytes``; the worker was killed.
    case resultTooLarge(limit: Int)
    /// The response was not a valid frame; the worker was killed.
    case malformedResult(String, phase: WorkerPhase = .reading)
    /// The job was not started: too many are waiting.
    case queueFull(limit: Int)
    /// The job was not started: no worker can be started, or the pool is stopping.
    case unavailable(String)
    /// The calling task was cancelled.
    case cancelled

    /// True if the failure is attributed to the request and not to the bytes.
    public var isOfRequest: Bool {
        switch self {
        case .timedOut(_, .working), .crashed(_, .working), .exited(_, .working), .resultTooLarge: true
        default: false
        }
    }

    /// The name for logs and results, for example `worker_crashed`; for a job's own error, its name.
    public var name: String {
        switch self {
        case .crashed, .killed, .exited: "worker_crashed"
        case .timedOut(_, .working): "limit_exceeded"
        case .timedOut: "worker_timeout"
        case .refused(let name, _): name
        case .resultTooLarge: "worker_result_too_large"
        case .malformedResult: "worker_malformed_result"
        case .queueFull: "busy"
        case .unavailable: "worker_unavailable"
        case .cancelled: "user_cancelled"
        }
    }

    /// A description of the problem with advice.
    public var message: String {
        switch self {
        case .crashed(let signal, _): "the file could not be processed: the worker ended with signal \(signal)"
        case .killed:
            "the worker was killed by the system, possibly because memory ran short; retry later, or give "
                + "the services more memory"
        case .exited(let code, _): "the file could not be processed: the worker exited with code \(code)"
        case .timedOut(let seconds, .working):
            "the request took longer than the limit of \(seconds) s; request fewer pixels, "
                + "another format or fewer operations"
        case .timedOut(let seconds, _): "processing the file took longer than the limit of \(seconds) s"
        case .refused(_, let message): message
        case .resultTooLarge(let limit): "the result is larger than \(limit) bytes; request a smaller one"
        case .malformedResult(let reason, _): "the worker's response is invalid: \(reason)"
        case .queueFull(let limit): "\(limit) jobs are already waiting; retry later"
        case .unavailable(let reason): "no worker is available: \(reason)"
        case .cancelled: "the request was cancelled"
        }
    }
}

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

/// A phase of a job, reported by the worker. It decides whether a failure is attributed to the bytes or the request.
public enum WorkerPhase: String, Sendable, Equatable {
    /// The worker has the job but has not begun to read the bytes; a failure is attributed to neither.
    case received
    /// Untrusted bytes are being read; a failure is attributed to them.
    case reading
    /// The bytes have been read; a failure or timeout is attributed to the request.
    case working
}
