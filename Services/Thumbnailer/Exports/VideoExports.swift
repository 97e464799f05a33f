import Basics
import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoModel
import Synchronization

/// The video exports that clients requested, each with a lease.
///
/// Equal exports share one file, whose encoding is cancelled when the last of them is cancelled. A client with a
/// limited grant shares no files with others. One file is encoded at a time, and clients take turns.
final class VideoExports: Sendable {
    private struct Export {
        var plan: VideoExportPlan
        let asset: ObjectID
        let identity: String
        let cancellation = CancellationSource()
        let ended = OneTimeEvent()
        var outcome: Result<ExportedVideo, RPCError>?
    }

    private struct State {
        var leases = LeaseTable<String>(duration: Int64(ExportVideo.leaseSeconds) * 1_000_000)
        var exports: [String: Export] = [:]
        var waiting = PerClientQueue()

        mutating func remove(_ name: String) -> Export? {
            leases.remove(name)
            guard let export = exports.removeValue(forKey: name) else { return nil }
            waiting.remove(name, of: export.identity)
            return export
        }
    }

    private let assets: AssetResolver
    private let streams: VideoStreams
    private let blockingIO: BlockingIOExecutor
    private let originals: OriginalFiles
    private let workers: WorkerPool
    private let files: VideoExportFiles
    private let clock: MonotonicClock
    private let state = Mutex(State())
    private let queue: CoalescingWorkQueue<VideoExportPlan, VideoExportPlan, ExportedVideo>
    /// The exports to start, each with the identity whose next export is started after it; nil if it takes no turn.
    private let starts: AsyncStream<(name: String, turnOf: String?)>
    private let starting: AsyncStream<(name: String, turnOf: String?)>.Continuation

    /// The maximum number of exports with a lease, including finished ones.
    static let limit = 64
    /// Returns the maximum number of them for one client: three quarters, or a quarter with a limited grant.
    static func limitPerClient(isLimited: Bool) -> Int { isLimited ? limit / 4 : limit / 4 * 3 }
    /// The interval at which expired leases are removed.
    private static let sweepInterval = Duration.seconds(5)

    init(
        assets: AssetResolver,
        streams: VideoStreams,
        blockingIO: BlockingIOExecutor,
        exporter: VideoExporter,
        originals: OriginalFiles,
        metrics: ThumbnailerMetrics,
        clock: MonotonicClock = .system
    ) {
        self.assets = assets
        self.streams = streams
        self.blockingIO = blockingIO
        self.originals = originals
        self.clock = clock
        workers = exporter.workers
        let files = VideoExportFiles(exporter: exporter)
        self.files = files
        queue = CoalescingWorkQueue(limit: Self.limit, maxBatches: 1, group: { $0 }) { plans in
            var outcomes: [Result<ExportedVideo, RPCError>] = []
            for plan in plans { outcomes.append(await files.encode(plan)) }
            return outcomes
        }
        // While the worker starts, the names of cancelled exports stay in the stream; they must not displace others.
        (starts, starting) = AsyncStream.makeStream(bufferingPolicy: .unbounded)
        metrics.all.section("exports") { [self] in
            var metrics = files.metrics
            metrics["open"] = JSON(state.withLock { $0.exports.count })
            return metrics
        }
    }

    // MARK: Requests

    func begin(_ request: ExportVideo, _ context: RequestContext) async throws(RPCError) -> VideoExportStatus {
        let identity = context.identity
        let found = try await assets.resolve([request.asset], atLeast: request.atLeast)
        let asset = try ImageRequestService.asset(request.asset, of: found)
        let video = try VideoService.resource(of: asset, version: request.version)
        if let refusal = found.rpcError(of: video.digest, asset) { throw refusal }
        var plan = VideoExportPlan(video: video, preset: request.preset)
        // Slow motion is exported as players show it, except if the tracks are copied.
        if request.version == .current, request.preset != .passthrough {
            let edit = video.isRender ? try? await streams.edit(of: asset, blockingIO) : nil
            plan.appliesSlowMotion = !video.isRender || edit?.keepsTimes == true
        }
        plan.limitedClient = context.limitedClient
        let existing = files.file(plan)
        if existing == nil {
            try await originals.require(
                video.digest,
                of: asset.id,
                isNetworkAccessAllowed: request.isNetworkAccessAllowed,
                context
            )
            plan.file = try? originals.resources.open(video.digest)
        }
        var random = SystemRandomNumberGenerator()
        let name = "e" + random.nextHexadecimal(byteCount: 8)
        let now = clock.nowMicroseconds()
        // If an equal export is waiting or being encoded already, this one does not wait for its turn.
        let isShared = queue.isUnderWay(plan)
        let clientLimit = Self.limitPerClient(isLimited: plan.limitedClient != nil)
        let isAdded = state.withLock { [plan] state in
            guard state.exports.count < Self.limit, state.leases.keys(of: identity).count < clientLimit else {
                return false
            }
            var export = Export(plan: plan, asset: asset.id, identity: identity)
            export.outcome = existing.map { .success($0) }
            if existing != nil { export.ended.signal() }
            state.exports[name] = export
            state.leases.insert(name, owner: identity, now: now)
            if existing == nil {
                if isShared {
                    starting.yield((name, nil))
                } else if state.waiting.append(name, of: identity) {
                    starting.yield((name, identity))
                }
            }
            return true
        }
        guard isAdded else {
            throw .tooManyExports(perClient: clientLimit, limit: Self.limit)
        }
        return try status(name, identity)
    }

