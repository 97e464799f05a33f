import Contracts
import Dispatch
public import JSONValue
public import Storage
import Synchronization

/// An executor for blocking disk work, so that reading, copying, hashing and syncing files never blocks a thread of
/// Swift concurrency.
///
/// Work is queued in lanes with separate threads, so that a short read never waits for a long copy. The threads of a
/// lane share one queue that is fair between clients; long work returns to the queue after each step.
public final class BlockingIOExecutor: Sendable {
    /// A class of work by how long it occupies a thread.
    public enum Lane: String, CaseIterable, Sendable {
        /// A few milliseconds: at most ``FileHash/stepBytes`` are read or written.
        case short
        /// Proportional to the file size, in steps.
        case long
        /// Backups and scans of whole folders; at most one of each runs at a time.
        case upkeep

        var threads: Int {
            switch self {
            case .short: 4
            case .long, .upkeep: 2
            }
        }
    }

    /// The origin of a job, for fair scheduling.
    public typealias Source = WorkSource

    /// Default maximum number of running and waiting jobs per lane.
    public static let defaultLimit = 4096

    private let lanes: [Lane: LaneQueue]

    /// - Parameter limit: maximum number of running and waiting jobs per lane; further jobs are refused with `busy`,
    ///   except a few of each source
    public init(limit: Int = BlockingIOExecutor.defaultLimit) {
        lanes = Dictionary(uniqueKeysWithValues: Lane.allCases.map { ($0, LaneQueue($0, limit: limit)) })
    }

    /// Runs work of one step on a thread of a lane.
    ///
    /// - Throws: `busy` if the lane is full; errors of the work
    public func run<Value: Sendable>(
        _ lane: Lane = .short,
        for source: Source = .service,
        _ work: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        try await job(lane, for: source) { try await $0.run(work) }
    }

    /// Runs a job with several steps; it counts as one job until it returns.
    ///
    /// - Throws: `busy` if the lane is full; errors of the body
    public func job<Value>(
        _ lane: Lane,
        for source: Source = .service,
        _ body: (Steps) async throws -> Value
    ) async throws -> Value {
        guard let queue = lanes[lane] else { throw ErrorCode.internalError.error("there is no lane \(lane)") }
        try queue.begin(source)
        defer { queue.end(source) }
        return try await body(Steps(queue: queue, source: source))
    }

    /// Runs the steps of one job. Each step is queued behind the waiting steps of other jobs.
    public struct Steps: Sendable {
        fileprivate let queue: LaneQueue
        fileprivate let source: Source

        /// Runs one step on a thread of the lane.
        public func run<Value: Sendable>(_ step: @escaping @Sendable () throws -> Value) async throws -> Value {
            try await withCheckedThrowingContinuation { continuation in
                queue.append({ continuation.resume(with: Result { try step() }) }, from: source)
            }
        }
    }

    /// Numbers of running jobs and waiting steps, by lane.
    public var metrics: JSONObject {
        var figures: JSONObject = [:]
        for lane in Lane.allCases { figures[lane.rawValue] = lanes[lane]?.figures }
        return figures
    }
}

// MARK: Whole files

extension BlockingIOExecutor {
    /// Returns the lane for reading or writing a whole file of a size in bytes.
    public static func lane(forBytes size: Int64) -> Lane { size <= FileHash.stepBytes ? .short : .long }

    /// Returns the digest of a file's current bytes.
    public func hash(_ file: ResourceFile, for source: Source = .service) async throws -> ResourceDigest {
        let hash = FileHash(of: file)
        return try await job(Self.lane(forBytes: file.size), for: source) { steps in
            while true {
                if let digest = try await steps.run({ try hash.next() }) { return digest }
                try Task.checkCancellation()
            }
        }
    }

    /// Reads a whole file and compares its digest.
    ///
    /// - Parameter fromDisk: true to drop the file from the page cache first, so that it is read from the disk
    /// - Throws: ``StorageError/resourceChanged(_:)`` if the bytes are not those that were stored
    public func verify(_ file: ResourceFile, fromDisk: Bool = false, for source: Source = .service) async throws {
        if fromDisk { try await run(for: source) { file.dropFromPageCache() } }
        try file.require(try await hash(file, for: source))
    }

    /// Stores a copy of an open file.
    ///
    /// - Throws: ``StorageError/tooLarge(_:)`` above the limit in bytes; errors of the disk
    public func copy(
        _ file: ResourceFile,
        into store: ResourceStore,
        limit: Int64,
        verifies: Bool = false,
        for source: Source = .service
    ) async throws -> StoredResource {
        try await job(Self.lane(forBytes: file.size), for: source) { steps in
            let copy = try await steps.run { try ResourceCopy(of: file, into: store, limit: limit) }
            do {
                while try await steps.run({ try copy.next() }) { try Task.checkCancellation() }
                return try await steps.run { try copy.finish(verifies: verifies) }
            } catch {
                try await steps.run { copy.cancel() }
                throw error
            }
        }
    }

