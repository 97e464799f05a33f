import PhotoModel

/// An index of the observed fetches by their ``ReadTerm``s, so that a change is evaluated only with the fetches that it
/// can affect.
struct FetchIndex {
    private var terms: [ReadTerm: Set<Int>] = [:]
    private var ranges: [PredicateKey: RangeIndex] = [:]
    /// The keys that terms compare for equality, with the number of these terms.
    private var equalKeys: [PredicateKey: Int] = [:]
    /// The fetches that are evaluated at each change of an asset, a collection or a list.
    private var unindexed: [ObjectKind: Set<Int>] = [:]
    private var readTerms: [Int: [ReadTerm]] = [:]

    /// The number of fetches without terms.
    var unindexedCount: Int { Set(unindexed.values.joined()).count }

    mutating func insert(_ fetch: Fetch, number: Int) {
        guard let found = fetch.readTerms else {
            for kind in Self.kinds(of: fetch) { unindexed[kind, default: []].insert(number) }
            return
        }
        let distinct = Array(Set(found))
        readTerms[number] = distinct
        for term in distinct {
            switch term {
            case .range(let key, let range): ranges[key, default: RangeIndex()].insert(range, owner: number)
            case .equal(let key, _):
                if terms[term] == nil { equalKeys[key, default: 0] += 1 }
                terms[term, default: []].insert(number)
            default: terms[term, default: []].insert(number)
            }
        }
    }

    mutating func remove(number: Int) {
        for kind in ObjectKind.allCases { unindexed[kind]?.remove(number) }
        for term in readTerms.removeValue(forKey: number) ?? [] {
            if case .range(let key, _) = term {
                ranges[key]?.remove(owner: number)
                if ranges[key]?.isEmpty == true { ranges[key] = nil }
                continue
            }
            terms[term]?.remove(number)
            guard terms[term]?.isEmpty == true else { continue }
            terms[term] = nil
            if case .equal(let key, _) = term {
                let count = (equalKeys[key] ?? 1) - 1
                equalKeys[key] = count > 0 ? count : nil
            }
        }
    }

    // MARK: Looking up

    /// Returns the numbers of the fetches that a change of an asset can affect.
    mutating func candidates(_ states: EntityStates<Asset>) -> Set<Int> {
        var found = unindexed[.asset] ?? []
        if terms.isEmpty, ranges.isEmpty { return found }
        states.forEach { asset in
            add(.id(asset.id), to: &found)
            for membership in asset.memberships { add(.member(of: membership.collection), to: &found) }
            if let burst = asset.burstIdentifier { add(.burst(burst), to: &found) }
            for word in asset.keywords { add(.keyword(word), to: &found) }
            if let moment = asset.moment { add(.moment(moment), to: &found) }
            for album in SmartAlbum.every where terms[.smartAlbum(album)] != nil && album.contains(asset) {
                add(.smartAlbum(album), to: &found)
            }
            addValues(of: asset, to: &found)
        }
        return found
    }

    /// Returns the numbers of the fetches that a change of a collection can affect.
    mutating func candidates(_ states: EntityStates<AssetCollection>) -> Set<Int> {
        var found = unindexed[.assetCollection] ?? []
        states.forEach { collection in
            add(.id(collection.id), to: &found)
            if let parent = collection.parent { add(.child(of: parent), to: &found) }
            if case .moment(let moment)? = DerivedCollection(collection.id) {
                for list in moment.lists { add(.child(of: list.id), to: &found) }
            }
        }
        return found
    }

    /// Returns the numbers of the fetches that a change of a list can affect.
    mutating func candidates(_ states: EntityStates<CollectionList>) -> Set<Int> {
        var found = unindexed[.collectionList] ?? []
        states.forEach { list in
            add(.id(list.id), to: &found)
            if let parent = list.parent { add(.child(of: parent), to: &found) }
        }
        return found
    }

    private func add(_ term: ReadTerm, to found: inout Set<Int>) {
        if let fetches = terms[term] { found.formUnion(fetches) }
    }

    private mutating func addValues(of asset: Asset, to found: inout Set<Int>) {
        for key in equalKeys.keys { add(.equal(key, asset.value(of: key)), to: &found) }
        for key in ranges.keys {
            if let value = asset.value(of: key).rounded { ranges[key]?.find(value, into: &found) }
        }
    }

    private static func kinds(of fetch: Fetch) -> [ObjectKind] {
        switch fetch.kind.entityClass {
        case .asset: [.asset]
        case .assetCollection: [.assetCollection]
        case .collectionList: [.collectionList]
        case .collection: [.assetCollection, .collectionList]
        }
    }
}
