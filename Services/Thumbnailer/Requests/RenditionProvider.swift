import Basics
import Contracts
import Hosting
import JSONValue
import Logging
import Messaging
import PhotoModel
import Storage

/// Provides renditions from memory, from disk, or from a worker, in this order, and renders each only once.
final class RenditionProvider: Sendable {
    /// The version of the rendering code, which is part of every cache key. Renditions of an older version are never
    /// served.
    static let rendererVersion = "9"
    /// The maximum number of renditions of one decode.
    static let batchSize = 8
    /// The maximum number of attempts for an image whose original is removed from this machine before it is opened.
    private static let maxAttempts = 3

    private let renderer: Renderer
    private let memory: RenditionMemoryCache<RenditionPlan>
    private let clock: MonotonicClock
    let disk: RenditionDiskCache
    private let writer: RenditionWriter
    private let work: CoalescingWorkQueue<RenditionPlan, String, EncodedRendition>
    private let metrics: ThumbnailerMetrics
    let previews: PreviewProvider

    init(
        renderer: Renderer,
        memory: RenditionMemoryCache<RenditionPlan>,
        disk: RenditionDiskCache,
        limit: Int,
        workers: Int,
        metrics: ThumbnailerMetrics,
        clock: MonotonicClock = .system,
        logger: Logger
    ) {
        self.renderer = renderer
        self.memory = memory
        self.disk = disk
        self.metrics = metrics
        self.clock = clock
        previews = PreviewProvider(renderer: renderer, limit: limit, metrics: metrics)
        let writer = RenditionWriter(disk, clock: clock, logger: logger)
        self.writer = writer
        work = CoalescingWorkQueue(limit: limit, maxBatches: workers, batchSize: Self.batchSize, group: \.digest) {
            plans in
            // The rendition may have been cached after the caller looked it up and before the work was queued.
            let cached = plans.map(memory.rendition)
            let missing = zip(plans, cached).filter { $1 == nil }.map(\.0)
            var outcomes = missing.isEmpty ? [] : await metrics.timing { await renderer.renditions(missing) }
            for (plan, outcome) in zip(missing, outcomes) {
                guard case .success(let rendition) = outcome else { continue }
                memory.insert(rendition, plan, now: clock.nowMicroseconds())
                writer.write(rendition, RenditionKey(plan, rendererVersion: Self.rendererVersion))
            }
            for (index, rendition) in cached.enumerated() {
                if let rendition { outcomes.insert(.success(rendition), at: index) }
            }
            return outcomes
        }
        metrics.all.section("cache") { [memory, disk, work, writer] in
            let memorySize = memory.size
            let diskMetrics = disk.metrics
            let workMetrics = work.metrics
            let failures = writer.failures
            var json: JSONObject = [
                "memoryEntries": JSON(memorySize.count), "memoryBytes": .int(memorySize.bytes),
                "diskEntries": JSON(diskMetrics.count), "diskBytes": .int(diskMetrics.bytes),
                "diskDamaged": JSON(diskMetrics.damaged), "diskEvicted": JSON(diskMetrics.evicted),
                "diskFailures": JSON(failures.count),
                "underWay": JSON(workMetrics.count), "due": JSON(workMetrics.due),
                "shared": JSON(workMetrics.joinCount),
            ]
            if let problem = failures.problem { json["diskProblem"] = .string(problem) }
            return json
        }
        metrics.all.section("workers") { [renderer] in renderer.metrics() }
    }

