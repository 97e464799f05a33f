import PhotoModel

/// The moments of a limited view.
///
/// An asset's own properties decide in which moment it is, so the moments of the view are those of the assets on the list.
/// Their facts are made of these assets: the stored ones count the others too.
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
            entity.revision = Revision(moments.map(\.revision.sequence).max() ?? 0)
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
        var newest = try assets(results.reader, at: moment, results.head).version
        try eachInMoments(results, at: moment) { asset, member in
            newest = max(newest, asset.revision.sequence)
            members[member.moment, default: []].append(member)
        }
        return members.compactMap { place, members in
            guard var collection = place.collection(of: members) else { return nil }
            collection.localizedLocationNames = place.placeNames
            // The newest change of the view: a moment also changes when an asset leaves it.
            collection.revision = Revision(newest)
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

    /// Returns whether the view has the object in which a fetch selects, at a sequence.
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
            return try reader.fetches.assetRows(members, FetchStore.Window(from: 0, count: 1))?.isEmpty == false
        }
        // It makes no difference, also not to the time, whether the library had the object.
        return try !HistoricalState(reader: reader, sequence: moment, head: head).result(of: members).isEmpty
    }

    /// Returns true if a collection is in the view: a smart album, or a moment or a list of moments with an asset of the
    /// view.
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

    /// The members of an asset of which the facts of a moment are made.
    private static let facts = AssetProjection(members: [
        "id", "revision", "creationDate", "creationOffset", "addedDate", "trashedDate", "location", "isHidden",
    ])
}
