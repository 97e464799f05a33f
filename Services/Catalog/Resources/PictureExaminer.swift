import Contracts
import Hosting
import JSONValue
import Logging
import Messaging
import PhotoModel
import ServiceLifecycle
import Storage
import Synchronization

/// Checks the content of new JPEGs for damage, one after the other, at the lowest priority. An image is already in the
/// library when it is checked; if part of it is lost, a transaction of origin `examiner` marks it.
///
/// The service follows the library's own records and stores its position, so a restart continues there. Its single
/// worker has the lowest priority of the system and is started for the first image.
struct PictureExaminer: Service {
    let store: LibraryStore
    let tail: ChangeTail
    let writer: Writer
    let quarantine: Quarantine
    let resources: ResourceStore
    let executable: String
    let limits: WorkerLimits
    let logger: Logger
    private let counts = Counts()

    /// Records read at a time, and the number of records without an image after which the position is stored.
    private static let page = 64
    private static let keptEvery: Int64 = 1024
    private static let counter = "examined"
    private static let calm = Duration.milliseconds(50)

    init(
        store: LibraryStore,
        tail: ChangeTail,
        writer: Writer,
        quarantine: Quarantine,
        resources: ResourceStore,
        executable: String,
        limits: WorkerLimits,
        logger: Logger
    ) {
        self.store = store
        self.tail = tail
        self.writer = writer
        self.quarantine = quarantine
        self.resources = resources
        self.executable = executable
        self.limits = limits
        self.logger = logger
    }

    private final class Counts: Sendable {
        private let state = Mutex((position: Int64(0), pictures: 0, damaged: 0, absent: 0, toldAbsent: 0))

        var figures: JSONObject {
            let (position, pictures, damaged, absent, _) = state.withLock { $0 }
            return [
                "sequence": .int(position), "pictures": JSON(pictures), "damaged": JSON(damaged),
                "absent": JSON(absent),
            ]
        }

        func miss() { state.withLock { $0.absent += 1 } }

        /// Returns the number of missing files since the last log line.
        func absentToTell() -> Int {
            state.withLock { state in
                defer { state.toldAbsent = state.absent }
                return state.absent - state.toldAbsent
            }
        }

        func reach(_ position: Int64) { state.withLock { $0.position = position } }

        func look(isDamaged: Bool) {
            state.withLock { state in
                state.pictures += 1
                if isDamaged { state.damaged += 1 }
            }
        }
    }

    /// The position, and the counts since the start.
    var figures: JSONObject { counts.figures }

