public import JSONValue

extension Fetch {
    /// Checks a fetch description.
    ///
    /// - Throws: `unsupported_predicate`, `invalid_predicate`, `unsupported_sort_key`, `invalid_options`,
    ///   `limit_exceeded`
    public init(_ description: FetchDescription) throws(PredicateError) {
        let kind = try Self.kind(of: description)
        var sort: [SortDescriptor] = []
        for key in description.sort {
            sort.append(try SortDescriptor(key.key, ascending: key.ascending, of: kind.entityClass))
        }
        var predicate: Predicate?
        if let json = description.predicate { predicate = try Predicate(anyForm: json, of: kind.entityClass) }
        try self.init(
            kind,
            predicate: predicate,
            sort: sort,
            limit: description.limit,
            offset: description.offset,
            mediaType: description.mediaType,
            includeHidden: description.includeHidden,
            includeAllBurstAssets: description.includeAllBurstAssets,
            sourceTypes: description.sourceTypes,
            inTrash: description.inTrash
        )
    }

    /// Decodes and checks a fetch. A malformed one is `invalid_options`.
    public init(json: JSON) throws(PredicateError) {
        let description: FetchDescription
        do throws(JSONProblem) {
            description = try FetchDescription(json: json)
        } catch {
            throw PredicateError(.invalidOptions, error.description)
        }
        try self.init(description)
    }

    private static func kind(of description: FetchDescription) throws(PredicateError) -> FetchKind {
        let hasType = description.collectionType != nil || description.collectionSubtype != nil
        let scope = [
            description.ids != nil, description.container != nil, description.burstIdentifier != nil,
            description.containing != nil,
        ]
        guard scope.count(where: { $0 }) + (hasType && !scope[3] ? 1 : 0) <= 1 else {
            throw PredicateError(.invalidOptions, "ids, in, burstIdentifier, containing and type cannot be combined")
        }
        switch description.kind {
        case .assets:
            guard !hasType, !scope[3] else { throw refused("type and containing", .assets) }
            return .assets(try source(of: description))
        case .collections:
            guard !scope[1], !scope[2] else { throw refused("in and burstIdentifier", .collections) }
            return try collections(description)
        case .lists:
            guard !scope[1], !scope[2] else { throw refused("in and burstIdentifier", .lists) }
            return try lists(description)
        case .children:
            guard !scope[0], !scope[2], !scope[3], !hasType else {
                throw refused("ids, burstIdentifier, containing and type", .children)
            }
            let list = description.container ?? .root
            guard list.kind == .collectionList else {
                throw PredicateError(.invalidOptions, "\"in\" must be a folder; an album has no children")
            }
            return .children(of: list)
        }
    }

    private static func source(of description: FetchDescription) throws(PredicateError) -> FetchKind.AssetSource {
        if let ids = description.ids { return .ids(try checked(IDList(ids), .asset)) }
        if let burst = description.burstIdentifier { return .burst(nfc(burst)) }
        guard let container = description.container else { return .library }
        return container.kind == .collectionList ? .below(container) : .collection(container)
    }

    private static func collections(_ description: FetchDescription) throws(PredicateError) -> FetchKind {
        if let ids = description.ids { return .collectionIDs(try checked(IDList(ids), .assetCollection)) }
        let type = try name(description.collectionType, "type", CollectionType.self)
        let subtype = try name(description.collectionSubtype, "subtype", CollectionSubtype.self)
        if let asset = description.containing {
            guard asset.kind == .asset, subtype == nil || subtype == .any else {
                throw PredicateError(
                    .invalidOptions,
                    "collections containing an asset: only the asset and a type may be given"
                )
            }
            return .collectionsContaining(asset, type: type)
        }
        return .collections(type: type, subtype: subtype == .any ? nil : subtype)
    }

    private static func lists(_ description: FetchDescription) throws(PredicateError) -> FetchKind {
        if let ids = description.ids { return .listIDs(try checked(IDList(ids), .collectionList)) }
        if let member = description.containing {
            guard member.kind != .asset, description.collectionType == nil, description.collectionSubtype == nil else {
                throw PredicateError(.invalidOptions, "lists containing: give one collection or list only")
            }
            return .listsContaining(member)
        }
        let subtype = try name(description.collectionSubtype, "subtype", ListSubtype.self)
        return .lists(
            type: try name(description.collectionType, "type", ListType.self),
            subtype: subtype == .any ? nil : subtype
        )
    }

    private static func refused(_ names: String, _ kind: FetchSubject) -> PredicateError {
        PredicateError(.invalidOptions, "\(names) cannot be used in a fetch of \(kind.rawValue)")
    }

    private static func checked(_ ids: IDList, _ kind: ObjectKind) throws(PredicateError) -> IDList {
        guard let mismatched = ids.ids.first(where: { $0.kind != kind }) else { return ids }
        throw PredicateError(.invalidOptions, "\(mismatched) is not of kind \(kind.rawValue)")
    }

    private static func name<Value: NumberedName>(
        _ text: String?,
        _ member: String,
        _: Value.Type
    ) throws(PredicateError) -> Value? {
        guard let text else { return nil }
        guard let value = Value(rawValue: text) ?? Int(text).flatMap({ Value(number: $0) }) else {
            let known = Value.allCases.filter { $0.number != Int.max }.map { "\($0.rawValue) (\($0.number))" }
            throw PredicateError(
                .invalidOptions,
                "unknown \(member) \"\(text)\"; known are \(known.joined(separator: ", "))",
                allowed: Value.allCases.map(\.rawValue)
            )
        }
        return value
    }

    /// The wire form with all defaults written out.
    public var wireForm: FetchDescription {
        var result: FetchDescription
        switch kind {
        case .assets(let source):
            result = FetchDescription(.assets)
            switch source {
            case .library: break
            case .ids(let list): result.ids = list.ids
            case .collection(let id), .below(let id), .transient(let id): result.container = id
            case .smartAlbum(let album): result.container = album.id
            case .moment(let moment): result.container = moment.id
            case .burst(let burst): result.burstIdentifier = burst
            }
            result.includeHidden = includeHidden
            result.includeAllBurstAssets = includeAllBurstAssets
            result.sourceTypes = sourceTypes
            result.inTrash = inTrash ? true : nil
        case .collections(let type, let subtype):
            result = FetchDescription(.collections)
            result.collectionType = type?.rawValue
            result.collectionSubtype = subtype?.rawValue
        case .lists(let type, let subtype):
            result = FetchDescription(.lists)
            result.collectionType = type?.rawValue
            result.collectionSubtype = subtype?.rawValue
        case .collectionsContaining(let asset, let type):
            result = FetchDescription(.collections)
            result.containing = asset
            result.collectionType = type?.rawValue
        case .listsContaining(let member):
            result = FetchDescription(.lists)
            result.containing = member
        case .collectionIDs(let list):
            result = FetchDescription(.collections)
            result.ids = list.ids
        case .listIDs(let list):
            result = FetchDescription(.lists)
            result.ids = list.ids
        case .children(let list):
            result = FetchDescription(.children)
            result.container = list
        }
        result.mediaType = mediaType
        result.predicate = predicate?.json
        result.sort = sort.map { SortDescription(key: $0.key.name, ascending: $0.ascending) }
        result.limit = limit
        result.offset = offset
        return result
    }

    /// The wire form as JSON.
    public var json: JSON { wireForm.json }

    /// The canonical JSON of the fetch. Equal fetches have equal bytes; observation ids are hashes of them.
    public var canonical: [UInt8] { json.canonical.bytes }
}
