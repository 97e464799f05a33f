import Contracts

/// Runs worker jobs on stored bytes, and reports bytes that crash or hang workers.
///
/// A worker that ends in the middle of a job may have been killed for another reason (the system was short of memory),
/// so the job is run once more by another worker. Only failures while the bytes are read are attributed to the bytes:
/// a request that needs too much work fails alone, and other requests still get the image.
public struct ResourceJobRunner: Sendable {
    /// The failure that bytes caused, and the number of consecutive failures.
    public struct WorkerFault: Sendable, Equatable {
        public var digest: String
        public var failure: WorkerFailure
        public var failures: Int
    }

    /// Number of attempts of a job before its failure is final.
    public static let attempts = 2

    private let pool: WorkerPool
    private let resources: ResourceFolder?
    private let report: @Sendable (WorkerFault) async -> Void

    /// - Parameters:
    ///   - pool: the workers
    ///   - resources: the folder of the bytes; copies in it that a worker finds damaged are removed. Nil for none
    ///   - report: called before the job's error is thrown, so that the next request finds the fault recorded
    public init(
        _ pool: WorkerPool,
        resources: ResourceFolder? = nil,
        report: @escaping @Sendable (WorkerFault) async -> Void
    ) {
        self.pool = pool
        self.resources = resources
        self.report = report
    }

    /// Runs a job.
    ///
    /// - Parameters:
    ///   - job: the job
    ///   - digest: digest of the bytes that the job opens; nil for a job without bytes, whose failure is its own
    ///   - priority: the job's priority in the queue
    /// - Throws: ``WorkerFailure``, as ``WorkerPool/run(_:priority:wallSeconds:)``
    public func run(_ job: WorkerJob, over digest: String?, priority: WorkerPriority = .normal)
        async throws(WorkerFailure) -> WorkerResult
    {
        try await run(over: digest) { pool throws(WorkerFailure) in try await pool.run(job, priority: priority) }
    }

    /// Runs a job whose attempts differ, for example by the pipe that each writes to.
    ///
    /// - Parameter attempt: runs the job once
    func run<Value: Sendable>(
        over digest: String?,
        attempt: (WorkerPool) async throws(WorkerFailure) -> Value
    ) async throws(WorkerFailure) -> Value {
        var (ends, failures) = (0, 0)
        while true {
            do throws(WorkerFailure) {
                return try await attempt(pool)
            } catch {
                if let digest, error.name == ErrorCode.resourceChanged.rawValue {
                    await resources?.removeIfDamaged(digest)
                }
                ends += error.isEnd ? 1 : 0
                failures += error.isWorkerFault ? 1 : 0
                if error.isEnd, ends < Self.attempts { continue }
                guard failures > 0, let digest else { throw error }
                await report(WorkerFault(digest: digest, failure: error, failures: failures))
                throw error
            }
        }
    }
}

extension ResourceJobRunner {
    /// Runs a job that opens the bytes of several resources, once. Its failure is attributed to none of them: the
    /// caller runs a job for each.
    ///
    /// - Parameter wallSeconds: the time limit of the job
    /// - Throws: ``WorkerFailure``, as ``WorkerPool/run(_:priority:wallSeconds:)``
    public func runOnce(_ job: WorkerJob, wallSeconds: Int) async throws(WorkerFailure) -> WorkerResult {
        try await pool.run(job, wallSeconds: wallSeconds)
    }
}

extension WorkerFailure {
    /// True if the worker ended in the middle of the job, by itself or by a signal.
    fileprivate var isEnd: Bool {
        switch self {
        case .crashed, .killed, .exited, .malformedResult: true
        default: false
        }
    }

    /// True if the worker crashed or hung while reading the bytes. A job's own error, or a result that is too large,
    /// does not count.
    var isWorkerFault: Bool {
        switch self {
        case .timedOut(_, let phase), .crashed(_, let phase), .exited(_, let phase), .malformedResult(_, let phase):
            phase == .reading
        default: false
        }
    }
}
