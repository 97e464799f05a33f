import Basics
import Contracts
import Hosting
import JSONValue
import Logging
import Messaging
import PhotoModel
import ServiceLifecycle
import Storage
import Synchronization

/// Reads the metadata of files again, if a version imported them that read less of it: one file after the other, at the
/// lowest priority. New metadata is added by transactions of origin `examiner`.
///
/// The position is stored after each transaction, so a restart continues there. Properties that a client can set are
/// not changed; a file that is missing or cannot be read is left out.
final class MetadataRereader: Service, Sendable {
    private let store: LibraryStore
    private let writer: TransactionWriter
    private let quarantine: Quarantine
    private let resources: ResourceStore
    private let pool: LazyWorkerPool
    /// The maximum number of files per second.
    private let rate: Int
    private let logger: Logger
    private let state = Mutex(State())

    private struct State {
        var total = 0
        var done = 0
        var unreadable = 0
    }

    /// The number of files that are read for one transaction.
    static let batch = 25
    /// The name of the counter with the row number up to which files have been read again.
    static let position = "reread.position"
    private static let logInterval = Duration.seconds(60)

    init(
        store: LibraryStore,
        writer: TransactionWriter,
        quarantine: Quarantine,
        resources: ResourceStore,
        workers: WorkerPool,
        rate: Int,
        logger: Logger
    ) {
        self.store = store
        self.writer = writer
        self.quarantine = quarantine
        self.resources = resources
        pool = LazyWorkerPool(workers)
        self.rate = rate
        self.logger = logger
    }

    /// The number of files to read again, how many of them are done, and how many could not be read since the
    /// start.
    var metrics: JSONObject {
        state.withLock {
            [
                "files": JSON($0.total), "done": JSON($0.done), "unreadable": JSON($0.unreadable),
            ]
        }
    }

    func run() async throws {
        await cancelWhenGracefulShutdown { [self] in
            while !Task.isCancelled {
                do {
                    return try await readAll()
                } catch {
                    if Task.isCancelled { return }
                    logger.warning("reading files again failed; retrying in 10 s", metadata: ["error": "\(error)"])
                    await TaskDelay.retryDelay(.seconds(10))
                }
            }
        }
        try? await gracefulShutdown()
        await pool.stop()
    }

    private func readAll() async throws {
        var (position, done, total) = try await store.read { reader in
            let position = Int64(try reader.counter(Self.position))
            let range = try reader.metadata.rereadProgress(through: position)
            return (position, range.done, range.total)
        }
        state.withLock { ($0.done, $0.total) = (done, total) }
        guard done < total else { return }
        logger.notice(
            "reading the metadata of files again, because this version reads more of it",
            metadata: ["files": "\(total - done)", "perSecond": "\(rate)"]
        )
        let clock = ContinuousClock()
        var logged = clock.now
        let extractor = extractor
        while !Task.isCancelled {
            let start = clock.now
            let rows = try await store.read { [position] in
                try $0.metadata.rowsToReread(after: position, count: Self.batch)
            }
            guard let last = rows.last else { break }
            let assets = try await store.read { try $0.assets.assets(rows) }
            try await pool.start()
            var found: [RereadMetadata] = []
            for row in rows {
                guard !Task.isCancelled, let asset = assets[row] else { continue }
                if let metadata = try await read(asset, extractor) { found.append(metadata) }
            }
            // The position must not move past files that were not read.
            if Task.isCancelled { return }
            if !found.isEmpty { try await record(found) }
            try await store.remember(last, as: Self.position)
            position = last
            done += rows.count
            state.withLock { $0.done = done }
            if clock.now - logged > Self.logInterval {
                logged = clock.now
                logger.info("files read again", metadata: ["done": "\(done)", "files": "\(total)"])
            }
            await TaskDelay.rateLimit(.seconds(Double(rows.count) / Double(rate)) - (clock.now - start))
        }
        guard !Task.isCancelled else { return }
        let metrics = metrics
        logger.notice("all files were read again", metadata: ["figures": "\(JSON.object(metrics).text)"])
        await pool.stop()
    }

    /// Records the metadata that was read in one transaction; if that is too large, in one for each asset.
    private func record(_ found: [RereadMetadata]) async throws {
        do throws(WriteFailure) {
            _ = try await writer.perform(.rereading(found))
        } catch {
            guard error.isTooLarge, found.count > 1 else { throw error }
            for metadata in found { _ = try await writer.perform(.rereading([metadata])) }
        }
    }

    private var extractor: MetadataExtractor {
        let quarantine = quarantine
        let work = ResourceJobRunner(pool.pool) { fault in
            _ = try? await quarantine.report(ReportWorkerFault(fault, by: .catalog))
        }
        return MetadataExtractor(work: work, quarantine: quarantine, resources: resources, isBackground: true)
    }

    /// Returns the metadata of an asset's original; nil if it cannot be read.
    ///
    /// - Throws: an error if files cannot be read for some time, for example because the disk is not available
    private func read(_ asset: Asset, _ extractor: MetadataExtractor) async throws -> RereadMetadata? {
        guard let original = asset.originalResource, let digest = ResourceDigest(original.digest) else { return nil }
        do {
            let type: ResourceType = original.isRawOriginal ? .alternatePhoto : original.type
            let name = original.originalFilename ?? asset.originalFilename ?? digest.text
            let facts = try await extractor.facts(of: digest, name: name, type: type)
            return RereadMetadata(asset: asset.id, digest: original.digest, facts: facts)
        } catch let error as ResourceError where error.isTemporary {
            throw error
        } catch let error as StorageError where error.isAbsence {
            throw error
        } catch {
            state.withLock { $0.unreadable += 1 }
            logger.debug("a file could not be read again", metadata: ["asset": "\(asset.id)", "error": "\(error)"])
            return nil
        }
    }
}

/// The metadata of an asset's file that was read again.
struct RereadMetadata: Sendable {
    let asset: ObjectID
    let digest: String
    let facts: ExtractedMetadata
}

extension ChangeTransaction {
    /// Adds metadata that the asset does not have. Properties that a client can set, such as the date, are never
    /// changed.
    mutating func add(_ found: RereadMetadata) throws {
        guard let before = try asset(found.asset), before.originalResource?.digest == found.digest else { return }
        var asset = before
        // Values that the asset already has may come from a sidecar, which was written later.
        if let read = found.facts.metadata { asset.metadata = before.metadata.map(read.replacing) ?? read }
        asset.cameraMake = before.cameraMake ?? found.facts.cameraMake
        asset.cameraModel = before.cameraModel ?? found.facts.cameraModel
        asset.lensModel = before.lensModel ?? found.facts.lensModel
        if asset.creationDate == found.facts.creationDate, asset.creationOffset == found.facts.creationOffset {
            asset.hasOnlyModificationDate = found.facts.isModificationDate
            asset.isCreationOffsetDerived = found.facts.isOffsetDerived
        }
        if found.facts.mediaSubtypes.contains(.photoHDR) { asset.mediaSubtypes.insert(.photoHDR) }
        if asset.originalResource?.type == .photo { asset.addEmbeddedVideo(found.facts.embeddedVideo) }
        if let digest = found.facts.imageDigest { imageDigests.append(ImageDigest(asset: found.asset, bytes: digest)) }
        if asset != before { try set(asset) }
    }
}