    /// Renders queued requests until the service stops.
    func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.work.run() }
            group.addTask { await self.previews.run() }
        }
    }

    /// Returns the rendition if it is cached in memory or on disk.
    func cached(_ plan: RenditionPlan, urgency: RequestUrgency = .interactive) -> ProvidedRendition? {
        let now = clock.nowMicroseconds()
        if let (rendition, shouldReport) = memory.use(plan, now: now) {
            if shouldReport { disk.touch(RenditionKey(plan, rendererVersion: Self.rendererVersion)) }
            if urgency == .interactive { metrics.memoryHits.add() }
            return ProvidedRendition(rendition, .memory, for: plan.requester)
        }
        if let rendition = disk.rendition(RenditionKey(plan, rendererVersion: Self.rendererVersion)) {
            memory.insert(rendition, plan, now: now)
            if urgency == .interactive { metrics.diskHits.add() }
            return ProvidedRendition(rendition, .disk, for: plan.requester)
        }
        if urgency == .interactive { metrics.misses.add() }
        return nil
    }

    /// Returns the rendition if it is in memory, has at most `maxBytes`, and its use need not be reported to the disk
    /// cache.
    func cachedInMemory(_ plan: RenditionPlan, maxBytes: Int) -> ProvidedRendition? {
        guard let (rendition, _) = memory.use(plan, now: clock.nowMicroseconds(), mayReport: false),
            rendition.bytes.count <= maxBytes
        else { return nil }
        metrics.memoryHits.add()
        return ProvidedRendition(rendition, .memory, for: plan.requester)
    }

    /// Queues a render, or joins one that is queued or running, and waits for it.
    private func queued(_ plan: RenditionPlan) async throws(RPCError) -> ProvidedRendition {
        let isShared = work.isUnderWay(plan)
        let rendition = try await work.value(plan, urgency: .interactive, owner: plan.requester.limitedClient)
        return ProvidedRendition(rendition, isShared ? .shared : .rendered, for: plan.requester)
    }

    /// Renders a rendition that is not cached. Makes sure first that the original is on this machine, and again if it
    /// was removed before it was opened, because other files needed its space.
    ///
    /// The caller has checked that the asset exists and that the plan is of its current content revision.
    ///
    /// - Parameter progress: the request whose client receives the progress of a download; nil for none
    func rendered(
        _ plan: RenditionPlan,
        from originals: OriginalFiles,
        of asset: ObjectID,
        isNetworkAccessAllowed: Bool,
        _ progress: RequestContext? = nil
    ) async throws(RPCError) -> ProvidedRendition {
        var attemptsLeft = Self.maxAttempts
        while true {
            // For a local original this only records its use.
            try await originals.require(
                plan.digest,
                of: asset,
                isNetworkAccessAllowed: isNetworkAccessAllowed,
                progress
            )
            let wasLocal = originals.isLocal(plan.digest)
            attemptsLeft -= 1
            do throws(RPCError) {
                return try await queued(plan)
            } catch {
                let wasRemoved = error.errorCode == .missingResource && wasLocal && !originals.isLocal(plan.digest)
                guard wasRemoved, attemptsLeft > 0 else { throw error }
            }
        }
    }

    /// Makes sure that renditions of one asset are cached, from one decode.
    ///
    /// - Parameter requiresDisk: true if those that are only in memory count as missing
    /// - Returns: the reason for each that is missing, nil for the others. One that exceeds the whole budget of the
    ///   disk cache is not missing.
    func prepare(_ plans: [RenditionPlan], requiresDisk: Bool = false) async -> [RPCError?] {
        let found = plans.map { cached($0, urgency: .prefetch)?.rendition }
        let missing = zip(plans, found).filter { $1 == nil }.map(\.0)
        var outcomes = await work.values(missing).makeIterator()
        var failures: [RPCError?] = []
        for (plan, rendition) in zip(plans, found) {
            let outcome: Result<EncodedRendition, RPCError> =
                if let rendition { .success(rendition) } else { outcomes.next() ?? .failure(.noRendition) }
            switch outcome {
            case .success(let rendition): failures.append(requiresDisk ? writeUnlessOnDisk(rendition, plan) : nil)
            case .failure(let error): failures.append(error)
            }
        }
        return failures
    }

    /// Writes a rendition to the disk cache if it is not there, because it was evicted or could not be written before.
    ///
    /// - Returns: the error if it cannot be written now
    private func writeUnlessOnDisk(_ rendition: EncodedRendition, _ plan: RenditionPlan) -> RPCError? {
        let key = RenditionKey(plan, rendererVersion: Self.rendererVersion)
        guard !disk.contains(key), let problem = writer.write(rendition, key) else { return nil }
        return .renditionNotWritten(problem)
    }

    /// Removes from memory a rendition that was prepared but not requested.
    func release(_ plan: RenditionPlan) { memory.remove(plan) }

    // MARK: Degraded images

    /// Returns a degraded image to show meanwhile: a smaller cached rendition, the preview embedded in the file, or
    /// else an image from a quick decode. It has at least a quarter of the requested size in both directions; nil if
    /// there is none, or if the requested image takes hardly longer.
    func degraded(
        _ plan: RenditionPlan,
        of source: AssetResource,
        urgency: RequestUrgency = .interactive
    ) async -> ProvidedRendition? {
        let goal = DegradedImageGoal(plan, of: source)
        // To a client with a limited grant the choice must not reveal what is cached, so it depends only on the file.
        let sharesCache = plan.requester.limitedClient == nil
        if let goal {
            let smaller = sharesCache ? previews.smaller(plan) : []
            for smallerPlan in smaller {
                let rendition =
                    memory.rendition(smallerPlan)
                    ?? disk.rendition(RenditionKey(smallerPlan, rendererVersion: Self.rendererVersion))
                if let rendition, goal.isLargeEnough(rendition) { return ProvidedRendition(rendition, .smaller) }
            }
            if let preview = await previews.embedded(plan, urgency: urgency), goal.isLargeEnough(preview) {
                return ProvidedRendition(preview, .preview)
            }
        }
        guard goal?.needsAllPixels ?? true || sharesCache && previews.hasQuickDecode(plan) else { return nil }
        return await quickDecode(plan, urgency: urgency)
    }

    /// Returns a rendition from a quick decode; nil if the format has none.
    func quickDecode(_ plan: RenditionPlan, urgency: RequestUrgency = .interactive) async -> ProvidedRendition? {
        await previews.quickDecode(plan, urgency: urgency).map { ProvidedRendition($0, .quick) }
    }

    /// Returns a file's type, orientation and size without decoding it.
    func inspect(_ digest: String) async throws(RPCError) -> ImageFileInfo { try await renderer.inspect(digest) }

    /// Opens the stored bytes.
    func open(_ digest: String) throws(RPCError) -> ResourceFile { try renderer.resources.open(digest) }

    /// Draws a contact sheet from renditions, in the order of the labels.
    func sheet(_ images: [EncodedRendition?], _ plan: ContactSheetPlan) async throws(RPCError) -> EncodedRendition {
        try await renderer.sheet(plan, images.flatMap { $0?.bytes ?? [] })
    }
}

