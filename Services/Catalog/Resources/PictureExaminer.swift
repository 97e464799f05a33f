import Contracts
import Hosting
import JSONValue
import Logging
import Messaging
import PhotoModel
import ServiceLifecycle
import Storage
import Synchronization

/// Looks into new pictures for damage, one after the other, behind everything else: a picture is taken in long before, and
/// one that lost something is marked by a transaction of the origin `examiner`.
///
/// It follows the library's own records; how far it has come is kept, so that a restart goes on there. Its one worker has
/// the lowest priority of the system and is started with the first picture.
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

    /// Records that are read at a time, and after how many without a picture the position is kept.
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

        /// How many more files were not there than was told before.
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

    /// How far it has come, and what it found since the start.
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
                    // The service stops.
                    return
                } catch {
                    if Task.isCancelled { return }
                    logger.warning("pictures are not looked into for now", metadata: ["error": "\(error)"])
                    await Waiting.beforeRetry(.seconds(10))
                }
            }
        }
        try? await gracefulShutdown()
        await hand.stop()
    }

    /// A pool that is started when there is something to do.
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

    /// Goes through all records from where it was, as they come, until the service stops.
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
            // New pictures come in bursts, and nobody waits for this.
            await Waiting.forCalm(Self.calm)
            guard hasPictures || position - kept >= Self.keptEvery else { continue }
            try await store.remember(position, as: Self.counter)
            kept = position
        }
    }

    /// One line for all files that were not there: a whole disk may be away.
    private func tellAbsent() {
        let count = counts.absentToTell()
        guard count > 0 else { return }
        logger.warning(
            "files of assets are not there, and were not looked into; safelight doctor names them",
            metadata: ["count": "\(count)"]
        )
    }

    /// The next records in which there may be new assets, and the sequence that is looked through with them. While
    /// nothing new comes in they are in memory still.
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

    /// The JPEGs that a record brings into the library. Of what is there already nothing is decoded.
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
            // Bytes that harm workers are set aside by name; those that are gone need no mark.
            if !Task.isCancelled {
                logger.notice(
                    "a picture could not be looked into",
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

/// What was found out about the bytes of an asset.
struct DamageMark: Sendable {
    let asset: ObjectID
    let digest: String
    /// Nil: nothing is known to be lost after all.
    let damage: String?
}

extension ChangeTransaction {
    /// Marks the bytes, where the asset still has them.
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
