public import JSONValue
public import PhotoModel

/// Random assets and predicates with few distinct values, so that conditions are true for some of the assets.
public enum RandomEntities {
    /// Texts that differ in case, diacritics, normalization and scripts, or contain special characters.
    public static let texts = [
        "Été à Paris", "été", "ETE", "Straße", "STRASSE", "straße 7", "Ångström", "angstrom", "İstanbul", "a*b?c\\",
        "", "100%", "'; DROP TABLE asset; --", "日本の夏", "がか", "Ελλάς", "e\u{301}te\u{301}", "Łódź", "ø",
    ].map(nfc)

    /// Returns an identifier that depends only on the number.
    public static func id(_ kind: ObjectKind, _ number: Int) -> ObjectID {
        var random = SeededRandom(seed: UInt64(truncatingIfNeeded: number))
        return ObjectID(kind, milliseconds: Int64(number), using: &random)
    }

    private static func maybe<Value>(_ random: inout SeededRandom, _ value: @autoclosure () -> Value) -> Value? {
        random.one(in: 3) ? nil : value()
    }

    private static func text(_ random: inout SeededRandom) -> String { random.pick(texts) }

    private static func date(_ random: inout SeededRandom) -> Int64 {
        1_714_521_600_000_000 + Int64.random(in: -3...3, using: &random) * 1_000_000
    }

    /// Returns a random asset.
    public static func asset(_ number: Int, using random: inout SeededRandom) -> Asset {
        var asset = Asset(id: id(.asset, number), revision: Revision(Int64(number)))
        asset.mediaType = random.pick(MediaType.allCases)
        asset.mediaSubtypes = MediaSubtypes(rawValue: Int.random(in: 0...15, using: &random))
        asset.playbackStyle = random.pick(PlaybackStyle.allCases)
        asset.sourceType = random.pick(SourceType.allCases)
        asset.contentType = random.pick(["public.jpeg", "public.heic"])
        asset.pixelWidth = Int.random(in: 0...5, using: &random)
        asset.pixelHeight = Int.random(in: 0...5, using: &random)
        asset.duration = Int64.random(in: 0...4, using: &random) * 500_000
        asset.creationDate = maybe(&random, 0).map { _ in date(&random) }
        asset.modificationDate = date(&random)
        asset.contentModificationDate = date(&random)
        asset.addedDate = date(&random)
        asset.trashedDate = random.one(in: 10) ? date(&random) : nil
        if !random.one(in: 3) {
            asset.location = Location(
                latitude: Double(Int.random(in: -90...90, using: &random)),
                longitude: Double(Int.random(in: -180...180, using: &random))
            )
        }
        asset.isFavorite = Bool.random(using: &random)
        asset.isHidden = random.one(in: 5)
        asset.burstIdentifier = random.one(in: 4) ? random.pick(["burst 1", "burst 2"]) : nil
        asset.representsBurst = asset.burstIdentifier != nil && random.one(in: 3)
        asset.burstSelectionTypes = BurstSelectionTypes(rawValue: Int.random(in: 0...3, using: &random))
        asset.rating = Int.random(in: 0...5, using: &random)
        asset.caption = maybe(&random, 0).map { _ in text(&random) }
        asset.keywords = (0..<Int.random(in: 0...3, using: &random)).map { _ in text(&random) }
        asset.originalFilename = maybe(&random, 0).map { _ in text(&random) }
        asset.cameraMake = maybe(&random, 0).map { _ in text(&random) }
        asset.cameraModel = maybe(&random, 0).map { _ in text(&random) }
        asset.sharpness = maybe(&random, 0).map { _ in Double(Int.random(in: 0...1000, using: &random)) / 4 }
        asset.lensModel = maybe(&random, 0).map { _ in text(&random) }
        asset.adjustmentFormatIdentifier = random.one(in: 3) ? "org.example.adjustments" : nil
        asset.hasOnlyModificationDate = random.one(in: 4)
        asset.isCreationOffsetDerived = random.one(in: 4)
        if !random.one(in: 3) { asset.metadata = metadata(texts, [1, 2, 2.5, 5], using: &random) }
        return asset
    }

    /// Returns random metadata of an asset: few distinct values, so that they match.
    public static func metadata(
        _ texts: [String],
        _ numbers: [Double],
        using random: inout SeededRandom
    ) -> AssetMetadata {
        var metadata = AssetMetadata()
        func text(_ random: inout SeededRandom) -> String? {
            let text = random.pick(texts)
            return random.one(in: 2) || text.isEmpty ? nil : text
        }
        func number(_ random: inout SeededRandom) -> Double? { random.one(in: 3) ? nil : random.pick(numbers) }
        metadata.aperture = number(&random)
        metadata.exposureTime = number(&random)
        metadata.iso = number(&random).map { Int($0.rounded(.up)) }
        metadata.focalLength = number(&random)
        metadata.focalLengthIn35mm = number(&random).map { Int($0.rounded(.up)) }
        metadata.flash = random.one(in: 3) ? nil : random.pick(Flash.allCases)
        metadata.imageDirection = number(&random)
        for path in [
            \AssetMetadata.title, \.headline, \.copyright, \.creator, \.credit, \.city, \.state, \.country, \.label,
            \.software,
        ] {
            metadata[keyPath: path] = text(&random)
        }
        metadata.hierarchicalKeywords = (0..<Int.random(in: 0...2, using: &random)).compactMap { _ in text(&random) }
        metadata.persons = (0..<Int.random(in: 0...2, using: &random)).compactMap { _ in
            text(&random).map {
                Person(name: $0, area: random.one(in: 2) ? nil : UnitRect(x: 0.1, y: 0.2, width: 0.5, height: 0.25))
            }
        }
        return metadata
    }