/// A rendition and how it was obtained.
struct ProvidedRendition: Sendable {
    var rendition: EncodedRendition
    var reason: CacheReason

    var isCacheHit: Bool { reason == .memory || reason == .disk }

    /// - Parameter requester: for one with a limited grant the reason is always ``CacheReason/rendered``
    init(_ rendition: EncodedRendition, _ reason: CacheReason, for requester: RenditionRequester = .init()) {
        self.rendition = rendition
        self.reason = requester.limitedClient == nil ? reason : .rendered
    }
}

/// The size of a requested image, by which a degraded image is chosen.
struct DegradedImageGoal: Sendable, Hashable {
    /// The size in pixels that the image has without enlargement.
    let width: Int
    let height: Int
    /// True for a JPEG that has to be decoded at its full size, so that a quick decode takes much less time.
    let needsAllPixels: Bool

    /// Creates the goal of a plan; nil if the size of its source is unknown.
    init?(_ plan: RenditionPlan, of source: AssetResource) {
        guard source.pixelWidth > 0, source.pixelHeight > 0 else { return nil }
        let part = plan.crop ?? .full
        let (partWidth, partHeight) = (Double(source.pixelWidth) * part.width, Double(source.pixelHeight) * part.height)
        var size = (partWidth, partHeight)
        var scale = 1.0
        if case .size(let width, let height) = plan.targetSize, plan.resizeMode != .none {
            let factors = (Double(width) / partWidth, Double(height) / partHeight)
            let isFilled = plan.contentMode == .aspectFill
            let factor = isFilled ? max(factors.0, factors.1) : min(factors.0, factors.1)
            scale = min(1, factor)
            size = (partWidth * scale, partHeight * scale)
            if isFilled, plan.resizeMode == .exact {
                size = (Double(width) / max(1, factor), Double(height) / max(1, factor))
            }
        }
        width = max(1, Int(size.0.rounded()))
        height = max(1, Int(size.1.rounded()))
        needsAllPixels = source.contentType == "public.jpeg" && scale > 0.25
    }

    /// Returns true if an image has at least a quarter of the size in both directions, so that it can be shown
    /// instead of the requested one.
    func isLargeEnough(_ rendition: EncodedRendition) -> Bool {
        4 * rendition.pixelWidth >= width && 4 * rendition.pixelHeight >= height
    }
}
