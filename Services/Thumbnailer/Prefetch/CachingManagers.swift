import Basics
import Contracts
import Hosting
import JSONValue
import PhotoClient
import PhotoModel
import Synchronization

/// Prepares images ahead of time for caching managers, at a lower priority than interactive requests.
final class CachingManagers: Sendable {
    private let preparer: ImagePreparer
    /// The maximum number of tasks that run at a time.
    private let maxTasks: Int
    private let clock: MonotonicClock
    private let state: Mutex<State>
    private let ticks: AsyncStream<Void>
    private let ticking: AsyncStream<Void>.Continuation

    private struct State {
        var table = CachingManagerTable()
        var running: [UInt64: CancellationSource] = [:]
        var failed = 0
    }

    /// The interval at which expired leases are removed.
    private static let sweepInterval = Duration.seconds(15)
    /// The delay after images that cannot be prepared now.
    private static let retryDelay = Duration.seconds(1)

    init(
        _ preparer: ImagePreparer,
        workers: Int,
        metrics: ThumbnailerMetrics,
        clock: MonotonicClock = .system
    ) {
        self.preparer = preparer
        self.clock = clock
        // One asset is looked up while another is rendered.
        maxTasks = workers + 1
        state = Mutex(State())
        (ticks, ticking) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        metrics.all.section("caching") { [self] in
            state.withLock { state in
                let metrics = state.table.metrics
                return [
                    "managers": JSON(metrics.managers), "images": JSON(metrics.entries),
                    "waiting": JSON(metrics.waiting),
                    "preparing": JSON(metrics.working), "dropped": JSON(state.table.dropped),
                    "failed": JSON(state.failed),
                ]
            }
        }
    }

    // MARK: Requests

    func open(_ request: OpenCache, identity: String) throws(RPCError) -> OpenCache.Result {
        var random = SystemRandomNumberGenerator()
        let name = "c" + random.nextHexadecimal(byteCount: 8)
        let now = clock.nowMicroseconds()
        return try change { table throws(RPCError) in
            try table.open(name, identity: identity, allowsHighQuality: request.allowsHighQuality, now: now)
            return OpenCache.Result(cache: name, limit: table.limit)
        }
    }

    func configure(_ request: ConfigureCache, identity: String) throws(RPCError) {
        try update(request.cache, identity) { table in
            table.configure(request.cache, allowsHighQuality: request.allowsHighQuality)
            return .init()
        }
    }

    func start(_ request: StartCaching, identity: String) throws(RPCError) {
        for asset in request.images.assets.prefix(1) { try RenditionPlan.check(request.images.request(asset)) }
        try update(request.cache, identity) { $0.start(request.cache, request.images.assets, request.images.options) }
        ticking.yield()
    }

    func stop(_ request: StopCaching, identity: String) throws(RPCError) {
        for asset in request.images.assets.prefix(1) { try RenditionPlan.check(request.images.request(asset)) }
        try update(request.cache, identity) { $0.stop(request.cache, request.images.assets, request.images.options) }
    }

    func stopAll(_ request: StopAllCaching, identity: String) throws(RPCError) {
        try update(request.cache, identity) { $0.stopAll(request.cache) }
    }

    func status(_ request: CacheStatus, identity: String) throws(RPCError) -> CacheStatus.Result {
        let now = clock.nowMicroseconds()
        return try change { table throws(RPCError) in
            try table.renewLease(of: request.cache, identity: identity, now: now)
            return table.status(request.cache)
        }
    }

    func close(_ request: CloseCache, identity: String) throws(RPCError) {
        try update(request.cache, identity) { $0.close(request.cache) }
    }

    /// Closes all caching managers of an identity that may no longer read.
    func closeAll(of identity: String) {
        let removals = state.withLock { state in state.table.names(of: identity).map { state.table.close($0) } }
        for removal in removals { perform(removal) }
    }

    /// Returns the state of a requested image in the list of the caching manager that the request names.
    func preparationState(of request: ImageRequest, in name: String, identity: String) throws(RPCError)
        -> CachingManagerTable.PreparationState?
    {
        let now = clock.nowMicroseconds()
        let entry = CachingManagerTable.Entry(asset: request.asset, options: CachedImages(assets: [], like: request))
        return try change { table throws(RPCError) in
            try table.renewLease(of: name, identity: identity, now: now)
            return table.preparationState(entry, in: name)
        }
    }

    /// Renews the lease of a caching manager, changes its list, and carries out the removal.
    private func update(
        _ name: String,
        _ identity: String,
        _ body: (inout CachingManagerTable) -> CachingManagerTable.Removal
    ) throws(RPCError) {
        let now = clock.nowMicroseconds()
        let removal = try change { table throws(RPCError) in
            try table.renewLease(of: name, identity: identity, now: now)
            return body(&table)
        }
        perform(removal)
    }

    private func change<Value>(
        _ body: (inout CachingManagerTable) throws(RPCError) -> Value
    ) throws(RPCError) -> Value {
        try state.withLock { state throws(RPCError) in try body(&state.table) }
    }

    private func perform(_ removal: CachingManagerTable.Removal) {
        let cancellations = state.withLock { state in removal.tasks.compactMap { state.running[$0] } }
        for cancellation in cancellations { cancellation.cancel() }
        for plan in removal.plans { preparer.renditions.release(plan) }
    }

    // MARK: Work

    /// Prepares images until the task is cancelled.
    func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask {
                for await _ in TaskDelay.ticks(every: Self.sweepInterval) {
                    let now = self.clock.nowMicroseconds()
                    self.perform(self.state.withLock { $0.table.expire(now: now) })
                }
            }
            for await _ in ticks {
                while let (task, cancellation) = begin() {
                    group.addTask { await self.perform(task, cancellation) }
                }
            }
            group.cancelAll()
        }
    }

    private func begin() -> (CachingManagerTable.PrefetchTask, CancellationSource)? {
        state.withLock { state in
            guard state.running.count < maxTasks, let task = state.table.next(maxCount: RenditionProvider.batchSize)
            else {
                return nil
            }
            let cancellation = CancellationSource()
            state.running[task.number] = cancellation
            return (task, cancellation)
        }
    }

    private func perform(_ task: CachingManagerTable.PrefetchTask, _ cancellation: CancellationSource) async {
        // Nil if the images cannot be prepared now.
        let prepared = await cancellation.run { () -> [CachedImages: RenditionPlan]? in
            do throws(RPCError) {
                return try await self.preparer.prepare(
                    task.asset,
                    task.optionSets,
                    allowsHighQuality: task.allowsHighQuality
                )
            } catch {
                guard error.isTransient else { return [:] }
                // The catalog is probably being restarted.
                await TaskDelay.retryDelay(Self.retryDelay)
                return nil
            }
        }
        let isCancelled = cancellation.isCancelled || Task.isCancelled
        let removal = state.withLock { state -> CachingManagerTable.Removal in
            state.running[task.number] = nil
            guard let prepared else {
                state.table.postpone(task)
                return CachingManagerTable.Removal()
            }
            if !isCancelled { state.failed += task.optionSets.count - prepared.count }
            return state.table.finish(task, plans: prepared)
        }
        perform(removal)
        ticking.yield()
    }
}

extension CachedImages {
    /// The options that must be equal, without the assets.
    var options: CachedImages {
        var options = self
        options.assets = []
        return options
    }
}
