import Contracts
import Hosting
import JSONValue
import Logging
import Messaging
import PhotoClient
import PhotoModel
import Synchronization

/// Looks up assets: in the cache that the change feed keeps valid, else in the catalog.
final class AssetSource: Sendable {
    /// Fetches assets from the catalog. Ids that do not exist are missing in the page.
    typealias Lookup =
        @Sendable (_ ids: [ObjectID], _ atLeast: ChangeToken?) async throws(RPCError) -> FetchAssets.Result

    /// The assets of one lookup; ids that do not exist are missing.
    struct Answer: Sendable {
        var assets: [ObjectID: AssetFacts] = [:]
        /// Quarantined resources of these assets: their bytes must not be opened.
        var quarantined: [QuarantinedResource] = []
        /// The sequence at which the assets were read.
        var sequence: Int64
    }

    private let lookup: Lookup
    private let clock: MonotonicClock
    private let book: Mutex<AssetBook>
    private let asked: Hosting.Figures.Counter

    /// The most assets that are cached, at about half a KiB each.
    static let limit = 20_000

    init(figures: PictureFigures, clock: MonotonicClock = .system, lookup: @escaping Lookup) {
        self.lookup = lookup
        self.clock = clock
        book = Mutex(AssetBook(limit: Self.limit))
        asked = figures.all.counter("assetsAsked")
    }

    /// Returns the assets if all of them are cached and valid; nil if the catalog has to be asked.
    func known(_ ids: [ObjectID], atLeast: ChangeToken?) -> Answer? {
        let now = clock.nowMicroseconds()
        return book.withLock { book -> Answer? in
            var answer = Answer(sequence: .max)
            for id in ids {
                guard let (facts, sequence) = book.asset(id, atLeast: atLeast, now: now) else { return nil }
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
        let facts = page.assets.map(AssetFacts.init)
        // The feed does not announce quarantined resources nor when they may be tried again: their assets are not
        // cached.
        let aside = Set(page.quarantined.map(\.digest))
        let told = facts.filter { asset in !asset.resources.contains { aside.contains($0.digest) } }
        book.withLock { $0.learn(told, at: page.token) }
        var answer = Answer(quarantined: page.quarantined, sequence: page.sequence)
        for asset in facts { answer.assets[asset.id] = asset }
        return answer
    }

    /// Drops the assets with these bytes, which crashed or hung a worker: the catalog has to say if they are
    /// quarantined now.
    func doubt(_ digest: String) { book.withLock { $0.forget(digest) } }

    /// Follows the feed until cancelled. If the feed ends, subscribes again after a pause.
    func follow(_ feed: ChangeFeed, pause: Duration = .seconds(1), logger: Logger) async {
        let feed = feed.confirming { [self] token in
            let now = clock.nowMicroseconds()
            book.withLock { $0.confirm(token, now: now) }
        }
        while !Task.isCancelled {
            do throws(RPCError) {
                for try await event in feed {
                    switch event {
                    case .change(let record):
                        book.withLock { $0.changed(record.assets.map(\.id), at: record.token) }
                    case .expired: book.withLock { $0.forget() }
                    case .caughtUp: break
                    }
                }
            } catch {
                logger.warning("the change feed failed; subscribing again", metadata: ["why": "\(error.message)"])
            }
            book.withLock { $0.forget() }
            await Waiting.beforeRetry(pause)
        }
    }

    var figures: JSONObject {
        let now = clock.nowMicroseconds()
        return book.withLock { ["kept": JSON($0.count), "isFollowing": .bool($0.isFresh(at: now))] }
    }
}

extension AssetSource.Answer {
    /// Returns the error if the plan's source is quarantined; nil if it may be opened.
    func refusal(of plan: RenditionPlan, _ asset: AssetFacts) -> RPCError? {
        quarantined.first { $0.digest == plan.digest }?.refusal(of: asset.filename ?? asset.id.text)
    }
}
