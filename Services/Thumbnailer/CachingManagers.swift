import Basics
import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoModel
import Synchronization

/// Prepares images ahead of time for caching managers, at a lower priority than interactive requests.
final class CachingManagers: Sendable {
    private let source: AssetSource
    private let desk: PictureDesk
    private let width: Int
    private let clock: MonotonicClock
    private let state: Mutex<State>
    private let ticks: AsyncStream<Void>
    private let ticking: AsyncStream<Void>.Continuation

    private typealias Work = Task<[CacheTable.Shape: RenditionPlan], Never>

    private struct State {
        var table = CacheTable()
        var running: [UInt64: Work] = [:]
        var underWay = 0
        /// Tasks stopped before they were registered as running.
        var stoppedEarly: Set<UInt64> = []
        var failed = 0
    }

    /// The interval at which expired leases are removed.
    private static let sweep = Duration.seconds(15)

    init(
        source: AssetSource,
        desk: PictureDesk,
        workers: Int,
        figures: PictureFigures,
        clock: MonotonicClock = .system
    ) {
        self.source = source
        self.desk = desk
        self.clock = clock
        // One asset is looked up while another is rendered.
        width = workers + 1
        state = Mutex(State())
        (ticks, ticking) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        figures.all.section("caching") { [self] in
            state.withLock { state in
                let figures = state.table.figures
                return [
                    "managers": JSON(figures.managers), "images": JSON(figures.entries),
                    "waiting": JSON(figures.waiting),
                    "preparing": JSON(figures.working), "dropped": JSON(state.table.dropped),
                    "failed": JSON(state.failed),
                ]
            }
        }
    }

    // MARK: Requests

    func open(_ request: OpenCache, owner: String) throws(RPCError) -> OpenCache.Result {
        var random = SystemRandomNumberGenerator()
        let name = "c" + random.nextHexadecimal(byteCount: 8)
        let now = clock.nowMicroseconds()
        return try change { table throws(RPCError) in
            try table.open(name, owner: owner, allowsHighQuality: request.allowsHighQuality, now: now)
            return OpenCache.Result(cache: name, limit: table.limit)
        }
    }

    func configure(_ request: ConfigureCache, owner: String) throws(RPCError) {
        try using(request.cache, owner) { table in
            table.configure(request.cache, allowsHighQuality: request.allowsHighQuality)
            return .init()
        }
    }

    func start(_ request: StartCaching, owner: String) throws(RPCError) {
        for asset in request.images.assets.prefix(1) { try RenditionPlan.check(request.images.request(asset)) }
        try using(request.cache, owner) { $0.start(request.cache, request.images.assets, request.images.shape) }
        ticking.yield()
    }

    func stop(_ request: StopCaching, owner: String) throws(RPCError) {
        try using(request.cache, owner) { $0.stop(request.cache, request.images.assets, request.images.shape) }
    }

    func stopAll(_ request: StopAllCaching, owner: String) throws(RPCError) {
        try using(request.cache, owner) { $0.stopAll(request.cache) }
    }

    func status(_ request: CacheStatus, owner: String) throws(RPCError) -> CacheStatus.Result {
        let now = clock.nowMicroseconds()
        return try change { table throws(RPCError) in
            try table.use(request.cache, owner: owner, now: now)
            return table.status(request.cache)
        }
    }

    func close(_ request: CloseCache, owner: String) throws(RPCError) {
        try using(request.cache, owner) { $0.close(request.cache) }
    }

    /// Returns the state of a requested image in the list of the caching manager that the request names.
    func standing(of request: ImageRequest, in name: String, owner: String) throws(RPCError) -> CacheTable.Standing? {
        let now = clock.nowMicroseconds()
        let entry = CacheTable.Entry(asset: request.asset, shape: CachedImages(request).shape)
        return try change { table throws(RPCError) in
            try table.use(name, owner: owner, now: now)
            return table.standing(entry, in: name)
        }
    }

