import PhotoModel

/// The moments of a limited view, and their lists, kept current from the assets on its list.
///
/// Change records have the moments of the whole library. Those of a view have other counts and dates, and exist
/// only with assets of the view, so they are computed from these assets in the same way as in the catalog.
struct ViewMoments: Sendable {
    private var members: [ObjectID: MomentMember] = [:]
    private var byMoment: [Moment: Set<ObjectID>] = [:]
    private var byList: [MomentList: Set<Moment>] = [:]
    private var moments: [Moment: AssetCollection] = [:]
    private var lists: [MomentList: CollectionList] = [:]

    init(_ members: [ObjectID: MomentMember] = [:]) {
        self.members = members
        for (id, member) in members { byMoment[member.moment, default: []].insert(id) }
        for moment in byMoment.keys {
            moments[moment] = collection(of: moment)
            for list in moment.lists { byList[list, default: []].insert(moment) }
        }
        for list in byList.keys { lists[list] = collectionList(of: list) }
    }

    /// The approximate memory of one asset: it is in two tables, each with the text of its identifier.
    static let memberBytes = 160

    /// The approximate memory of the view.
    var bytes: Int { members.count * Self.memberBytes + moments.count * 1000 }

    /// Returns true if the view has a moment or a list of moments.
    func contains(_ object: ObjectID) -> Bool {
        if case .moment(let moment)? = DerivedCollection(object) { return moments[moment] != nil }
        return MomentList(object).map { lists[$0] != nil } ?? false
    }

    // MARK: Changes

    /// Applies a transaction.
    ///
    /// - Parameter granted: the list of the view after the transaction
    /// - Returns: the moments and lists whose properties have changed
    mutating func apply(_ record: ChangeRecord, granted: Set<ObjectID>) -> [RecordEntity] {
        var touched: [Moment: AssetCollection?] = [:]
        for change in record.assets {
            let before = members[change.id]
            let after = granted.contains(change.id) ? change.after.flatMap(MomentMember.init) : nil
            guard before != after else { continue }
            members[change.id] = after
            if let before {
                if touched[before.moment] == nil { touched[before.moment] = .some(moments[before.moment]) }
                remove(before, change.id)
            }
            if let after {
                if touched[after.moment] == nil { touched[after.moment] = .some(moments[after.moment]) }
                add(after, change.id)
            }
        }
        return touched.isEmpty ? [] : changes(since: touched)
    }

    private mutating func add(_ member: MomentMember, _ id: ObjectID) {
        byMoment[member.moment, default: []].insert(id)
        if moments[member.moment]?.add(member) == nil { moments[member.moment] = collection(of: member.moment) }
    }

    /// Removes a member. The properties are computed from all members again only if it has the first or the last date.
    private mutating func remove(_ member: MomentMember, _ id: ObjectID) {
        byMoment[member.moment]?.remove(id)
        if byMoment[member.moment]?.isEmpty == true { byMoment[member.moment] = nil }
        if moments[member.moment]?.remove(member) != true { moments[member.moment] = collection(of: member.moment) }
    }

    /// Returns the moments whose properties have changed, and their lists, whose properties are computed again.
    private mutating func changes(since touched: [Moment: AssetCollection?]) -> [RecordEntity] {
        var entities: [RecordEntity] = []
        var touchedLists: Set<MomentList> = []
        for (moment, before) in touched {
            let after = moments[moment]
            guard before != after else { continue }
            for list in moment.lists {
                touchedLists.insert(list)
                if after == nil { byList[list]?.remove(moment) } else { byList[list, default: []].insert(moment) }
            }
            entities.append(.collection(EntityStates(moment.id, before: before, after: after)))
        }
        for list in touchedLists {
            let (before, after) = (lists[list], collectionList(of: list))
            guard before != after else { continue }
            lists[list] = after
            if after == nil { byList[list] = nil }
            entities.append(.list(EntityStates(list.id, before: before, after: after)))
        }
        return entities
    }

    /// Returns the moments and lists whose properties differ in a later state of the view.
    func changes(to later: ViewMoments) -> [RecordEntity] {
        let collections = Set(moments.keys).union(later.moments.keys).filter { moments[$0] != later.moments[$0] }
        let changed = Set(lists.keys).union(later.lists.keys).filter { lists[$0] != later.lists[$0] }
        return collections.map { .collection(EntityStates($0.id, before: moments[$0], after: later.moments[$0])) }
            + changed.map { .list(EntityStates($0.id, before: lists[$0], after: later.lists[$0])) }
    }

    private func collection(of moment: Moment) -> AssetCollection? {
        moment.collection(of: byMoment[moment, default: []].lazy.compactMap { members[$0] })
    }

    private func collectionList(of list: MomentList) -> CollectionList? {
        list.collectionList(of: byList[list, default: []].lazy.compactMap { moments[$0] })
    }
}
