import TestSupport
import Basics
import JSONValue
import PhotoModel

@testable import Catalog

/// A generator of random assets and fetches: with few distinct values, so that they match, and with edge cases among
/// them.
struct RandomLibrary {
    var random: SeededRandom
    let texts = [
        "", "a", "A", "é", "e\u{301}", "Zürich", "zurich", "ZÜRICH 2", "straße", "STRASSE", "100%", "a_b", "a*b", "a?b",
        "\\", "'; DROP TABLE asset; --", "\"", "日本", "😀 b", "aab", "ab", "İ", "\u{FFFF}x",
    ].map(nfc)
    let dates: [Int64] = [0, 1, -1, 1_000_000, 1_700_000_000_000_000, -62_135_596_800_000_000, 5_000_000]
    let lists = ["keywords", "hierarchicalKeywords", "persons"]
    var albums: [ObjectID] = []

    init(seed: UInt64) { random = SeededRandom(seed: seed) }

    /// Creates a library from the run's seed and a name; prints both.
    init(named name: String) { random = SeededRandom(named: name) }

    /// Returns a value with a probability of 60 percent, else nil.
    mutating func maybe<Value>(_ value: (inout RandomLibrary) -> Value) -> Value? {
        random.chance(60) ? value(&self) : nil
    }

    mutating func asset(_ number: Int, sequence: Int64 = 1) -> Asset {
        var asset = Asset(
            id: ObjectID(.asset, milliseconds: Int64.random(in: 0...5, using: &random), using: &random),
            revision: Revision(sequence),
            contentRevision: Revision(sequence)
        )
        asset.mediaType = random.pick(MediaType.allCases)
        asset.mediaSubtypes = MediaSubtypes(rawValue: Int.random(in: 0..<32, using: &random))
        asset.playbackStyle = random.pick(PlaybackStyle.allCases)
        asset.sourceType = random.chance(70) ? .typeUserLibrary : random.pick(SourceType.allCases)
        asset.contentType = random.pick(["public.jpeg", "public.heic"])
        asset.pixelWidth = random.pick([0, 1, 4032, 6000])
        asset.pixelHeight = random.pick([0, 1, 3024, 4000])
        asset.duration = random.pick([0, 1_500_000, 2_000_000])
        asset.creationDate = maybe { $0.random.pick($0.dates) }
        asset.modificationDate = random.pick(dates)
        asset.contentModificationDate = random.pick(dates)
        asset.addedDate = random.pick(dates)
        asset.isRecentlyAdded = random.chance(30)
        asset.playbackVariation = random.pick([.none, .longExposure])
        asset.trashedDate = random.chance(5) ? random.pick(dates) : nil
        asset.location = maybe { library in
            Location(
                latitude: library.random.pick([0, 52.5, 52.50001, -90, 90]),
                longitude: library.random.pick([0, 13.4, 179.9, -179.9, 180])
            )
        }
        asset.isFavorite = random.chance(30)
        asset.isHidden = random.chance(15)
        asset.burstIdentifier = random.chance(20) ? random.pick(["b1", "b2", "é"]) : nil
        asset.representsBurst = asset.burstIdentifier != nil && random.chance(40)
        asset.burstSelectionTypes = BurstSelectionTypes(rawValue: Int.random(in: 0...3, using: &random))
        asset.rating = Int.random(in: 0...5, using: &random)
        asset.caption = maybe { $0.random.pick($0.texts) }
        asset.keywords = (0..<Int.random(in: 0...3, using: &random)).map { _ in random.pick(texts) }
        asset.originalFilename = maybe { $0.random.pick($0.texts) }
        asset.cameraMake = maybe { $0.random.pick($0.texts) }
        asset.cameraModel = maybe { $0.random.pick($0.texts) }
        asset.sharpness = maybe { Double(Int.random(in: 0...1000, using: &$0.random)) / 4 }
        asset.lensModel = maybe { $0.random.pick($0.texts) }
        asset.adjustmentFormatIdentifier = random.chance(30) ? random.pick(texts) : nil
        asset.hasOnlyModificationDate = random.chance(20)
        asset.isCreationOffsetDerived = random.chance(20)
        if random.chance(70) {
            asset.metadata = RandomEntities.metadata(texts, [1, 3, 13.4, 52.5, 90], using: &random)
        }
        asset.resources = [
            AssetResource(
                type: .photo,
                digest: random.nextHexadecimal() + random.nextHexadecimal(),
                size: 10,
                contentType: "public.jpeg"
            )
        ]
        for album in albums where random.chance(40) {
            let key = OrderKey("\(random.pick(["A", "B", "m", "z"]))\(number)x")
            if let key { asset.memberships.append(Membership(collection: album, key: key)) }
        }
        return asset
    }

