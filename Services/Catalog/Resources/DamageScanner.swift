import Basics
import Contracts
import Hosting
import JSONValue
import Logging
import PhotoModel
import ServiceLifecycle
import Storage
import Synchronization

/// Checks the content of new JPEGs for damage, one after the other, at the lowest priority. An image is already in the
/// library when it is checked; if part of it is lost, a transaction of origin `examiner` marks it.
///
/// The service follows the library's own records and stores its position, so a restart continues there. Its single
/// worker has the lowest priority of the system and is started for the first image.
struct DamageScanner: Service {
    let store: LibraryStore
    let tail: ChangeLogTail
    let writer: TransactionWriter
    let quarantine: Quarantine
    let resources: ResourceStore
    let executable: String
    let limits: WorkerLimits
    let logger: Logger
    private let counts = Counts()

    /// The number of records that are read at a time.
    private static let pageRecords = 64
    /// The number of records without an image after which the position is stored.
    private static let recordsPerSave: Int64 = 1024
    /// The name under which the position is stored.
    private static let counter = "examined"
    private static let debounceInterval = Duration.milliseconds(500)
    /// The maximum number of debounce intervals for which an import may delay the checks.
    private static let maxDebounces = 20

    init(
        store: LibraryStore,
        tail: ChangeLogTail,
        writer: TransactionWriter,
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
        private let state = Mutex((position: Int64(0), images: 0, damaged: 0, absent: 0, loggedAbsent: 0))

        var metrics: JSONObject {
            let (position, images, damaged, absent, _) = state.withLock { $0 }
            return [
                "sequence": .int(position), "pictures": JSON(images), "damaged": JSON(damaged),
                "absent": JSON(absent),
            ]
        }

        func noteAbsent() { state.withLock { $0.absent += 1 } }

        /// Returns the number of missing files since the last log line.
        func absentToLog() -> Int {
            state.withLock { state in
                defer { state.loggedAbsent = state.absent }
                return state.absent - state.loggedAbsent
            }
        }

        func advance(_ position: Int64) { state.withLock { $0.position = position } }

        func add(isDamaged: Bool) {
            state.withLock { state in
                state.images += 1
                if isDamaged { state.damaged += 1 }
            }
        }
    }

    /// The position, and the counts since the start.
    var metrics: JSONObject { counts.metrics }

    func run() async throws {
        let pool = LazyWorkerPool(WorkerPool(executable: executable, count: 1, limits: limits, logger: logger))
        let quarantine = quarantine
        let work = ResourceJobRunner(pool.pool) { fault in
            _ = try? await quarantine.report(ReportWorkerFault(fault, by: .catalog))
        }
        let images = MetadataExtractor(work: work, quarantine: quarantine, resources: resources)
        await cancelWhenGracefulShutdown {
            while !Task.isCancelled {
                do {
                    try await follow { digest in
                        try await pool.start()
                        return try await images.damage(of: digest)
                    }
                    // The service is stopping.
                    return
                } catch {
                    if Task.isCancelled { return }
                    logger.warning("checking images failed; retrying in 10 s", metadata: ["error": "\(error)"])
                    await TaskDelay.retryDelay(.seconds(10))
                }
            }
        }
        try? await gracefulShutdown()
        await pool.stop()
    }

    /// Checks the images of all records after the stored position, and waits for new ones, until the service stops.
    private func follow(_ findDamage: (ResourceDigest) async throws -> String?) async throws {
        var position = try await store.read { reader in
            let head = try reader.head()
            return min(head.sequence, max(head.oldest, Int64(try reader.counter(Self.counter))))
        }
        var stored = position
        counts.advance(position)
        while !Task.isCancelled, await tail.wait(for: position + 1, isClient: false) {
            await pauseDuringImport()
            if Task.isCancelled { return }
            let page = try await page(after: position)
            var hasImages = false
            for record in page.records {
                for image in try Self.images(JSON(parsing: record)) {
                    hasImages = true
                    try await check(image, findDamage)
                    if Task.isCancelled { return }
                }
            }
            position = page.last
            counts.advance(position)
            if position >= tail.head { logAbsent() }
            guard hasImages || position - stored >= Self.recordsPerSave else { continue }
            try await store.remember(position, as: Self.counter)
            stored = position
        }
    }

