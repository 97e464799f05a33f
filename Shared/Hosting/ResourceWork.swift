/// Has workers do jobs over stored bytes, and reports bytes that do harm.
///
/// A worker that ends in the middle of a job may have been ended by somebody else (the system was short of memory): the
/// job is done once more by another. Bytes are to blame only for what happens while they are read: a request that asks
/// for too much fails, and anybody else still gets the picture.
public struct ResourceWork: Sendable {
    /// What bytes did, and how often one after the other.
    public struct Harm: Sendable, Equatable {
        public var digest: String
        public var failure: WorkerFailure
        public var failures: Int
    }

    /// How often a job is begun before the bytes are to blame.
    public static let attempts = 2

    private let pool: WorkerPool
    private let report: @Sendable (Harm) async -> Void

    /// - Parameters:
    ///   - pool: the workers
    ///   - report: told of harm before the job's error is thrown, so that who asks next finds it known
    public init(_ pool: WorkerPool, report: @escaping @Sendable (Harm) async -> Void) {
        self.pool = pool
        self.report = report
    }

    /// Has a job done.
    ///
    /// - Parameters:
    ///   - job: what to do
    ///   - digest: the bytes that it opens
    ///   - priority: which waiting jobs it may pass
    /// - Throws: ``WorkerFailure``, as ``WorkerPool/run(_:priority:wallSeconds:)``
    public func run(_ job: WorkerJob, over digest: String, priority: WorkerPriority = .normal)
        async throws(WorkerFailure) -> WorkerResult
    {
        var (ends, failures) = (0, 0)
        while true {
            do throws(WorkerFailure) {
                return try await pool.run(job, priority: priority)
            } catch {
                ends += error.isEnd ? 1 : 0
                failures += error.isHarm ? 1 : 0
                if error.isEnd, ends < Self.attempts { continue }
                guard failures > 0 else { throw error }
                await report(Harm(digest: digest, failure: error, failures: failures))
                throw error
            }
        }
    }
}

extension WorkerFailure {
    /// The worker ended in the middle, by itself or by a signal.
    fileprivate var isEnd: Bool {
        switch self {
        case .crashed, .killed, .exited, .malformedResult: true
        default: false
        }
    }

    /// The bytes took a worker down while it read them; a job's own refusal and a result that is too large did none.
    var isHarm: Bool {
        switch self {
        case .timedOut(_, let phase), .crashed(_, let phase), .exited(_, let phase), .malformedResult(_, let phase):
            phase == .reading
        default: false
        }
    }
}
