import Contracts
import Dispatch
public import JSONValue
public import Messaging
public import Storage
import Synchronization

/// Threads for what blocks on the disk: reading, copying, hashing and syncing files never holds a thread of Swift's.
///
/// Work waits in a lane, and each lane has threads of its own: a short read never waits for a long copy. Within a lane
/// the threads pull from one queue, in which the connections take turns; long work returns to it after each step.
public final class FileCrew: Sendable {
    /// How long the work holds a thread.
    public enum Lane: String, CaseIterable, Sendable {
        /// A few milliseconds: at most ``FileHash/stepBytes`` are read or written.
        case short
        /// As long as the file is large, in steps.
        case long
        /// Backups and searches of whole folders, in which there is one of each at a time.
        case upkeep

        var threads: Int {
            switch self {
            case .short: 4
            case .long, .upkeep: 2
            }
        }
    }

    /// On whose behalf something is done; sources take turns.
    public enum Source: Hashable, Sendable {
        case connection(ConnectionID)
        case identity(String)
        /// The service's own work.
        case service
    }

    /// Jobs of one lane that may be under way or waiting.
    public static let defaultLimit = 4096

    private let lanes: [Lane: LaneQueue]

    /// - Parameter limit: jobs of one lane that may be under way or waiting; the next one is refused as busy
    public init(limit: Int = FileCrew.defaultLimit) {
        lanes = Dictionary(uniqueKeysWithValues: Lane.allCases.map { ($0, LaneQueue($0, limit: limit)) })
    }

    /// Does something on a thread of a lane.
    ///
    /// - Throws: `busy` where too much is waiting; what the work throws
    public func run<Value: Sendable>(
        _ lane: Lane = .short,
        for source: Source = .service,
        _ work: @escaping @Sendable () throws -> Value
    ) async throws -> Value {
        try await job(lane, for: source) { try await $0.run(work) }
    }

    /// Does something that has several steps; it counts as one job until it returns.
    ///
    /// - Throws: `busy` where too much is waiting; what the body throws
    public func job<Value>(
        _ lane: Lane,
        for source: Source = .service,
        _ body: (Steps) async throws -> Value
    ) async throws -> Value {
        guard let queue = lanes[lane] else { throw Refusal.internalError.error("there is no lane \(lane)") }
        try queue.begin()
        defer { queue.end() }
        return try await body(Steps(queue: queue, source: source))
    }

    /// Runs the steps of one job, each behind what other jobs have waiting.
    public struct Steps: Sendable {
        fileprivate let queue: LaneQueue
        fileprivate let source: Source

        /// Does one step on a thread of the lane.
        public func run<Value: Sendable>(_ step: @escaping @Sendable () throws -> Value) async throws -> Value {
            try await withCheckedThrowingContinuation { continuation in
                queue.append({ continuation.resume(with: Result { try step() }) }, from: source)
            }
        }
    }

    /// Jobs under way and steps waiting, by lane.
    public var figures: JSONObject {
        var figures: JSONObject = [:]
        for lane in Lane.allCases { figures[lane.rawValue] = lanes[lane]?.figures }
        return figures
    }
}

/// One queue and the threads that pull from it.
private final class LaneQueue: Sendable {
    typealias Step = @Sendable () -> Void

    private struct State {
        var waiting = FairQueue<FileCrew.Source, Step>()
        /// A serial queue of Dispatch is a thread that is there when it is needed.
        var idle: [DispatchQueue]
        var jobs = 0
    }

    private let limit: Int
    private let state: Mutex<State>

    init(_ lane: FileCrew.Lane, limit: Int) {
        self.limit = limit
        state = Mutex(State(idle: (0..<lane.threads).map { DispatchQueue(label: "files.\(lane.rawValue).\($0)") }))
    }

    var figures: JSON {
        let (jobs, waiting) = state.withLock { ($0.jobs, $0.waiting.count) }
        return ["jobs": JSON(jobs), "waiting": JSON(waiting)]
    }

    func begin() throws(RPCError) {
        let isFull = state.withLock { state in
            guard state.jobs < limit else { return true }
            state.jobs += 1
            return false
        }
        if isFull {
            throw Refusal.busy.error(
                "\(limit) reads and writes of files are under way or waiting already; ask again later",
                ["limit": JSON(limit)]
            )
        }
    }

    func end() { state.withLock { $0.jobs -= 1 } }

    func append(_ step: @escaping Step, from source: FileCrew.Source) {
        let thread = state.withLock { state in
            state.waiting.append(step, from: source)
            return state.idle.popLast()
        }
        guard let thread else { return }
        thread.async { [self] in work(on: thread) }
    }

    /// Does what is waiting, until nothing is.
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

// MARK: Whole files

extension FileCrew {
    /// The lane for something that reads or writes a whole file of a size.
    public static func lane(forBytes size: Int64) -> Lane { size <= FileHash.stepBytes ? .short : .long }

    /// The digest of a file's bytes as they are now.
    public func hash(_ file: ResourceFile, for source: Source = .service) async throws -> ResourceDigest {
        let hash = FileHash(of: file)
        return try await job(Self.lane(forBytes: file.size), for: source) { steps in
            while true {
                if let digest = try await steps.run({ try hash.next() }) { return digest }
                try Task.checkCancellation()
            }
        }
    }

    /// Reads everything once and compares its hash.
    ///
    /// - Parameter fromDisk: not from what the kernel still has in memory.
    /// - Throws: ``StorageError/resourceChanged(_:)`` where the bytes are not those that were stored
    public func verify(_ file: ResourceFile, fromDisk: Bool = false, for source: Source = .service) async throws {
        if fromDisk { try await run(for: source) { file.dropFromPageCache() } }
        try file.require(try await hash(file, for: source))
    }

    /// Stores a copy of an open file.
    ///
    /// - Throws: ``StorageError/tooLarge(_:)`` beyond the limit, errors of the disk
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

    /// Lets an open file stand for its bytes, without copying them.
    ///
    /// - Throws: ``StorageError/tooLarge(_:)`` beyond the limit, ``StorageError/resourceChanged(_:)`` for a file that
    ///   changes while it is read
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
