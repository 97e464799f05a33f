import PhotoModel

/// Runs fetches of collections and lists as SQL. Its results are those of evaluating ``Fetch`` in memory.
struct CollectionFetchStore {
    let database: SQLConnection

    /// A part of a result, and the size of the whole result after offset and limit.
    struct Page {
        var objects: [PhotoCollection]
        var count: Int
    }

    /// Returns a page of collections, lists, or both mixed, in the order of the fetch.
    ///
    /// - Returns: nil if the object that the fetch refers to does not exist
    func page(_ fetch: Fetch, _ range: FetchStore.PageRange) throws -> Page? {
        switch fetch.kind {
        case .assets: return nil
        case .collections, .collectionIDs, .collectionsContaining:
            guard let source = try collections(fetch) else { return nil }
            return try page(fetch, range, source, .collection) { .collection(try CollectionStore.collection($0)) }
        case .lists, .listIDs, .listsContaining:
            guard let source = try lists(fetch) else { return nil }
            return try page(fetch, range, source, .list) { .list(try CollectionStore.list($0)) }
        case .children(let list):
            guard try CollectionStore(database: database).list(list) != nil else { return nil }
            guard MomentList(list) == nil else {
                guard let source = try collections(fetch) else { return nil }
                return try page(fetch, range, source, .collection) { .collection(try CollectionStore.collection($0)) }
            }
            return try children(fetch, of: list, range)
        }
    }

    private struct Source {
        var text: SQLFragment
        var conditions: [SQLFragment]
        var order: String
    }

    private func page(
        _ fetch: Fetch,
        _ range: FetchStore.PageRange,
        _ source: Source,
        _ table: PredicateTable,
        _ entity: (SQLRow) throws -> PhotoCollection
    ) throws -> Page {
        var source = source
        var filter: Predicate?
        if let predicate = fetch.predicate {
            var lowering = PredicateLowering(table: table)
            lowering.dialect = database.dialect
            if database.dialect == .postgresql, predicate.root.needsFunctions(table) { filter = predicate }
            source.conditions.append(
                lowering.lower(filter == nil ? predicate.root : predicate.root.candidates(table))
            )
        }
        let (columns, id) =
            table == .list ? (CollectionStore.listColumns, "l.id") : (CollectionStore.collectionColumns, "c.id")
        let text = source.text + " WHERE " + .joined(source.conditions + [SQLFragment("TRUE")], " AND ")
        let count = "SELECT count(*) FROM " + text
        let all = try database.first(count) { $0.int(0) }
        let page =
            "SELECT \(columns) FROM " + text + " ORDER BY "
            + (FetchStore.order(fetch.sort, table, id: id, dialect: database.dialect) ?? source.order)
            + (filter == nil ? FetchStore.limit(fetch, range) : SQLFragment(""))
        if let filter {
            let candidates = try database.all(page, read: entity)
            return fetch.page(try filter.matching(candidates, database.checkCancellation), range)
        }
        return Page(objects: try database.all(page, read: entity), count: fetch.applyingOffsetAndLimit(to: all ?? 0))
    }

    // MARK: Sources

    private func collections(_ fetch: Fetch) throws -> Source? {
        var source = Source(
            text: SQLFragment(CollectionStore.collectionSource),
            conditions: [],
            order: "c.creation_date, c.id"
        )
        func require(_ condition: String, _ value: (some BinaryInteger)?) {
            if let value { source.conditions.append(SQLFragment(condition, [SQLValue(value)])) }
        }
        switch fetch.kind {
        case .collections(let type, let subtype):
            require("c.type = ?", type?.number)
            require("c.subtype = ?", subtype?.number)
            if type == .moment { source.order = "c.start_date, c.id" }
        case .collectionIDs(let list):
            let ids = SQLValue(jsonList(list.ids))
            let tables = CollectionStore.collectionSource(on: "c.id = e.value")
            source.text = SQLFragment("json_each(?) e CROSS JOIN \(tables)", [ids])
            source.order = "e.key"
        case .collectionsContaining(let id, let type):
            let assets = AssetStore(database: database)
            guard let row = try assets.rowNumber(of: id), let asset = try assets.assets([row])[row] else { return nil }
            source.conditions.append(
                SQLFragment(
                    "c.id IN (SELECT value FROM json_each(?))",
                    [SQLValue(jsonList(asset.collections))]
                )
            )
            require("c.type = ?", type?.number)
        case .children(let list):
            guard let moments = MomentList(list) else { return nil }
            require("c.\(moments.column) = ?", moments.key)
            source.order = "c.start_date, c.id"
        case .assets, .lists, .listIDs, .listsContaining: return nil
        }
        return source
    }

    private func lists(_ fetch: Fetch) throws -> Source? {
        var source = Source(
            text: SQLFragment(CollectionStore.listSource),
            conditions: [],
            order: "l.creation_date, l.id"
        )
        switch fetch.kind {
        case .lists(let type, let subtype):
            if let type { source.conditions.append(SQLFragment("l.type = ?", [SQLValue(type.number)])) }
            if let subtype { source.conditions.append(SQLFragment("l.subtype = ?", [SQLValue(subtype.number)])) }
            if type == .momentList { source.order = "l.start_date, l.id" }
        case .listIDs(let list):
            let ids = SQLValue(jsonList(list.ids))
            let tables = CollectionStore.listSource(on: "l.id = e.value")
            source.text = SQLFragment("json_each(?) e CROSS JOIN \(tables)", [ids])
            source.order = "e.key"
        case .listsContaining(let member):
            let store = CollectionStore(database: database)
            let object: PhotoCollection? =
                member.kind == .collectionList
                ? try store.list(member).map { .list($0) } : try store.collection(member).map { .collection($0) }
            guard let object else { return nil }
            source.conditions.append(
                SQLFragment(
                    "l.id IN (SELECT value FROM json_each(?))",
                    [SQLValue(jsonList(object.lists))]
                )
            )
        default: return nil
        }
        return source
    }

    /// Returns albums and folders of a folder. They come from two tables and are sorted here.
    private func children(_ fetch: Fetch, of list: ObjectID, _ range: FetchStore.PageRange) throws -> Page {
        var objects: [PhotoCollection] = []
        try database.each(
            "SELECT \(CollectionStore.collectionColumns) FROM \(CollectionStore.collectionSource) WHERE p.id = ?",
            list.text
        ) { objects.append(.collection(try CollectionStore.collection($0))) }
        try database.each(
            "SELECT \(CollectionStore.listColumns) FROM \(CollectionStore.listSource) WHERE p.id = ?",
            list.text
        ) { objects.append(.list(try CollectionStore.list($0))) }
        if let predicate = fetch.predicate { objects = try predicate.matching(objects, database.checkCancellation) }
        objects.sort { fetch.areInIncreasingOrder($0, $1) }
        return fetch.page(objects, range)
    }
}

extension Predicate {
    /// Returns the objects that match.
    ///
    /// - Parameter check: called before each evaluation, which may take long; throws if the waiting task was cancelled
    func matching(_ objects: [PhotoCollection], _ check: () throws -> Void) throws -> [PhotoCollection] {
        try objects.filter { object in
            try check()
            return evaluate(object)
        }
    }
}
