import Basics
import PhotoModel

/// The moments of a limited view.
///
/// An asset's own properties decide in which moment it is, so the moments of the view are those of the assets on the
/// list. Their counts and dates are computed from these assets, because the stored ones include other assets.
extension LimitedView {
    /// Returns the moments at a sequence.
    func moments(_ results: ResultReader, at sequence: Int64) throws -> [PhotoCollection] {
        try momentCollections(results, at: sequence).map { .collection($0) }
    }

    /// Returns the lists of the moments at a sequence, with counts and dates of these moments alone.
    func momentLists(_ results: ResultReader, at sequence: Int64) throws -> [PhotoCollection] {
        var lists: [MomentList: [AssetCollection]] = [:]
        for collection in try momentCollections(results, at: sequence) {
            guard case .moment(let moment)? = DerivedCollection(collection.id) else { continue }
            for list in moment.lists { lists[list, default: []].append(collection) }
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
    func momentMembers(_ results: ResultReader, at sequence: Int64) throws -> [(id: ObjectID, member: MomentMember)] {
        var members: [(id: ObjectID, member: MomentMember)] = []
        try forEachInMoments(results, at: sequence) { members.append(($0.id, $1)) }
        return members
    }

    private func momentCollections(_ results: ResultReader, at sequence: Int64) throws -> [AssetCollection] {
        var members: [Moment: [MomentMember]] = [:]
        try forEachInMoments(results, at: sequence) { members[$1.moment, default: []].append($1) }
        return members.compactMap { moment, members in
            guard var collection = moment.collection(of: members) else { return nil }
            collection.localizedLocationNames = moment.placeNames
            collection.revision = Revision(facts: [
                Int64(collection.estimatedAssetCount ?? 0), collection.startDate ?? 0, collection.endDate ?? 0,
                collection.creationDate, collection.modificationDate,
            ])
            return collection
        }
    }

    private func forEachInMoments(
        _ results: ResultReader,
        at sequence: Int64,
        _ visit: (Asset, MomentMember) -> Void
    ) throws {
        let granted = try assets(results.reader, at: sequence, results.head)
        guard !granted.ids.isEmpty else { return }
        let members = try Fetch(.assets(.library), includeAllBurstAssets: true, sourceTypes: .all).limited(to: granted)
        try results.each(try results.rows(of: members, at: sequence), at: sequence, projection: Self.facts) { asset in
            if let member = MomentMember(asset) { visit(asset, member) }
        }
    }

    /// Returns true if the view has the object to which a fetch refers, at a sequence.
    func hasObject(of fetch: Fetch, _ results: ResultReader, at sequence: Int64) throws -> Bool {
        let (reader, head) = (results.reader, results.head)
        let moments: FetchKind.AssetSource
        switch fetch.kind {
        case .assets(let source) where source.isOfMoments: moments = source
        case .assets: return try HistoricalState(reader: reader, sequence: sequence, head: head).hasObject(of: fetch)
        case .children(let list) where !list.isTransient: moments = .below(list)
        default: return true
        }
        return try hasAsset(in: moments, assets(reader, at: sequence, head), reader, at: sequence, head)
    }

    /// Returns true if an asset of the view is in a moment or in a list of moments.
    ///
    /// - Parameter moments: the source of a fetch of the assets in it
    func hasAsset(
        in moments: FetchKind.AssetSource,
        _ granted: GrantedAssets,
        _ reader: LibraryReader,
        at sequence: Int64,
        _ head: LibraryHead
    ) throws -> Bool {
        let members = try Fetch(.assets(moments), includeAllBurstAssets: true, sourceTypes: .all).limited(to: granted)
        guard sequence < head.sequence else {
            return try reader.fetches.assetRows(members, FetchStore.PageRange(from: 0, count: 1))?.isEmpty == false
        }
        // The result, and the time that it takes, do not depend on the existence of the object in the library.
        return try !HistoricalState(reader: reader, sequence: sequence, head: head).result(of: members).isEmpty
    }

    /// Returns true if a collection is in the view: a smart album, or a moment or a list of moments with an asset of
    /// the view.
    func hasCollection(_ id: ObjectID, _ reader: LibraryReader, _ head: LibraryHead) throws -> Bool {
        let moments: FetchKind.AssetSource
        switch DerivedCollection(id) {
        case .smartAlbum: return true
        case .moment(let moment): moments = .moment(moment)
        case nil:
            guard MomentList(id) != nil else { return false }
            moments = .below(id)
        }
        return try hasAsset(in: moments, assets(reader, at: head.sequence, head), reader, at: head.sequence, head)
    }

    /// The members of an asset from which the properties of a moment are computed.
    private static let facts = AssetProjection(members: [
        "id", "creationDate", "creationOffset", "addedDate", "trashedDate", "location", "isHidden",
    ])
}

extension Revision {
    /// Creates the revision of an entity that no transaction stores, because it is computed from the assets of a view:
    /// equal facts have equal revisions, and other facts have another one.
    fileprivate init(facts: [Int64]) {
        var bytes: [UInt8] = []
        for fact in facts { withUnsafeBytes(of: fact.bigEndian) { bytes += $0 } }
        self.init(SHA256.hash(data: bytes).prefix(7).reduce(Int64(0)) { $0 << 8 | Int64($1) })
    }
}
