public import JSONValue

/// One piece of work for a worker process.
public struct WorkerJob: Sendable {
    /// What to do, as the worker's handler names it.
    public var method: String
    /// The parameters, an object.
    public var params: JSON
    /// Bytes that travel with the job, copied: at most ``WorkerFrame/mostAttachments``.
    public var attachments: [[UInt8]]
    /// Open descriptors, at most 16, duplicated into the worker.
    ///
    /// In a pool they stay the caller's, who keeps them open
    /// until `run` returns; in a worker they are closed when the handler returns.
    public var files: [Int32]

    /// A job.
    public init(method: String, params: JSON = [:], attachments: [[UInt8]] = [], files: [Int32] = []) {
        self.method = method
        self.params = params
        self.attachments = attachments
        self.files = files
    }
}

/// What a worker answered.
public struct WorkerResult: Sendable, Equatable {
    /// The result, an object.
    public var result: JSON
    /// Bytes that travel with it.
    public var attachments: [[UInt8]]

    /// A result.
    public init(result: JSON = [:], attachments: [[UInt8]] = []) {
        self.result = result
        self.attachments = attachments
    }
}

/// A job's own named error: the bytes are not an image, the image is too large, and so on.
///
/// The worker lives on.
public struct WorkerRefusal: Error, Sendable, Equatable {
    /// The stable name, as in `unsupported_format`.
    public var name: String
    /// What happened and what to do about it.
    public var message: String

    /// A refusal.
    public init(name: String, message: String) {
        self.name = name
        self.message = message
    }
}

/// Which waiting job is taken first; equals in order of arrival.
public enum WorkerPriority: Int, Sendable, CaseIterable {
    case high, normal, low
}

/// Why a job has no result.
public enum WorkerFailure: Error, Sendable, Equatable {
    /// The worker was ended by a signal in the middle of the job, as decoders are by hostile bytes.
    case crashed(signal: Int32, phase: WorkerPhase = .reading)
    /// The worker was ended from outside in the middle of the job, as the system does where memory runs short.
    case killed
    /// The worker left by itself in the middle of the job.
    case exited(code: Int32, phase: WorkerPhase = .reading)
    /// The job was over its time, by the wall's clock or by the processor's; the worker was killed. The phase is
    /// ``WorkerPhase/reading`` only where reading the bytes took most of that time of a processor.
    case timedOut(seconds: Int, phase: WorkerPhase = .reading)
    /// The job's own named error.
    case refused(name: String, message: String)
    /// The answer was larger than ``WorkerLimits/resultBytes``; the worker was killed.
    case resultTooLarge(limit: Int)
    /// The answer was no frame as the protocol has them; the worker was killed.
    case malformedResult(String, phase: WorkerPhase = .reading)
    /// The job was never begun: too many are waiting.
    case queueFull(limit: Int)
    /// The job was never begun: no worker can be started, or the pool is stopping.
    case unavailable(String)
    /// The calling task was cancelled.
    case cancelled

    /// What was asked for, and not the bytes, took the worker's time or its life.
    public var isOfRequest: Bool {
        switch self {
        case .timedOut(_, .working), .crashed(_, .working), .exited(_, .working), .resultTooLarge: true
        default: false
        }
    }

    /// The name for the wire, as in `worker_crashed`; a refusal's own.
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

    /// What happened and what to do about it.
    public var message: String {
        switch self {
        case .crashed(let signal, _): "the file could not be processed: the worker ended with signal \(signal)"
        case .killed:
            "the worker was killed from outside, as the system does where memory runs short; try again later, or give "
                + "the services more memory"
        case .exited(let code, _): "the file could not be processed: the worker left with code \(code)"
        case .timedOut(let seconds, .working):
            "what is asked for takes longer than the \(seconds) s that a worker has for it; ask for fewer pixels, "
                + "another format or less to be done"
        case .timedOut(let seconds, _): "processing took longer than the \(seconds) s that one file may take"
        case .refused(_, let message): message
        case .resultTooLarge(let limit): "the result is larger than \(limit) bytes; ask for a smaller one"
        case .malformedResult(let reason, _): "the worker's answer was not understood: \(reason)"
        case .queueFull(let limit): "\(limit) jobs are waiting already; try again later"
        case .unavailable(let reason): "no worker is available: \(reason)"
        case .cancelled: "the request was cancelled"
        }
    }
}