    /// Returns the state of an export: at once if it has ended, else when it ends or the requested time has passed.
    func wait(_ request: WaitForVideoExport, identity: String) async throws(RPCError) -> VideoExportStatus {
        let now = try status(request.export, identity)
        guard request.wait > 0, !now.state.isFinal,
            let ended = state.withLock({ $0.exports[request.export]?.ended })
        else { return now }
        await TaskDelay.withTimeout(.milliseconds(request.wait)) { await ended.waitUnlessCancelled() }
        return try status(request.export, identity)
    }

    func cancel(_ request: CancelVideoExport, identity: String) throws(RPCError) {
        let export = state.withLock { state -> Export? in
            guard state.leases.isOwned(request.export, by: identity) else { return nil }
            return state.remove(request.export)
        }
        guard let export else { throw RPCError.unknownExport(request.export) }
        export.cancellation.cancel()
        export.ended.signal()
    }

    /// Returns the finished file of an asset's export; nil if the stream is not that of an export.
    ///
    /// - Throws: the error of an export that failed; `handle_expired`
    func file(_ stream: String, of asset: ObjectID, identity: String) throws(RPCError) -> ExportedVideo? {
        guard stream.hasPrefix("e"), stream.utf8.count < 20 else { return nil }
        let export = try renew(stream, identity)
        guard export.asset == asset, let outcome = export.outcome else { return nil }
        let file = try outcome.get()
        // Marks the file as used, so that files that are not read are removed first.
        _ = files.file(export.plan)
        return file
    }

    /// Renews the lease of an export and returns the export.
    private func renew(_ name: String, _ identity: String) throws(RPCError) -> Export {
        let now = clock.nowMicroseconds()
        let export = state.withLock { state in
            state.leases.renew(name, owner: identity, now: now) ? state.exports[name] : nil
        }
        guard let export else { throw RPCError.unknownExport(name) }
        return export
    }

    private func status(_ name: String, _ identity: String) throws(RPCError) -> VideoExportStatus {
        let export = try renew(name, identity)
        let done = files.progress(export.plan)
        var status = VideoExportStatus(
            export: name,
            asset: export.asset,
            state: done == nil ? .waiting : .running,
            preset: export.plan.preset
        )
        status.duration = export.plan.video.duration ?? 0
        status.done = min(done ?? 0, status.duration)
        switch export.outcome {
        case .success(let file):
            status.state = .done
            status.done = status.duration
            status.stream = name
            status.size = file.size
            status.mimeType = "video/mp4"
            (status.pixelWidth, status.pixelHeight) = (file.pixelWidth, file.pixelHeight)
        case .failure(let error):
            status.state = error.errorCode == .userCancelled ? .cancelled : .failed
            status.error = ["name": .string(error.name), "message": .string(error.message)]
        case nil: break
        }
        return status
    }

    // MARK: Work

    /// Encodes requested exports until the task is cancelled.
    func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.queue.run() }
            group.addTask {
                for await _ in TaskDelay.ticks(every: Self.sweepInterval) { self.removeExpired() }
            }
            var isStarted = false
            for await (name, identity) in starts {
                // Most services never export, so the worker is started by the first export.
                if !isStarted { isStarted = (try? await workers.start(isRequired: false)) != nil }
                group.addTask { await self.encode(name, turnOf: identity) }
            }
            group.cancelAll()
        }
        await workers.stop()
    }

    /// Encodes the file of an export, or waits for an equal export, and starts the next export of the identity.
    private func encode(_ name: String, turnOf identity: String?) async {
        defer {
            // The next export of the client runs after the waiting exports of other clients.
            if let identity, let next = state.withLock({ $0.waiting.next(of: identity) }) {
                starting.yield((next, identity))
            }
        }
        guard let export = state.withLock({ $0.exports[name] }) else { return }
        let queue = queue
        let outcome = await export.cancellation.run { () -> Result<ExportedVideo, RPCError> in
            do throws(RPCError) { return .success(try await queue.value(export.plan)) } catch { return .failure(error) }
        }
        state.withLock { state in
            state.exports[name]?.outcome = outcome
            state.exports[name]?.plan.file = nil
            failRemoved(&state)
        }
        export.ended.signal()
    }

    /// Ends the exports whose files were removed, because an open file occupies disk space until it is closed.
    private func failRemoved(_ state: inout State) {
        for (name, export) in state.exports {
            guard case .success? = export.outcome, !files.contains(export.plan) else { continue }
            state.exports[name]?.outcome = .failure(.exportRemoved)
        }
    }

    private func removeExpired() {
        let now = clock.nowMicroseconds()
        let ended = state.withLock { state in
            // An export may have begun to use a file while it was removed.
            failRemoved(&state)
            return state.leases.expired(now: now).compactMap { state.remove($0) }
        }
        for export in ended {
            export.cancellation.cancel()
            export.ended.signal()
        }
    }
}
