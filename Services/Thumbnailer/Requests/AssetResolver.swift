import Basics
import Contracts
import Hosting
import JSONValue
import Logging
import PhotoClient
import PhotoModel
import Storage
import Synchronization

/// Looks up assets in a cache that the change feed keeps valid, or else in the catalog.
///
/// The feed arrives a little later than a commit. A cached asset is therefore used only if the table of last changes,
/// which the catalog writes before each commit, has no later change of it: a client that has received the reply to a
/// change never gets the state before it.
final class AssetResolver: Sendable {
    /// Fetches assets from the catalog. Assets that do not exist are missing from the page.
    typealias Lookup =
        @Sendable (_ ids: [ObjectID], _ atLeast: ChangeToken?) async throws(RPCError) -> FetchAssets.Result

    /// The assets of one lookup, without those that do not exist.
    struct ResolvedAssets: Sendable {
        var assets: [ObjectID: AssetSummary] = [:]
        /// Quarantined resources of these assets: their bytes must not be opened.
        var quarantined: [QuarantinedResource] = []
        /// The sequence at which the assets were read.
        var sequence: Int64
    }

    private let lookup: Lookup
    private let clock: MonotonicClock
    private let state: Mutex<State>
    private let tablePath: String?
    private let askedAssets: Hosting.Metrics.Counter

    private struct State {
        var cache = VerifiedAssetCache(limit: AssetResolver.limit)
        /// Nil if the catalog does not write the table; then each request asks the catalog.
        var table: LastChangeTable?
        var isTableMissing = false
    }

    /// The maximum number of cached assets, at about half a KiB each.
    static let limit = 20_000

    /// - Parameter tablePath: the catalog's ``LastChangeFile``; nil if it is on another machine, or if there are
    ///   several catalogs, so that each request asks the catalog
    init(
        metrics: ThumbnailerMetrics,
        tablePath: String?,
        clock: MonotonicClock = .system,
        lookup: @escaping Lookup
    ) {
        self.lookup = lookup
        self.tablePath = tablePath
        self.clock = clock
        state = Mutex(State())
        askedAssets = metrics.all.counter("assetsAsked")
    }

    /// Returns the assets if all of them are cached and valid; nil if the catalog has to be asked.
    func cachedAssets(_ ids: [ObjectID], atLeast: ChangeToken?) -> ResolvedAssets? {
        let now = clock.nowMicroseconds()
        return state.withLock { state -> ResolvedAssets? in
            guard let table = state.table else { return nil }
            var found = ResolvedAssets(sequence: .max)
            for id in ids {
                guard let (summary, sequence) = state.cache.asset(id, atLeast: atLeast, now: now),
                    table.sequence(of: id.text) <= sequence
                else { return nil }
                found.assets[id] = summary
                found.sequence = min(found.sequence, sequence)
            }
            return ids.isEmpty ? nil : found
        }
    }

    /// Returns the assets that exist, from the cache or from the catalog.
    func resolve(_ ids: [ObjectID], atLeast: ChangeToken?) async throws(RPCError) -> ResolvedAssets {
        if let found = cachedAssets(ids, atLeast: atLeast) { return found }
        askedAssets.add(ids.count)
        let page = try await lookup(ids, atLeast)
        let summaries = page.assets.map(AssetSummary.init)
        // The feed does not announce when resources are quarantined or may be tried again, so their assets are not
        // cached.
        let quarantined = Set(page.quarantined.map(\.digest))
        let usable = summaries.filter { asset in !asset.resources.contains { quarantined.contains($0.digest) } }
        state.withLock { $0.cache.insert(usable, at: page.token) }
        var found = ResolvedAssets(quarantined: page.quarantined, sequence: page.sequence)
        for asset in summaries { found.assets[asset.id] = asset }
        return found
    }

    /// Drops the assets with these bytes, which made a worker crash or hang. The catalog may have quarantined them.
    func invalidate(_ digest: String) { state.withLock { $0.cache.forget(digest) } }

    /// Follows the feed until cancelled. If the feed ends, subscribes again after a pause.
    func follow(_ feed: ChangeFeed, pause: Duration = .seconds(1), logger: Logger) async {
        let feed = feed.confirming { [self] token in
            confirm(token, logger)
        }
        while !Task.isCancelled {
            do throws(RPCError) {
                for try await event in feed {
                    switch event {
                    case .change(let record):
                        state.withLock { $0.cache.changed(record.assets.map(\.id), at: record.token) }
                    case .expired: state.withLock { $0.cache.forget() }
                    case .caughtUp: break
                    }
                }
            } catch {
                logger.warning("the change feed failed; subscribing again", metadata: ["error": "\(error.message)"])
            }
            state.withLock { $0.cache.forget() }
            await TaskDelay.retryDelay(pause)
        }
    }

