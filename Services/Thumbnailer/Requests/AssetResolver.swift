import Basics
import Contracts
import Hosting
import JSONValue
import Logging
import PhotoClient
import PhotoModel
import Synchronization

/// Looks up assets: in the cache that the change feed keeps valid, else in the catalog.
final class AssetResolver: Sendable {
    /// Fetches assets from the catalog. Ids that do not exist are missing in the page.
    typealias Lookup =
        @Sendable (_ ids: [ObjectID], _ atLeast: ChangeToken?) async throws(RPCError) -> FetchAssets.Result

    /// The assets of one lookup; ids that do not exist are missing.
    struct Answer: Sendable {
        var assets: [ObjectID: AssetSummary] = [:]
        /// Quarantined resources of these assets: their bytes must not be opened.
        var quarantined: [QuarantinedResource] = []
        /// The sequence at which the assets were read.
        var sequence: Int64
    }

    private let lookup: Lookup
    private let clock: MonotonicClock
    private let cache: Mutex<VerifiedAssetCache>
    private let asked: Hosting.Metrics.Counter

    /// The most assets that are cached, at about half a KiB each.
    static let limit = 20_000

    init(metrics: ThumbnailerMetrics, clock: MonotonicClock = .system, lookup: @escaping Lookup) {
        self.lookup = lookup
        self.clock = clock
        cache = Mutex(VerifiedAssetCache(limit: Self.limit))
        asked = metrics.all.counter("assetsAsked")
    }

    /// Returns the assets if all of them are cached and valid; nil if the catalog has to be asked.
    func known(_ ids: [ObjectID], atLeast: ChangeToken?) -> Answer? {
        let now = clock.nowMicroseconds()
        return cache.withLock { cache -> Answer? in
            var answer = Answer(sequence: .max)
            for id in ids {
                guard let (facts, sequence) = cache.asset(id, atLeast: atLeast, now: now) else { return nil }
                answer.assets[id] = facts
                answer.sequence = min(answer.sequence, sequence)
            }
            return ids.isEmpty ? nil : answer
        }
    }

    /// Returns the assets that exist, from the cache or from the catalog.
    func assets(_ ids: [ObjectID], atLeast: ChangeToken?) async throws(RPCError) -> Answer {
        if let found = known(ids, atLeast: atLeast) { return found }
        asked.add(ids.count)
        let page = try await lookup(ids, atLeast)
        let facts = page.assets.map(AssetSummary.init)
        // The feed does not announce quarantined resources nor when they may be tried again: their assets are not
        // cached.
        let aside = Set(page.quarantined.map(\.digest))
        let usable = facts.filter { asset in !asset.resources.contains { aside.contains($0.digest) } }
        cache.withLock { $0.insert(usable, at: page.token) }
        var answer = Answer(quarantined: page.quarantined, sequence: page.sequence)
        for asset in facts { answer.assets[asset.id] = asset }
        return answer
    }

    /// Drops the assets with these bytes, which crashed or hung a worker: the catalog has to say if they are
    /// quarantined now.
    func doubt(_ digest: String) { cache.withLock { $0.forget(digest) } }

    /// Follows the feed until cancelled. If the feed ends, subscribes again after a pause.
    func follow(_ feed: ChangeFeed, pause: Duration = .seconds(1), logger: Logger) async {
        let feed = feed.confirming { [self] token in
            let now = clock.nowMicroseconds()
            cache.withLock { $0.confirm(token, now: now) }
        }
        while !Task.isCancelled {
            do throws(RPCError) {
                for try await event in feed {
                    switch event {
                    case .change(let record):
                        cache.withLock { $0.changed(record.assets.map(\.id), at: record.token) }
                    case .expired: cache.withLock { $0.forget() }
                    case .caughtUp: break
                    }
                }
            } catch {
                logger.warning("the change feed failed; subscribing again", metadata: ["why": "\(error.message)"])
            }
            cache.withLock { $0.forget() }
            await TaskDelay.retryDelay(pause)
        }
    }

    var metrics: JSONObject {
        let now = clock.nowMicroseconds()
        return cache.withLock { ["kept": JSON($0.count), "isFollowing": .bool($0.isFresh(at: now))] }
    }
}

extension AssetResolver.Answer {
    /// Returns the error if the plan's source is quarantined; nil if it may be opened.
    func rpcError(of plan: RenditionPlan, _ asset: AssetSummary) -> RPCError? {
        quarantined.first { $0.digest == plan.digest }?.rpcError(of: asset.filename ?? asset.id.text)
    }
}