    private func using(
        _ name: String,
        _ owner: String,
        _ body: (inout CacheTable) -> CacheTable.Leaving
    ) throws(RPCError) {
        let now = clock.nowMicroseconds()
        let leaving = try change { table throws(RPCError) in
            try table.use(name, owner: owner, now: now)
            return body(&table)
        }
        carryOut(leaving)
    }

    private func change<Value>(
        _ body: (inout CacheTable) throws(RPCError) -> Value
    ) throws(RPCError) -> Value {
        try state.withLock { state throws(RPCError) in try body(&state.table) }
    }

    private func carryOut(_ leaving: CacheTable.Leaving) {
        let tasks = state.withLock { state in
            leaving.tasks.compactMap { number -> Work? in
                guard let task = state.running[number] else {
                    state.stoppedEarly.insert(number)
                    return nil
                }
                return task
            }
        }
        for task in tasks { task.cancel() }
        for plan in leaving.plans { desk.release(plan) }
    }

    // MARK: Work

    /// Prepares images until the task is cancelled.
    func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask {
                for await _ in Waiting.ticks(every: Self.sweep) {
                    let now = self.clock.nowMicroseconds()
                    self.carryOut(self.state.withLock { $0.table.expire(now: now) })
                }
            }
            for await _ in ticks {
                while let task = begin() { group.addTask { await self.carryOut(task) } }
            }
            group.cancelAll()
        }
    }

    private func begin() -> CacheTable.Task? {
        state.withLock { state in
            guard state.underWay < width, let task = state.table.next(most: PictureDesk.batch) else { return nil }
            state.underWay += 1
            return task
        }
    }

    private func carryOut(_ task: CacheTable.Task) async {
        // An unstructured task, so that it can be cancelled by its number.
        let work = Task { await self.prepare(task) }
        let isStopped = state.withLock { state in
            state.running[task.number] = work
            return state.stoppedEarly.remove(task.number) != nil
        }
        if isStopped { work.cancel() }
        let prepared = await withTaskCancellationHandler {
            await work.value
        } onCancel: {
            work.cancel()
        }
        let leaving = state.withLock { state in
            state.underWay -= 1
            state.running[task.number] = nil
            state.stoppedEarly.remove(task.number)
            if !work.isCancelled { state.failed += task.shapes.count - prepared.count }
            return state.table.finish(task, plans: prepared)
        }
        carryOut(leaving)
        ticking.yield()
    }

    private func prepare(_ task: CacheTable.Task) async -> [CacheTable.Shape: RenditionPlan] {
        guard let answer = try? await source.assets([task.asset], atLeast: nil), let asset = answer.assets[task.asset]
        else { return [:] }
        var plans: [(shape: CacheTable.Shape, plan: RenditionPlan)] = []
        for shape in task.shapes {
            guard let plan = try? RenditionPlan(shape.request(task.asset), of: asset),
                answer.refusal(of: plan, asset) == nil
            else { continue }
            plans.append((shape, plan))
        }
        var prepared: [CacheTable.Shape: RenditionPlan] = [:]
        if task.allowsHighQuality {
            let failures = await desk.prepare(plans.map(\.plan))
            for (entry, failure) in zip(plans, failures) where failure == nil { prepared[entry.shape] = entry.plan }
        } else {
            for entry in plans {
                if await desk.low(entry.plan) == nil { _ = await desk.quick(entry.plan) }
                prepared[entry.shape] = entry.plan
            }
        }
        return prepared
    }
}

extension CachedImages {
    /// The options that must be equal, without the assets.
    var shape: CachedImages {
        var shape = self
        shape.assets = []
        return shape
    }

    /// The options of a request, for comparison with prepared images.
    init(_ request: ImageRequest) {
        self.init(assets: [request.asset], targetSize: request.targetSize)
        contentMode = request.contentMode
        resizeMode = request.resizeMode
        normalizedCropRect = request.normalizedCropRect
        version = request.version
        format = request.format
        quality = request.quality
    }
}