    /// Records that all changes up to the token have been delivered, and maps the table again if it is not the one that
    /// the catalog writes.
    func confirm(_ token: ChangeToken, _ logger: Logger) {
        guard let tablePath else { return }
        func covers(_ table: LastChangeTable) -> Bool {
            table.covers(library: token.library, sequence: token.sequence)
        }
        var table = state.withLock { $0.table }
        if table.map(covers) != true {
            table = (try? LastChangeTable(path: tablePath)).flatMap { covers($0) ? $0 : nil }
        }
        let now = clock.nowMicroseconds()
        let isNewlyMissing = state.withLock { [table] state in
            state.table = table
            state.cache.confirm(token, now: now)
            defer { state.isTableMissing = table == nil }
            return table == nil && !state.isTableMissing
        }
        if isNewlyMissing {
            logger.warning(
                "the catalog's table of last changes cannot be read; every image request asks the catalog",
                metadata: ["path": "\(tablePath)"]
            )
        }
    }

    var metrics: JSONObject {
        let now = clock.nowMicroseconds()
        return state.withLock {
            ["kept": JSON($0.cache.count), "isFollowing": .bool($0.table != nil && $0.cache.isFresh(at: now))]
        }
    }
}

extension AssetResolver.ResolvedAssets {
    /// Returns the error if the plan's source is quarantined; nil if it may be opened.
    func rpcError(of plan: RenditionPlan, _ asset: AssetSummary) -> RPCError? { rpcError(of: plan.digest, asset) }

    /// Returns the error if these bytes of an asset are quarantined; nil if they may be opened.
    func rpcError(of digest: String, _ asset: AssetSummary) -> RPCError? {
        quarantined.first { $0.digest == digest }?.rpcError(of: asset.filename ?? asset.id.text)
    }
}

// MARK: - The cache

/// Assets that were looked up recently and, according to the change feed, have not changed since.
///
/// It has no side effects: feed events and the time are passed in. An asset is returned only if the feed has confirmed
/// within ``maxAge`` that all changes were delivered; a change removes its asset. While the feed is silent every lookup
/// asks the catalog. ``AssetResolver`` refuses assets with changes that are committed but not delivered yet.
struct VerifiedAssetCache: Sendable {
    /// The time for which a confirmation is valid, in microseconds: the feed's interval of one second plus time for
    /// delivery.
    static let maxAge: Int64 = 1_200_000

    private var order: LRUIndex<ObjectID>
    /// Each asset with the sequence at which the catalog returned it.
    private var summaries: [ObjectID: (summary: AssetSummary, readAt: Int64)] = [:]
    private var position: ChangeToken?
    private var confirmedAt = Int64.min

    /// - Parameter limit: the maximum number of cached assets
    init(limit: Int) {
        order = LRUIndex(budget: Int64(limit))
    }

    var count: Int { summaries.count }

    /// Returns true if the feed has confirmed the cached assets recently enough.
    func isFresh(at now: Int64) -> Bool {
        position != nil && confirmedAt != .min && now - confirmedAt <= Self.maxAge
    }

    /// Returns the asset and the sequence up to which it is known to be unchanged, or nil if the catalog has to be
    /// asked.
    mutating func asset(_ id: ObjectID, atLeast: ChangeToken?, now: Int64) -> (asset: AssetSummary, sequence: Int64)? {
        guard isFresh(at: now), let position, let asset = summaries[id] else { return nil }
        if let atLeast, atLeast.library != position.library || atLeast.sequence > position.sequence { return nil }
        order.touch(id)
        return (asset.summary, position.sequence)
    }

    /// Caches assets that the catalog returned. A page read before the feed's position may be older than changes
    /// already delivered, so it is not cached.
    mutating func insert(_ assets: [AssetSummary], at token: ChangeToken) {
        guard let position, position.library == token.library, token.sequence >= position.sequence else { return }
        for asset in assets {
            summaries[asset.id] = (asset, token.sequence)
            for evicted in order.insert(asset.id, cost: 1) { summaries[evicted] = nil }
        }
    }

    /// Drops the assets of a change, unless they were read after it: the feed may deliver it late.
    mutating func changed(_ ids: [ObjectID], at token: ChangeToken) {
        let isSameLibrary = position?.library == token.library
        for id in ids where !isSameLibrary || summaries[id].map({ $0.readAt < token.sequence }) ?? false {
            order.remove(id)
            summaries[id] = nil
        }
        if isSameLibrary { position = token }
    }

    /// Drops the assets that have a resource with this digest.
    mutating func forget(_ digest: String) {
        for (id, asset) in summaries where asset.summary.resources.contains(where: { $0.digest == digest }) {
            order.remove(id)
            summaries[id] = nil
        }
    }

    /// Records that all changes up to the token have been delivered.
    mutating func confirm(_ token: ChangeToken, now: Int64) {
        if position?.library != token.library { forget() }
        position = token
        confirmedAt = now
    }

    /// Drops everything, because the feed starts again from an unknown position.
    mutating func forget() {
        order = LRUIndex(budget: order.budget)
        summaries = [:]
        position = nil
        confirmedAt = .min
    }
}

/// The part of an asset that the thumbnailer needs.
struct AssetSummary: Sendable, Hashable {
    var id: ObjectID
    var contentRevision: Revision
    var mediaType: MediaType
    var resources: [AssetResource]
    var filename: String?

    init(_ asset: Asset) {
        id = asset.id
        contentRevision = asset.contentRevision
        mediaType = asset.mediaType
        resources = asset.resources
        filename = asset.originalFilename
    }

    func resource(_ type: ResourceType) -> AssetResource? { resources.first { $0.type == type } }
}
