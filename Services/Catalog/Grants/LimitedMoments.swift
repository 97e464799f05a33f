import Basics
import PhotoModel

/// The moments of a limited view.
///
/// An asset's own properties decide in which moment it is, so the moments of the view are those of the assets on the
/// list. Their counts and dates are computed from these assets: the stored ones include other assets.
extension LimitedView {
    /// Returns the moments at a sequence.
    func moments(_ results: ResultReader, at moment: Int64) throws -> [PhotoCollection] {
        try byPlace(results, at: moment).map { .collection($0) }
    }

    /// Returns the lists of the moments at a sequence, with counts and dates of these moments alone.
    func momentLists(_ results: ResultReader, at moment: Int64) throws -> [PhotoCollection] {
        var lists: [MomentList: [AssetCollection]] = [:]
        for collection in try byPlace(results, at: moment) {
            guard case .moment(let place)? = DerivedCollection(collection.id) else { continue }
            for list in place.lists { lists[list, default: []].append(collection) }
        }
        return lists.compactMap { list, moments in
            guard var entity = list.collectionList(of: moments) else { return nil }
            entity.revision = Revision(facts: [
                Int64(entity.childCount), entity.startDate ?? 0, entity.endDate ?? 0, entity.creationDate,
                entity.modificationDate,
            ])
            return .list(entity)
        }
    }

    /// Returns the assets of the view that are in a moment, at a sequence.
    func momentMembers(_ results: ResultReader, at moment: Int64) throws -> [(id: ObjectID, member: MomentMember)] {
        var members: [(id: ObjectID, member: MomentMember)] = []
        try eachInMoments(results, at: moment) { members.append(($0.id, $1)) }
        return members
    }

    private func byPlace(_ results: ResultReader, at moment: Int64) throws -> [AssetCollection] {
        var members: [Moment: [MomentMember]] = [:]
        try eachInMoments(results, at: moment) { members[$1.moment, default: []].append($1) }
        return members.compactMap { place, members in
            guard var collection = place.collection(of: members) else { return nil }
            collection.localizedLocationNames = place.placeNames
            collection.revision = Revision(facts: [
                Int64(collection.estimatedAssetCount ?? 0), collection.startDate ?? 0, collection.endDate ?? 0,
                collection.creationDate, collection.modificationDate,
            ])
            return collection
        }
    }

    private func eachInMoments(
        _ results: ResultReader,
        at moment: Int64,
        _ visit: (Asset, MomentMember) -> Void
    ) throws {
        let granted = try assets(results.reader, at: moment, results.head)
        guard !granted.ids.isEmpty else { return }
        let members = try Fetch(.assets(.library), includeAllBurstAssets: true, sourceTypes: .all).limited(to: granted)
        try results.each(try results.rows(of: members, at: moment), at: moment, projection: Self.facts) { asset in
            if let member = MomentMember(asset) { visit(asset, member) }
        }
    }

    /// Returns true if the view has the object in which a fetch selects, at a sequence.
    func hasObject(of fetch: Fetch, _ results: ResultReader, at moment: Int64) throws -> Bool {
        let (reader, head) = (results.reader, results.head)
        let place: FetchKind.AssetSource
        switch fetch.kind {
        case .assets(let source) where source.isOfMoments: place = source
        case .assets: return try HistoricalState(reader: reader, sequence: moment, head: head).hasObject(of: fetch)
        case .children(let list) where !list.isTransient: place = .below(list)
        default: return true
        }
        return try has(place, assets(reader, at: moment, head), reader, at: moment, head)
    }

    /// Returns true if an asset of the view is in a moment or in a list of moments.
    ///
    /// - Parameter place: the source of a fetch of its assets
    func has(
        _ place: FetchKind.AssetSource,
        _ granted: GrantedAssets,
        _ reader: LibraryReader,
        at moment: Int64,
        _ head: LibraryHead
    ) throws -> Bool {
        let members = try Fetch(.assets(place), includeAllBurstAssets: true, sourceTypes: .all).limited(to: granted)
        guard moment < head.sequence else {
            return try reader.fetches.assetRows(members, FetchStore.PageRange(from: 0, count: 1))?.isEmpty == false
        }
        // The result and the time are the same whether or not the library had the object.
        return try !HistoricalState(reader: reader, sequence: moment, head: head).result(of: members).isEmpty
    }

    /// Returns true if a collection is in the view: a smart album, or a moment or a list of moments with an asset of
    /// the view.
    func hasCollection(_ id: ObjectID, _ reader: LibraryReader, _ head: LibraryHead) throws -> Bool {
        let place: FetchKind.AssetSource
        switch DerivedCollection(id) {
        case .smartAlbum: return true
        case .moment(let moment): place = .moment(moment)
        case nil:
            guard MomentList(id) != nil else { return false }
            place = .below(id)
        }
        return try has(place, assets(reader, at: head.sequence, head), reader, at: head.sequence, head)
    }

    /// The members of an asset from which the properties of a moment are computed.
    private static let facts = AssetProjection(members: [
        "id", "creationDate", "creationOffset", "addedDate", "trashedDate", "location", "isHidden",
    ])
}

extension Revision {
    /// The revision of an entity that no transaction stores, because it is made of the assets of a view: equal facts
    /// have equal revisions, and other facts another one.
    fileprivate init(facts: [Int64]) {
        var bytes: [UInt8] = []
        for fact in facts { withUnsafeBytes(of: fact.bigEndian) { bytes += $0 } }
        self.init(SHA256.hash(data: bytes).prefix(7).reduce(Int64(0)) { $0 << 8 | Int64($1) })
    }
}
