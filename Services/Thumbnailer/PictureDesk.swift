import Contracts
import Hosting
import JSONValue
import Logging
import Messaging
import PhotoModel
import Storage

/// Provides renditions from memory, from disk, or from a worker, in this order, and renders each only once.
final class PictureDesk: Sendable {
    /// The version of the rendering code, part of every cache key: renditions made by an older version are never
    /// served.
    static let renderer = "3"
    /// The most renditions made from one decode.
    static let batch = 8

    /// A rendition and where it was found.
    struct Delivery: Sendable {
        var rendition: StoredRendition
        var reason: CacheReason

        var isCacheHit: Bool { reason == .memory || reason == .disk }
    }

    private let renderer: Renderer
    private let memory: RenditionMemory<RenditionPlan>
    private let clock: MonotonicClock
    private let disk: RenditionStore
    private let work: SharedWork<RenditionPlan, String, StoredRendition>
    private let figures: PictureFigures
    let previews: PreviewDesk

    init(
        renderer: Renderer,
        memory: RenditionMemory<RenditionPlan>,
        disk: RenditionStore,
        limit: Int,
        workers: Int,
        figures: PictureFigures,
        clock: MonotonicClock = .system,
        logger: Logger
    ) {
        self.renderer = renderer
        self.memory = memory
        self.disk = disk
        self.figures = figures
        self.clock = clock
        previews = PreviewDesk(renderer: renderer, limit: limit, figures: figures)
        work = SharedWork(limit: limit, width: workers, batch: Self.batch, group: \.digest) { plans in
            let outcomes = await figures.timing { await renderer.pictures(plans) }
            for (plan, outcome) in zip(plans, outcomes) {
                guard case .success(let rendition) = outcome else { continue }
                memory.insert(rendition, plan, now: clock.nowMicroseconds())
                if let problem = disk.insert(rendition, RenditionKey(plan, renderer: Self.renderer)) {
                    logger.warning("a rendition was not written to the disk cache", metadata: ["reason": "\(problem)"])
                }
            }
            return outcomes
        }
        figures.all.section("cache") { [memory, disk, work] in
            let held = memory.size
            let kept = disk.figures
            let flights = work.figures
            return [
                "memoryEntries": JSON(held.count), "memoryBytes": .int(held.bytes), "diskEntries": JSON(kept.count),
                "diskBytes": .int(kept.bytes), "diskDamaged": JSON(kept.damaged), "diskEvicted": JSON(kept.evicted),
                "underWay": JSON(flights.count), "due": JSON(flights.due), "shared": JSON(flights.joins),
            ]
        }
        figures.all.section("workers") { [renderer] in renderer.figures() }
    }

    /// Renders queued requests until the service stops.
    func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.work.run() }
            group.addTask { await self.previews.run() }
        }
    }

    /// Returns the rendition if it is cached in memory or on disk.
    func held(_ plan: RenditionPlan, priority: WorkPriority = .people) -> Delivery? {
        let now = clock.nowMicroseconds()
        if let (rendition, isToBeReported) = memory.use(plan, now: now) {
            if isToBeReported { disk.touch(RenditionKey(plan, renderer: Self.renderer)) }
            if priority == .people { figures.memoryHits.add() }
            return Delivery(rendition: rendition, reason: .memory)
        }
        if let rendition = disk.rendition(RenditionKey(plan, renderer: Self.renderer)) {
            memory.insert(rendition, plan, now: now)
            if priority == .people { figures.diskHits.add() }
            return Delivery(rendition: rendition, reason: .disk)
        }
        if priority == .people { figures.misses.add() }
        return nil
    }

    /// Returns the rendition if it is in memory, has at most `maxBytes`, and its use need not be reported to the disk
    /// cache.
    func heldInMemory(_ plan: RenditionPlan, maxBytes: Int) -> Delivery? {
        guard let (rendition, _) = memory.use(plan, now: clock.nowMicroseconds(), mayReport: false),
            rendition.bytes.count <= maxBytes
        else { return nil }
        figures.memoryHits.add()
        return Delivery(rendition: rendition, reason: .memory)
    }

    /// Returns a rendition, cached or rendered.
    ///
    /// The caller has checked that the asset exists and that the plan is of its current content revision.
    func picture(_ plan: RenditionPlan, priority: WorkPriority = .people) async throws(RPCError) -> Delivery {
        if let held = held(plan, priority: priority) { return held }
        return try await made(plan, priority: priority)
    }

    /// Renders a rendition that is not cached.
    func made(_ plan: RenditionPlan, priority: WorkPriority = .people) async throws(RPCError) -> Delivery {
        let isShared = work.isUnderWay(plan)
        let rendition = try await work.value(plan, priority: priority)
        return Delivery(rendition: rendition, reason: isShared ? .shared : .rendered)
    }

    /// Makes sure that renditions of one asset are cached, from one decode.
    func prepare(_ plans: [RenditionPlan]) async -> [RPCError?] {
        let missing = plans.filter { held($0, priority: .prefetch) == nil }
        let outcomes = await work.values(missing)
        var failures: [RenditionPlan: RPCError] = [:]
        for (plan, outcome) in zip(missing, outcomes) {
            if case .failure(let error) = outcome { failures[plan] = error }
        }
        return plans.map { failures[$0] }
    }

    /// Removes a rendition that was prepared but not requested from memory.
    func release(_ plan: RenditionPlan) { memory.remove(plan) }

    // MARK: Degraded images

    /// Returns a degraded image to show meanwhile: a smaller cached rendition, or the preview embedded in the file.
    func low(_ plan: RenditionPlan) async -> Delivery? {
        for shape in previews.smaller(plan) {
            let rendition =
                memory.rendition(shape) ?? disk.rendition(RenditionKey(shape, renderer: Self.renderer))
            if let rendition {
                return Delivery(rendition: rendition, reason: .smaller)
            }
        }
        return await previews.embedded(plan).map { Delivery(rendition: $0, reason: .preview) }
    }

    /// Returns a rendition from a cheap decode; nil if the format has none.
    func quick(_ plan: RenditionPlan) async -> Delivery? {
        await previews.quick(plan).map { Delivery(rendition: $0, reason: .quick) }
    }

    /// Returns a file's type, orientation and size without decoding it.
    func inspect(_ digest: String) async throws(RPCError) -> PictureFacts { try await renderer.inspect(digest) }

    /// Opens the stored bytes.
    func open(_ digest: String) throws(RPCError) -> ResourceFile { try renderer.resources.open(digest) }

    /// Draws a contact sheet from renditions, in the order of the labels.
    func sheet(_ pictures: [StoredRendition?], columns: Int, cell: Int, labels: [String]) async throws(RPCError)
        -> StoredRendition
    {
        let plan = SheetPlan(
            columns: columns,
            cell: cell,
            labels: labels,
            lengths: pictures.map { $0?.bytes.count ?? 0 }
        )
        return try await renderer.sheet(plan, pictures.flatMap { $0?.bytes ?? [] })
    }
}
