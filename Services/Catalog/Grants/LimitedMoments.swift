import PhotoModel

/// The moments of a limited view.
///
/// An asset's own properties decide in which moment it is, so the moments of the view are those of the assets on the list.
/// Their facts are made of these assets: the stored ones count the others too.
extension LimitedView {
    /// Returns the moments at a sequence.
    func moments(_ results: ResultRows, at moment: Int64) throws -> [PhotoCollection] {
        try byPlace(results, at: moment).values.map { .collection($0) }
    }

    /// Returns the lists of the moments at a sequence, with counts and dates of these moments alone.
    func momentLists(_ results: ResultRows, at moment: Int64) throws -> [PhotoCollection] {
        var lists: [MomentList: CollectionList] = [:]
        for (place, collection) in try byPlace(results, at: moment) {
            for list in place.lists { lists[list, default: Self.empty(list)].add(collection) }
        }
        return lists.values.map { .list($0) }
    }

    private func byPlace(_ results: ResultRows, at moment: Int64) throws -> [Moment: AssetCollection] {
        let granted = try assets(results.reader, at: moment, results.head)
        guard !granted.ids.isEmpty else { return [:] }
        var moments: [Moment: AssetCollection] = [:]
        var newest = granted.version
        let members = try Fetch(.assets(.library), includeAllBurstAssets: true, sourceTypes: .all).limited(to: granted)
        try results.each(try results.rows(of: members, at: moment), at: moment, form: Self.facts) { asset in
            newest = max(newest, asset.revision.sequence)
            guard let place = asset.moment, let date = asset.creationDate else { return }
            moments[place, default: Self.empty(place)].add(asset, date)
        }
        // The newest change of the view: a moment also changes when an asset leaves it.
        for place in moments.keys { moments[place]?.revision = Revision(newest) }
        return moments
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
        let past = HistoricalState(reader: reader, moment: moment, head: head)
        return try past.hasObject(of: members) && !past.result(of: members).isEmpty
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
    private static let facts = AssetTextForm(members: [
        "id", "revision", "creationDate", "creationOffset", "modificationDate", "addedDate", "trashedDate", "location",
        "isHidden",
    ])

    private static func empty(_ place: Moment) -> AssetCollection {
        var collection = AssetCollection(place, revision: Revision(0))
        collection.localizedLocationNames = place.placeNames
        collection.creationDate = .max
        return collection
    }

    private static func empty(_ list: MomentList) -> CollectionList {
        var collection = CollectionList(list, revision: Revision(0))
        collection.creationDate = .max
        return collection
    }
}

extension AssetCollection {
    /// Adds a member of a moment to its facts.
    fileprivate mutating func add(_ asset: Asset, _ date: Int64) {
        estimatedAssetCount = (estimatedAssetCount ?? 0) + 1
        startDate = min(startDate ?? date, date)
        endDate = max(endDate ?? date, date)
        creationDate = min(creationDate, asset.addedDate)
        modificationDate = max(modificationDate, asset.modificationDate)
    }
}

extension CollectionList {
    /// Adds a moment of a list to its facts.
    fileprivate mutating func add(_ moment: AssetCollection) {
        childCount += 1
        revision = Revision(max(revision.sequence, moment.revision.sequence))
        startDate = [startDate, moment.startDate].compactMap { $0 }.min()
        endDate = [endDate, moment.endDate].compactMap { $0 }.max()
        creationDate = min(creationDate, moment.creationDate)
        modificationDate = max(modificationDate, moment.modificationDate)
    }
}
