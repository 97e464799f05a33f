import Contracts
import PhotoModel

/// What the thumbnailer must know of an asset.
struct AssetFacts: Sendable, Hashable {
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

/// The assets looked up lately, as long as the feed vouches that they have not changed since.
///
/// Pure: the feed's words and the time come in. An asset is answered from here only while the feed has confirmed within
/// ``patience`` that everything was told; a change drops it. So an answer is at most that far behind the catalog, and
/// where the feed is silent every asset is asked for anew.
struct AssetBook: Sendable {
    /// How long a confirmation counts, in microseconds: the feed's interval of a second, and some for its way.
    static let patience: Int64 = 1_200_000

    private var order: LeastRecent<ObjectID>
    private var facts: [ObjectID: AssetFacts] = [:]
    private var position: ChangeToken?
    private var confirmedAt = Int64.min

    /// - Parameter limit: assets that it holds
    init(limit: Int) {
        order = LeastRecent(budget: Int64(limit))
    }

    var count: Int { facts.count }

    /// Whether the feed vouches for what stands here.
    func isFresh(at now: Int64) -> Bool {
        position != nil && confirmedAt != .min && now - confirmedAt <= Self.patience
    }

    /// The asset, and the sequence up to which it is known to be as it is; nil where the catalog has to be asked.
    mutating func asset(_ id: ObjectID, atLeast: ChangeToken?, now: Int64) -> (facts: AssetFacts, sequence: Int64)? {
        guard isFresh(at: now), let position, let asset = facts[id] else { return nil }
        if let atLeast, atLeast.library != position.library || atLeast.sequence > position.sequence { return nil }
        order.touch(id)
        return (asset, position.sequence)
    }

    /// The catalog answered. What it read before the feed's position may be older than what the feed has told: it is
    /// not kept.
    mutating func learn(_ assets: [AssetFacts], at token: ChangeToken) {
        guard let position, position.library == token.library, token.sequence >= position.sequence else { return }
        for asset in assets {
            facts[asset.id] = asset
            for gone in order.insert(asset.id, cost: 1) { facts[gone] = nil }
        }
    }

    /// A change was told: what it touched is asked for anew.
    mutating func changed(_ ids: [ObjectID], at token: ChangeToken) {
        for id in ids where order.remove(id) != nil { facts[id] = nil }
        if position?.library == token.library { position = token }
    }

    /// Assets with these bytes are asked for anew.
    mutating func forget(_ digest: String) {
        for (id, asset) in facts where asset.resources.contains(where: { $0.digest == digest }) {
            order.remove(id)
            facts[id] = nil
        }
    }

    /// Everything up to the token has been told.
    mutating func confirm(_ token: ChangeToken, now: Int64) {
        if position?.library != token.library { forget() }
        position = token
        confirmedAt = now
    }

    /// The feed begins anew: nothing that was known counts.
    mutating func forget() {
        order = LeastRecent(budget: order.budget)
        facts = [:]
        position = nil
        confirmedAt = .min
    }
}