    mutating func collection() -> AssetCollection {
        var collection = AssetCollection(
            id: ObjectID(.assetCollection, milliseconds: 1, using: &random),
            revision: Revision(1)
        )
        collection.type = random.pick([.album, .smartAlbum])
        collection.subtype = random.pick([.albumRegular, .albumImported, .smartAlbumFavorites])
        collection.title = maybe { $0.random.pick($0.texts) }
        collection.creationDate = random.pick(dates)
        collection.modificationDate = random.pick(dates)
        collection.startDate = maybe { $0.random.pick($0.dates) }
        collection.endDate = maybe { $0.random.pick($0.dates) }
        collection.estimatedAssetCount = maybe { $0.random.pick([0, 1, 3]) }
        return collection
    }

    mutating func collectionFetch(of ids: [ObjectID]) throws -> Fetch {
        var description = FetchDescription(.collections)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: description.ids = (0..<5).map { _ in random.pick(ids) }
        case 1: description.collectionType = random.pick(CollectionType.allCases).rawValue
        case 2: description.collectionSubtype = random.pick(["albumRegular", "any", "smartAlbumFavorites"])
        default: break
        }
        if random.chance(85) { description.predicate = condition(depth: 0, of: .assetCollection) }
        let keys = EntityClass.assetCollection.keys.filter(\.isSortable)
        for _ in 0..<Int.random(in: 0...3, using: &random) {
            description.sort.append(SortDescription(key: random.pick(keys).name, ascending: random.chance(50)))
        }
        if random.chance(30) { description.limit = Int.random(in: 0...20, using: &random) }
        if random.chance(30) { description.offset = Int.random(in: 0...20, using: &random) }
        return try Fetch(description)
    }

    // MARK: Fetches

    mutating func fetch(of ids: [ObjectID]) throws -> Fetch {
        var description = FetchDescription(.assets)
        switch Int.random(in: 0..<8, using: &random) {
        case 0:
            description.ids = (0..<Int.random(in: 0...6, using: &random)).map { _ in random.pick(ids) }
        case 1, 2: if !albums.isEmpty { description.container = random.pick(albums) }
        case 3: description.burstIdentifier = random.pick(["b1", "b2", "nowhere"])
        case 4: description.container = random.pick(SmartAlbum.allCases).id
        default: break
        }
        if random.chance(85) { description.predicate = condition(depth: 0) }
        if random.chance(20) { description.mediaType = random.pick(MediaType.allCases) }
        if random.chance(10) { description.inTrash = true }
        if random.chance(30) { description.includeHidden = random.chance(50) }
        if random.chance(30) { description.includeAllBurstAssets = random.chance(50) }
        if random.chance(30) { description.sourceTypes = SourceTypes(rawValue: Int.random(in: 0...7, using: &random)) }
        let keys = EntityClass.asset.keys.filter(\.isSortable)
        for _ in 0..<Int.random(in: 0...3, using: &random) {
            description.sort.append(SortDescription(key: random.pick(keys).name, ascending: random.chance(50)))
        }
        if random.chance(30) { description.limit = Int.random(in: 0...20, using: &random) }
        if random.chance(30) { description.offset = Int.random(in: 0...20, using: &random) }
        return try Fetch(description)
    }

    mutating func condition(depth: Int, of entityClass: EntityClass = .asset) -> JSON {
        if depth < 3, random.chance(45) {
            let operands = (0..<Int.random(in: 0...3, using: &random)).map { _ in
                condition(depth: depth + 1, of: entityClass)
            }
            switch Int.random(in: 0..<3, using: &random) {
            case 0: return ["and": .array(operands)]
            case 1: return ["or": .array(operands)]
            default: return ["not": condition(depth: depth + 1, of: entityClass)]
            }
        }
        guard entityClass == .asset else { return comparison(random.pick(entityClass.keys)) }
        switch Int.random(in: 0..<12, using: &random) {
        case 0:
            return [
                "near": [
                    "latitude": .double(random.pick([52.5, 0, 90])), "longitude": .double(random.pick([13.4, 180])),
                    "radius": .double(random.pick([0, 1, 1000, 3e6])),
                ]
            ]
        case 1:
            return ["inside": ["south": -10, "north": 60, "west": .double(random.pick([-10, 170])), "east": 20]]
        case 2, 3:
            let text = random.pick(texts)
            return [
                "any": .string(random.pick(lists)),
                "op": .string(random.pick(["==", "beginsWith", "contains", "endsWith", "like"])),
                "value": .string(random.chance(20) ? text + "\0" : text),
                "options": .string(random.pick(["", "c", "d", "cd"])),
            ]
        case 4:
            if random.chance(30) {
                return [
                    "key": .string(random.pick(lists) + ".@count"), "op": .string(random.pick(["==", ">"])), "value": 0,
                ]
            }
            return [
                "any": .string(random.pick(lists)), "op": "in",
                "value": JSON([random.pick(texts), random.pick(texts)]),
            ]
        default: return comparison(random.pick(EntityClass.asset.keys.filter { $0 != .isLocal }))
        }
    }

    private mutating func comparison(_ key: PredicateKey) -> JSON {
        let name = JSON.string(key.name)
        switch key.type {
        case .text:
            if random.chance(70) {
                let text = random.pick(texts)
                let pattern = random.pick([
                    text, String(text.prefix(1)), text + "*", "*" + text, "?" + text, text + "\0",
                ])
                return [
                    "key": name,
                    "op": .string(random.pick(["==", "!=", "beginsWith", "contains", "endsWith", "like"])),
                    "value": .string(pattern), "options": .string(random.pick(["", "c", "d", "cd"])),
                ]
            }
        case .bits:
            return [
                "key": name, "mask": .int(Int64.random(in: 1...3, using: &random)),
                "op": .string(random.pick(["==", "!="])), "value": .int(Int64.random(in: 0...3, using: &random)),
            ]
        case .textList: return ["any": name, "op": "==", "value": .string(random.pick(texts))]
        default: break
        }
        let isOrdered: Bool
        switch key.type {
        case .text, .integer, .number, .date, .duration: isOrdered = true
        default: isOrdered = false
        }
        let operations = isOrdered ? ["==", "!=", "<", "<=", ">", ">=", "between", "in"] : ["==", "!=", "in"]
        let operation = random.pick(operations)
        switch operation {
        case "between": return ["key": name, "op": "between", "value": [value(key.type), value(key.type)]]
        case "in":
            var list = (0..<Int.random(in: 0...4, using: &random)).map { _ in value(key.type) }
            if key.isOptional, random.chance(30) { list.append(.null) }
            return ["key": name, "op": "in", "value": .array(list)]
        default:
            let isNull = key.isOptional && random.chance(20)
            return ["key": name, "op": .string(operation), "value": isNull ? .null : value(key.type)]
        }
    }

    private mutating func value(_ type: PredicateType) -> JSON {
        switch type {
        case .text: .string(random.pick(texts))
        case .id: .string(ObjectID.none.text)
        case .integer: .int(random.pick([0, 1, 3, 4032]))
        case .number: .double(random.pick([0, 52.5, 13.4, 179.9, 90]))
        case .date: .int(random.pick(dates))
        case .duration: .double(random.pick([0, 1.5, 2]))
        case .flag: .bool(random.chance(50))
        case .name(let names): .string(random.pick(names).name)
        case .bits(let names): .string(random.pick(names).name)
        case .textList: .string(random.pick(texts))
        }
    }
}