    // MARK: Predicates

    /// Returns a predicate tree of about `size` leaves over the keys of a class.
    public static func tree(_ size: Int, of entityClass: EntityClass, using random: inout SeededRandom) -> JSON {
        guard size > 1 else { return leaf(of: entityClass, using: &random) }
        if random.one(in: 4) { return ["not": tree(size, of: entityClass, using: &random)] }
        let first = Int.random(in: 1..<size, using: &random)
        let operands: JSON = [
            tree(first, of: entityClass, using: &random), tree(size - first, of: entityClass, using: &random),
        ]
        return Bool.random(using: &random) ? ["and": operands] : ["or": operands]
    }

    /// Returns a random condition on a random key of a class, or on a location.
    public static func leaf(of entityClass: EntityClass, using random: inout SeededRandom) -> JSON {
        if entityClass == .asset, random.one(in: 12) { return locationCondition(using: &random) }
        return condition(random.pick(entityClass.keys.filter { $0 != .isLocal }), using: &random)
    }

    private static func locationCondition(using random: inout SeededRandom) -> JSON {
        let latitude = Double.random(in: -90...90, using: &random)
        let longitude = Double.random(in: -180...180, using: &random)
        if Bool.random(using: &random) {
            let radius = Double.random(in: 0...10_000_000, using: &random)
            return [
                "near": ["latitude": .double(latitude), "longitude": .double(longitude), "radius": .double(radius)]
            ]
        }
        let north = Double.random(in: latitude...90, using: &random)
        let east = Double.random(in: -180...180, using: &random)
        return [
            "inside": [
                "south": .double(latitude), "west": .double(longitude), "north": .double(north), "east": .double(east),
            ]
        ]
    }

    /// Returns a condition on one key, with one of the operators that the key accepts.
    public static func condition(_ key: PredicateKey, using random: inout SeededRandom) -> JSON {
        let relations = ["==", "!=", "<", "<=", ">", ">="]
        let texts = ["beginsWith", "contains", "endsWith", "like"]
        var object: JSONObject = ["key": .string(key.name)]
        func literal() -> JSON { random.one(in: 12) ? .null : self.literal(key, using: &random) }
        func list() -> JSON { .array((0..<Int.random(in: 0...4, using: &random)).map { _ in literal() }) }
        switch key.type {
        case .textList:
            object = ["any": .string(key.name)]
            object["op"] = .string(random.pick(texts + ["==", "in"]))
            object["value"] = object["op"] == "in" ? .array([pattern(&random), pattern(&random)]) : pattern(&random)
            if object["op"] != "in" { object["options"] = .string(random.pick(["", "c", "d", "cd"])) }
            return .object(object)
        case .flag, .id: object["op"] = .string(random.pick(["==", "!=", "in"]))
        case .text:
            object["op"] = .string(random.pick(relations + texts + texts + ["between", "in"]))
            if let sign = object["op"]?.stringValue, texts.contains(sign) || sign == "==" || sign == "!=" {
                object["options"] = .string(random.pick(["", "c", "d", "cd"]))
            }
        case .bits where Bool.random(using: &random):
            object["mask"] = .int(Int64.random(in: 0...15, using: &random))
            object["op"] = .string(random.pick(["==", "!="]))
            object["value"] = .int(random.one(in: 3) ? Int64.random(in: 0...15, using: &random) : 0)
            return .object(object)
        default: object["op"] = .string(random.pick(relations + ["between", "in"]))
        }
        switch object["op"] {
        case "in": object["value"] = list()
        case "between": object["value"] = [self.literal(key, using: &random), self.literal(key, using: &random)]
        default: object["value"] = literal()
        }
        return .object(object)
    }

    private static func pattern(_ random: inout SeededRandom) -> JSON {
        let text = random.pick(texts)
        let start = Int.random(in: 0...min(3, text.count), using: &random)
        let part = String(text.dropFirst(start).prefix(Int.random(in: 0...4, using: &random)))
        return .string(random.pick([part, text, "*" + part + "*", part + "?", "?*" + part]))
    }

    private static func literal(_ key: PredicateKey, using random: inout SeededRandom) -> JSON {
        switch key.type {
        case .text, .textList: random.one(in: 4) ? "public.jpeg" : pattern(&random)
        case .integer: .int(Int64.random(in: 0...5, using: &random))
        case .number: .double(Double(Int.random(in: -180...180, using: &random)))
        case .date:
            random.one(in: 4) ? .string(Timestamp.text(date(&random))) : .int(date(&random))
        case .duration:
            random.one(in: 2)
                ? .int(Int64.random(in: 0...4, using: &random) * 500_000)
                : .string("\(Double(Int.random(in: 0...4, using: &random)) * 0.5) s")
        case .flag: random.one(in: 3) ? .int(Int64.random(in: 0...1, using: &random)) : .bool(.random(using: &random))
        case .id: .string(id(.asset, Int.random(in: 0...20, using: &random)).text)
        case .name(let names):
            random.one(in: 3) ? .int(random.pick(names).number) : .string(random.pick(names).name)
        case .bits(let names):
            random.one(in: 3) ? [.string(random.pick(names).name)] : .int(Int64.random(in: 0...15, using: &random))
        }
    }
}
