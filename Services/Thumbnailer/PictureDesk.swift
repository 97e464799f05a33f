import Contracts
import Hosting
import JSONValue
import Logging
import Messaging
import PhotoModel
import Storage

/// Where pictures come from: memory, disk, or a worker, in this order, each made once.
final class PictureDesk: Sendable {
    /// A new version never serves pictures that an older one made.
    static let renderer = "1"

    /// A picture, and whether it was at hand.
    struct Delivery: Sendable {
        var rendition: StoredRendition
        var isCacheHit: Bool
    }

    private let workers: WorkerPool
    private let memory: RenditionMemory
    private let disk: RenditionStore
    private let work: SharedWork<RenditionPlan, StoredRendition>
    private let figures: PictureFigures

    /// - Parameter report: told of bytes over which a worker came to harm
    init(
        resources: ResourceFolder,
        workers: WorkerPool,
        report: @escaping @Sendable (ResourceWork.Harm) async -> Void,
        memory: RenditionMemory,
        disk: RenditionStore,
        limit: Int,
        figures: PictureFigures,
        logger: Logger
    ) {
        self.workers = workers
        self.memory = memory
        self.disk = disk
        self.figures = figures
        let resourceWork = ResourceWork(workers, report: report)
        work = SharedWork(limit: limit) { plan in
            do throws(RPCError) {
                let rendition = try await figures.timing { () async throws(RPCError) in
                    try await Self.render(plan, from: resources, by: resourceWork)
                }
                let key = RenditionKey(plan, renderer: Self.renderer)
                memory.insert(rendition, key)
                if let problem = disk.insert(rendition, key) {
                    logger.warning("a picture could not be kept on disk", metadata: ["reason": "\(problem)"])
                }
                return .success(rendition)
            } catch {
                return .failure(error)
            }
        }
        figures.all.section("cache") { [memory, disk, work] in
            let held = memory.size
            let kept = disk.figures
            let flights = work.figures
            return [
                "memoryEntries": JSON(held.count), "memoryBytes": .int(held.bytes), "diskEntries": JSON(kept.count),
                "diskBytes": .int(kept.bytes), "diskDamaged": JSON(kept.damaged), "diskEvicted": JSON(kept.evicted),
                "underWay": JSON(flights.count), "shared": JSON(flights.joins),
            ]
        }
        figures.all.section("workers") { [workers] in workers.figures() }
    }

    /// Makes what is asked for, until the service ends.
    func run() async { await work.run() }

    /// A picture.
    ///
    /// The caller has made sure that the asset exists and that the plan is of its present revision.
    ///
    /// - Parameter refusal: why its bytes may not be opened; what was made before may still be had
    func picture(_ plan: RenditionPlan, refusal: RPCError?) async throws(RPCError) -> Delivery {
        let key = RenditionKey(plan, renderer: Self.renderer)
        if let rendition = memory.rendition(key) {
            disk.touch(key)
            figures.memoryHits.add()
            return Delivery(rendition: rendition, isCacheHit: true)
        }
        if let rendition = disk.rendition(key) {
            memory.insert(rendition, key)
            figures.diskHits.add()
            return Delivery(rendition: rendition, isCacheHit: true)
        }
        if let refusal { throw refusal }
        figures.misses.add()
        return Delivery(rendition: try await work.value(plan), isCacheHit: false)
    }

    /// Draws a contact sheet from pictures, in the order of the labels.
    func sheet(_ pictures: [StoredRendition?], columns: Int, cell: Int, labels: [String]) async throws(RPCError)
        -> StoredRendition
    {
        let plan = SheetPlan(
            columns: columns,
            cell: cell,
            labels: labels,
            lengths: pictures.map { $0?.bytes.count ?? 0 }
        )
        let job = WorkerJob(
            method: ThumbnailWork.sheetMethod,
            params: plan.json,
            attachments: [pictures.flatMap { $0?.bytes ?? [] }]
        )
        return try await Self.answer { [workers] () async throws(WorkerFailure) in try await workers.run(job) }
    }

    private static func render(
        _ plan: RenditionPlan,
        from resources: ResourceFolder,
        by work: ResourceWork
    ) async throws(RPCError) -> StoredRendition {
        let file = try resources.open(plan.digest)
        let job = WorkerJob(method: ThumbnailWork.renditionMethod, params: plan.json, files: [file.descriptor])
        let rendition = try await answer { () async throws(WorkerFailure) in
            try await work.run(job, over: plan.digest)
        }
        // The descriptor is the worker's until here.
        return withExtendedLifetime(file) { rendition }
    }

    private static func answer(
        _ work: () async throws(WorkerFailure) -> WorkerResult
    ) async throws(RPCError) -> StoredRendition {
        let result: WorkerResult
        do throws(WorkerFailure) { result = try await work() } catch { throw error.refusal }
        guard var rendition = try? StoredRendition(json: result.result), let bytes = result.attachments.first else {
            throw Refusal.internalError.error("a worker's answer is not a picture")
        }
        rendition.bytes = bytes
        return rendition
    }
}
