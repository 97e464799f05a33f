public import JSONValue

/// A job for a worker process.
public struct WorkerJob: Sendable {
    /// The name of the operation, as defined by the worker's handler.
    public var method: String
    /// The parameters, an object.
    public var params: JSON
    /// Bytes that are copied to the worker: at most ``WorkerFrame/mostAttachments`` arrays.
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