    func run() async throws {
        let hand = OneWorker(WorkerPool(executable: executable, count: 1, limits: limits, logger: logger))
        let quarantine = quarantine
        let work = ResourceWork(hand.pool) { harm in _ = try? await quarantine.report(ReportHarm(harm, by: .catalog)) }
        let pictures = PictureReader(work: work, quarantine: quarantine, resources: resources)
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                do {
                    try await follow { digest in
                        try await hand.start()
                        return try await pictures.damage(of: digest)
                    }
                    // The service is stopping.
                    return
                } catch {
                    if Task.isCancelled { return }
                    logger.warning("checking images failed; retrying in 10 s", metadata: ["error": "\(error)"])
                    await Waiting.beforeRetry(.seconds(10))
                }
            }
        }
        try? await gracefulShutdown()
        await hand.stop()
    }

    /// A worker pool that is started on first use.
    private final class OneWorker: Sendable {
        let pool: WorkerPool
        private let isStarted = Mutex(false)

        init(_ pool: WorkerPool) { self.pool = pool }

        func start() async throws {
            guard !isStarted.withLock({ $0 }) else { return }
            try await pool.start()
            isStarted.withLock { $0 = true }
        }

        func stop() async {
            if isStarted.withLock({ $0 }) { await pool.stop() }
        }
    }

    /// Reads all records after the stored position, waiting for new ones, until the service stops.
    private func follow(_ look: (ResourceDigest) async throws -> String?) async throws {
        var position = try await store.read { reader in
            let head = try reader.head()
            return min(head.sequence, max(head.oldest, Int64(try reader.counter(Self.counter))))
        }
        var kept = position
        counts.reach(position)
        while !Task.isCancelled, await tail.wait(for: position + 1, isClient: false) {
            let page = try await page(after: position)
            var hasPictures = false
            for record in page.records {
                for picture in try Self.pictures(JSON(parsing: record)) {
                    hasPictures = true
                    try await examine(picture, look)
                    if Task.isCancelled { return }
                }
            }
            position = page.last
            counts.reach(position)
            if position >= tail.head { tellAbsent() }
            // New images come in bursts, and no client waits for this work.
            await Waiting.forCalm(Self.calm)
            guard hasPictures || position - kept >= Self.keptEvery else { continue }
            try await store.remember(position, as: Self.counter)
            kept = position
        }
    }

    /// Logs one line for all missing files: a whole disk may be unavailable.
    private func tellAbsent() {
        let count = counts.absentToTell()
        guard count > 0 else { return }
        logger.warning(
            "files of assets are missing and were not checked for damage; safelight doctor lists them",
            metadata: ["count": "\(count)"]
        )
    }

    /// Returns the next records that may contain new assets, and the last sequence they cover. The newest records are
    /// still in memory.
    private func page(after position: Int64) async throws -> (records: [[UInt8]], last: Int64) {
        let newest = tail.head
        if case .records(let records, let last) = tail.page(after: position, bytes: 1 << 20) {
            return (records.filter(\.bringsAssets).map(\.bytes), last)
        }
        let stored = try await store.read { reader in
            try reader.history.records(after: position, through: newest, count: Self.page, bytes: 1 << 20)
        }
        return (stored.records.map(\.bytes), stored.records.last?.sequence ?? newest)
    }

    private struct Picture {
        let asset: ObjectID
        let digest: ResourceDigest
    }

    /// Returns the JPEGs of the assets that a record creates. Changes of existing assets are skipped without decoding
    /// them.
    private static func pictures(_ record: JSON) throws -> [Picture] {
        guard case .array(let changes) = record["assets"] else { return [] }
        let new = changes.filter { $0["before"]?.isNull ?? true }.compactMap { $0["after"] }
        return try new.map { try Asset(json: $0) }.flatMap { asset in
            asset.resources.filter { $0.contentType == "public.jpeg" && $0.damage == nil }.compactMap { resource in
                ResourceDigest(resource.digest).map { Picture(asset: asset.id, digest: $0) }
            }
        }
    }

    private func examine(_ picture: Picture, _ look: (ResourceDigest) async throws -> String?) async throws {
        let damage: String?
        do {
            damage = try await look(picture.digest)
        } catch StorageError.notFound {
            return counts.miss()
        } catch {
            // Bytes that crash workers are quarantined by digest; missing bytes need no mark.
            if !Task.isCancelled {
                logger.notice(
                    "an image could not be checked for damage",
                    metadata: ["asset": "\(picture.asset)", "error": "\(error)"]
                )
            }
            return
        }
        counts.look(isDamaged: damage != nil)
        guard let damage else { return }
        let mark = DamageMark(asset: picture.asset, digest: picture.digest.text, damage: damage)
        _ = try await writer.perform(.marking([mark]))
    }
}

/// The result of checking the bytes of one asset.
struct DamageMark: Sendable {
    let asset: ObjectID
    let digest: String
    /// Nil if the bytes are not known to be damaged; removes an earlier mark.
    let damage: String?
}

extension ChangeTransaction {
    /// Sets the damage of the resources that still have these bytes.
    mutating func mark(_ found: DamageMark) throws {
        guard var asset = try asset(found.asset) else { return }
        var isNew = false
        for index in asset.resources.indices
        where asset.resources[index].digest == found.digest && asset.resources[index].damage != found.damage {
            asset.resources[index].damage = found.damage
            isNew = true
        }
        if isNew { try set(asset) }
    }
}