    /// Stages a copy of an open file; ``ResourceStore/makeDurable(_:)`` must follow.
    ///
    /// - Parameter check: called with the first bytes, on the same thread, before the others are read; it may refuse
    ///   the file
    /// - Throws: as ``copy(_:into:limit:verifies:for:)``; errors of the check
    public func stage(
        _ file: ResourceFile,
        into store: ResourceStore,
        limit: Int64,
        verifies: Bool = false,
        for source: Source = .service,
        beginning: Int,
        check: @escaping @Sendable (_ beginning: [UInt8]) throws -> Void
    ) async throws -> StagedResource {
        let start = { @Sendable in
            try check(try file.read(offset: 0, count: beginning))
            return try ResourceCopy(of: file, into: store, limit: limit)
        }
        return try await job(Self.lane(forBytes: file.size), for: source) { steps in
            if file.size <= FileHash.stepBytes {
                return try await steps.run {
                    let copy = try start()
                    defer { copy.cancel() }
                    while try copy.next() {}
                    return try copy.stage(verifies: verifies)
                }
            }
            let copy = try await steps.run(start)
            do {
                while try await steps.run({ try copy.next() }) { try Task.checkCancellation() }
                return try await steps.run { try copy.stage(verifies: verifies) }
            } catch {
                try await steps.run { copy.cancel() }
                throw error
            }
        }
    }

    /// Stores a reference to an open file instead of a copy of its bytes.
    ///
    /// - Throws: ``StorageError/tooLarge(_:)`` above the limit in bytes; ``StorageError/resourceChanged(_:)`` if the
    ///   file changes while it is read
    public func refer(
        to file: ResourceFile,
        at path: String,
        in store: ResourceStore,
        limit: Int64,
        verifies: Bool = false,
        for source: Source = .service
    ) async throws -> StoredResource {
        guard file.size <= limit else {
            throw StorageError.tooLarge("the file has \(file.size) bytes, the limit is \(limit)")
        }
        let identity = try FileIdentity(of: file)
        let digest = try await hash(file, for: source)
        return try await run(Self.lane(forBytes: file.size), for: source) {
            try store.refer(to: file, at: path, digest: digest, identity: identity, limit: limit, verifies: verifies)
        }
    }
}

// MARK: - Lanes

/// The queue of a lane and the threads that serve it.
final class LaneQueue: Sendable {
    typealias Step = @Sendable () -> Void

    private struct State {
        var waiting = FairQueue<WorkSource, Step>()
        /// Serial dispatch queues, each used as one thread that exists only while it has work.
        var idle: [DispatchQueue]
        var jobs = 0
        /// The numbers of running and waiting jobs of the sources that have some.
        var jobsBySource: [WorkSource: Int] = [:]
    }

    private let limit: Int
    private let state: Mutex<State>

    init(_ lane: BlockingIOExecutor.Lane, limit: Int) {
        self.limit = limit
        state = Mutex(State(idle: (0..<lane.threads).map { DispatchQueue(label: "files.\(lane.rawValue).\($0)") }))
    }

    var figures: JSON {
        let (jobs, waiting) = state.withLock { ($0.jobs, $0.waiting.count) }
        return ["jobs": JSON(jobs), "waiting": JSON(waiting)]
    }

    /// Counts a job that begins. A source with few jobs may always begin one, so that a source with many does not
    /// exclude the others.
    ///
    /// - Throws: `busy` if there are too many
    func begin(_ source: WorkSource) throws(RPCError) {
        let isFull = state.withLock { state in
            let own = state.jobsBySource[source, default: 0]
            guard state.jobs < limit || own < WorkSource.reservedCount(of: limit) else { return true }
            state.jobs += 1
            state.jobsBySource[source] = own + 1
            return false
        }
        if isFull {
            throw ErrorCode.busy.error(
                "\(limit) file operations are already running or waiting; retry later",
                ["limit": JSON(limit)]
            )
        }
    }

    func end(_ source: WorkSource) {
        state.withLock { state in
            state.jobs -= 1
            let remaining = state.jobsBySource[source, default: 1] - 1
            state.jobsBySource[source] = remaining == 0 ? nil : remaining
        }
    }

    func append(_ step: @escaping Step, from source: WorkSource) {
        let thread = state.withLock { state in
            state.waiting.append(step, from: source)
            return state.idle.popLast()
        }
        guard let thread else { return }
        thread.async { [self] in work(on: thread) }
    }

    /// Runs waiting steps until the queue is empty.
    private func work(on thread: DispatchQueue) {
        while true {
            let next = state.withLock { state in
                let step = state.waiting.popFirst()
                if step == nil { state.idle.append(thread) }
                return step
            }
            guard let next else { return }
            next()
        }
    }
}
