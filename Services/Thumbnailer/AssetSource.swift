import Contracts
import Hosting
import JSONValue
import Logging
import Messaging
import PhotoClient
import PhotoModel
import Synchronization

/// Knows assets: from what the feed vouches for, else from the catalog.
final class AssetSource: Sendable {
    /// Asks the catalog; the page names those that are missing.
    typealias Lookup =
        @Sendable (_ ids: [ObjectID], _ atLeast: ChangeToken?) async throws(RPCError) -> FetchAssets.Result

    /// Assets as they were found.
    struct Answer: Sendable {
        var assets: [ObjectID: AssetFacts] = [:]
        /// Bytes that may not be opened.
        var quarantined: [QuarantinedResource] = []
        /// The transaction at which they were read.
        var sequence: Int64
    }

    private let lookup: Lookup
    private let clock: MonotonicClock
    private let book: Mutex<AssetBook>
    private let asked: Hosting.Figures.Counter

    /// Assets that are kept, at about half a KiB each.
    static let limit = 20_000

    init(figures: PictureFigures, clock: MonotonicClock = .system, lookup: @escaping Lookup) {
        self.lookup = lookup
        self.clock = clock
        book = Mutex(AssetBook(limit: Self.limit))
        asked = figures.all.counter("assetsAsked")
    }

    /// The assets where the feed vouches for all of them; nil where the catalog has to be asked.
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

    /// Those of the assets that exist.
    func assets(_ ids: [ObjectID], atLeast: ChangeToken?) async throws(RPCError) -> Answer {
        if let found = known(ids, atLeast: atLeast) { return found }
        asked.add(ids.count)
        let page = try await lookup(ids, atLeast)
        let facts = page.assets.map(AssetFacts.init)
        // The feed does not tell what is set aside, nor when it may be tried again: those are asked for each time.
        let aside = Set(page.quarantined.map(\.digest))
        let told = facts.filter { asset in !asset.resources.contains { aside.contains($0.digest) } }
        book.withLock { $0.learn(told, at: page.token) }
        var answer = Answer(quarantined: page.quarantined, sequence: page.sequence)
        for asset in facts { answer.assets[asset.id] = asset }
        return answer
    }

    /// Bytes did harm: whether they are set aside now has to be asked.
    func doubt(_ digest: String) { book.withLock { $0.forget(digest) } }

    /// Follows the feed until cancelled; where it ends, takes it up again.
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
                logger.warning("the feed cannot be followed", metadata: ["why": "\(error.message)"])
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
    /// Why the bytes of a plan may not be opened; nil where they may be.
    func refusal(of plan: RenditionPlan, _ asset: AssetFacts) -> RPCError? {
        quarantined.first { $0.digest == plan.digest }?.refusal(of: asset.filename ?? asset.id.text)
    }
}