    /// Waits until no transaction has been committed for half a second: an import commits many, and no client waits for
    /// the checks. After ten seconds the next page is checked in any case.
    private func pauseDuringImport() async {
        for _ in 0..<Self.maxDebounces {
            let head = tail.head
            await TaskDelay.debounce(Self.debounceInterval)
            if Task.isCancelled || tail.head == head { return }
        }
    }

    /// Logs one line for all missing files: a whole disk may be unavailable.
    private func logAbsent() {
        let count = counts.absentToLog()
        guard count > 0 else { return }
        logger.warning(
            "files of assets are missing and were not checked for damage; safelight doctor lists them",
            metadata: ["count": "\(count)"]
        )
    }

    /// Returns the next records that insert assets, and the last sequence they cover. The newest records are still in
    /// memory.
    private func page(after position: Int64) async throws -> (records: [[UInt8]], last: Int64) {
        let newest = tail.head
        if case .records(let records, let last) = tail.page(after: position, bytes: 1 << 20) {
            return (records.filter(\.insertsAssets).map(\.bytes), last)
        }
        let stored = try await store.read { reader in
            try reader.history.records(after: position, through: newest, count: Self.pageRecords, bytes: 1 << 20)
        }
        let records = try stored.records.map(\.bytes).filter(Self.insertsAssets)
        return (records, stored.records.last?.sequence ?? newest)
    }

    /// Returns true if a record inserts assets, without decoding it: most records only change existing assets.
    private static func insertsAssets(_ record: [UInt8]) throws(JSONError) -> Bool {
        try JSONCursor.read(record) { (cursor: inout JSONCursor) throws(JSONError) in
            try cursor.enterObject()
            while let name = try cursor.nextMember() {
                guard name == "assets" else {
                    try cursor.skip()
                    continue
                }
                try cursor.enterArray()
                while try cursor.nextElement() {
                    try cursor.enterObject()
                    guard try cursor.nextMember() == "before", try cursor.peek() != UInt8(ascii: "n") else {
                        return true
                    }
                    try cursor.leave()
                }
            }
            return false
        }
    }

    /// A JPEG of a new asset.
    private struct NewImage {
        let asset: ObjectID
        let digest: ResourceDigest
    }

    /// Returns the JPEGs of the assets that a record inserts. Changes of existing assets are skipped without decoding
    /// them.
    private static func images(_ record: JSON) throws -> [NewImage] {
        guard case .array(let changes) = record["assets"] else { return [] }
        let new = changes.filter { $0["before"]?.isNull ?? true }.compactMap { $0["after"] }
        return try new.map { try Asset(json: $0) }.flatMap { asset in
            asset.resources.filter { $0.contentType == "public.jpeg" && $0.damage == nil }.compactMap { resource in
                ResourceDigest(resource.digest).map { NewImage(asset: asset.id, digest: $0) }
            }
        }
    }

    private func check(_ image: NewImage, _ findDamage: (ResourceDigest) async throws -> String?) async throws {
        let damage: String?
        do {
            damage = try await findDamage(image.digest)
        } catch StorageError.notFound {
            return counts.noteAbsent()
        } catch {
            switch error {
            // The disk, the database or the worker is not available: the same record is read again later.
            case StorageError.offline, StorageError.serverOffline, StorageError.relinquished, WorkerFailure.unavailable:
                throw error
            default: break
            }
            // Bytes that crash workers are quarantined by digest; missing bytes need no mark.
            if !Task.isCancelled {
                logger.notice(
                    "an image could not be checked for damage",
                    metadata: ["asset": "\(image.asset)", "error": "\(error)"]
                )
            }
            return
        }
        counts.add(isDamaged: damage != nil)
        guard let damage else { return }
        let mark = DamageReport(asset: image.asset, digest: image.digest.text, damage: damage)
        _ = try await writer.perform(.marking([mark]))
    }
}

/// The result of checking the bytes of one asset.
struct DamageReport: Sendable {
    let asset: ObjectID
    let digest: String
    /// Nil if the bytes are not known to be damaged; removes an earlier mark.
    let damage: String?
}

extension ChangeTransaction {
    /// Sets the damage of the resources that still have these bytes.
    mutating func mark(_ found: DamageReport) throws {
        guard var asset = try asset(found.asset) else { return }
        var hasChanged = false
        for index in asset.resources.indices
        where asset.resources[index].digest == found.digest && asset.resources[index].offset == nil
            && asset.resources[index].damage != found.damage
        {
            asset.resources[index].damage = found.damage
            hasChanged = true
        }
        if hasChanged { try set(asset) }
    }
}
