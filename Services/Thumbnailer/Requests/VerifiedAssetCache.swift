import Contracts
import PhotoModel

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

/// Recently looked-up assets that, according to the change feed, have not changed since.
///
/// Pure: feed events and the time are passed in. An asset is returned only if the feed has confirmed within
/// ``maxAge`` that all changes were delivered; a change removes its asset. While the feed is silent every lookup goes
/// to the catalog. ``AssetResolver`` refuses assets with changes that are committed but not delivered yet.
struct VerifiedAssetCache: Sendable {
    /// How long a confirmation is valid, in microseconds: the feed's interval of one second plus time for delivery.
    static let maxAge: Int64 = 1_200_000

    private var order: LRUIndex<ObjectID>
    /// Each asset with the sequence at which the catalog returned it.
    private var facts: [ObjectID: (summary: AssetSummary, readAt: Int64)] = [:]
    private var position: ChangeToken?
    private var confirmedAt = Int64.min

    /// - Parameter limit: the most assets that are cached
    init(limit: Int) {
        order = LRUIndex(budget: Int64(limit))
    }

    var count: Int { facts.count }

    /// Returns true if the feed has confirmed the cached assets recently enough.
    func isFresh(at now: Int64) -> Bool {
        position != nil && confirmedAt != .min && now - confirmedAt <= Self.maxAge
    }

    /// Returns the asset and the sequence up to which it is known to be unchanged, or nil if the catalog has to be
    /// asked.
    mutating func asset(_ id: ObjectID, atLeast: ChangeToken?, now: Int64) -> (facts: AssetSummary, sequence: Int64)? {
        guard isFresh(at: now), let position, let asset = facts[id] else { return nil }
        if let atLeast, atLeast.library != position.library || atLeast.sequence > position.sequence { return nil }
        order.touch(id)
        return (asset.summary, position.sequence)
    }

    /// Caches assets that the catalog returned. A page read before the feed's position may be older than changes
    /// already delivered, so it is not cached.
    mutating func insert(_ assets: [AssetSummary], at token: ChangeToken) {
        guard let position, position.library == token.library, token.sequence >= position.sequence else { return }
        for asset in assets {
            facts[asset.id] = (asset, token.sequence)
            for gone in order.insert(asset.id, cost: 1) { facts[gone] = nil }
        }
    }

    /// Drops the assets touched by a change, unless they were read after it: the feed may deliver it later.
    mutating func changed(_ ids: [ObjectID], at token: ChangeToken) {
        let isOwn = position?.library == token.library
        for id in ids where !isOwn || facts[id].map({ $0.readAt < token.sequence }) ?? false {
            order.remove(id)
            facts[id] = nil
        }
        if isOwn { position = token }
    }

    /// Drops the assets that have a resource with this digest.
    mutating func forget(_ digest: String) {
        for (id, asset) in facts where asset.summary.resources.contains(where: { $0.digest == digest }) {
            order.remove(id)
            facts[id] = nil
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
        facts = [:]
        position = nil
        confirmedAt = .min
    }
}
