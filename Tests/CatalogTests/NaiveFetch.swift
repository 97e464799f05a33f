import JSONValue
import PhotoModel
import TestSupport

/// A fetch of assets evaluated on JSON: a third implementation besides the database and `Fetch`. It is slow and short,
/// and shares nothing with them except the text comparison that `NaivePredicate` shares.
enum NaiveFetch {
    /// Returns the identifiers of the result, in order.
    static func ids(_ fetch: JSON, of assets: [JSON]) -> [String] {
        let passing = assets.filter { belongs($0, fetch) }.sorted { isOrdered($0, before: $1, fetch) }
        let shown = passing.dropFirst(Int(fetch["offset"]?.intValue ?? 0))
        let limit = Int(fetch["limit"]?.intValue ?? 0)
        return (limit > 0 ? shown.prefix(limit) : shown).map { $0["id"]?.stringValue ?? "" }
    }

    // MARK: Membership

    private static func belongs(_ asset: JSON, _ fetch: JSON) -> Bool {
        if (asset["trashedDate"] != nil) != (fetch["inTrash"] == true) { return false }
        if let ids = fetch["ids"]?.arrayValue, !ids.contains(asset["id"] ?? .null) { return false }
        if let burst = fetch["burstIdentifier"], !isEqual(asset["burstIdentifier"], burst) { return false }
        if let album = fetch["in"]?.stringValue, !isMember(asset, of: album) { return false }
        if asset["isHidden"] == true, fetch["includeHidden"] != true { return false }
        if asset["burstIdentifier"] != nil, fetch["includeAllBurstAssets"] != true, asset["representsBurst"] != true,
            !hasBit(asset["burstSelectionTypes"], BurstSelectionTypes.names.map { ($0.name, $0.bit) }, 2)
        {
            return false
        }
        let sources = SourceType.allCases.map { ($0.rawValue, $0.number) }
        if let sourceTypes = fetch["sourceTypes"],
            number(sourceTypes, sources) & number(asset["sourceType"] ?? 0, sources) == 0
        {
            return false
        }
        if let type = fetch["mediaType"], asset["mediaType"] != type { return false }
        return fetch["predicate"].map { NaivePredicate.evaluate($0, asset) } ?? true
    }

    private static func isMember(_ asset: JSON, of album: String) -> Bool {
        guard let smart = SmartAlbum.allCases.first(where: { $0.id.text == album }) else {
            return key(asset, in: album) != nil
        }
        func isOfSubtype(_ bit: Int) -> Bool {
            hasBit(asset["mediaSubtypes"], MediaSubtypes.names.map { ($0.name, $0.bit) }, bit)
        }
        switch smart.rawValue {
        case 200:
            let common: Set<SmartAlbum> = [
                .generic, .userLibrary, .recentlyAdded, .favorites, .allHidden, .unableToUpload,
            ]
            return SmartAlbum.allCases.allSatisfy { common.contains($0) || !isMember(asset, of: $0.id.text) }
        case 201: return isOfSubtype(1)
        case 202: return asset["mediaType"] == "video"
        case 203: return asset["isFavorite"] == true
        case 204: return isOfSubtype(1 << 18)
        case 205: return asset["isHidden"] == true
        case 206: return asset["isRecentlyAdded"] == true
        case 207: return asset["burstIdentifier"] != nil
        case 208: return isOfSubtype(1 << 17)
        case 209: return asset["sourceType"] == "typeUserLibrary"
        case 210:
            let lens = (asset["lensModel"]?.stringValue ?? "").lowercased()
            return lens.contains("front camera") || lens.contains("front truedepth camera")
        case 211: return isOfSubtype(4)
        case 212: return isOfSubtype(16)
        case 213: return isOfSubtype(8)
        case 214: return isOfSubtype(64)
        case 215: return asset["playbackVariation"] == "longExposure"
        case 216:
            return (asset["resources"]?.arrayValue ?? []).contains { resource in
                let types: [JSON] = ["photo", "video", "audio", "alternatePhoto", "pairedVideo"]
                return resource["damage"] != nil && types.contains(resource["type"] ?? .null)
            }
        case 217:
            return (asset["resources"]?.arrayValue ?? []).contains { resource in
                (resource["type"] == "photo" || resource["type"] == "alternatePhoto")
                    && (resource["contentType"]?.stringValue ?? "").hasSuffix("raw-image")
            }
        case 218: return isOfSubtype(1 << 21)
        case 219: return isOfSubtype(1 << 10)
        case 220: return isOfSubtype(1 << 19)
        default: return false
        }
    }

    private static func key(_ asset: JSON, in album: String) -> JSON? {
        (asset["memberships"]?.arrayValue ?? []).first { $0["collection"]?.stringValue == album }?["key"]
    }

    private static func isEqual(_ left: JSON?, _ right: JSON) -> Bool {
        Array((left?.stringValue ?? "").utf8) == Array((right.stringValue ?? "").utf8)
    }

    private static func hasBit(_ value: JSON?, _ names: [(String, Int)], _ bit: Int) -> Bool {
        number(value ?? 0, names) & bit != 0
    }

    private static func number(_ value: JSON, _ names: [(String, Int)]) -> Int {
        if let list = value.arrayValue { return list.reduce(0) { $0 | number($1, names) } }
        return names.first { $0.0 == value.stringValue }?.1 ?? Int(value.intValue ?? 0)
    }

    // MARK: Order

    private static func isOrdered(_ left: JSON, before right: JSON, _ fetch: JSON) -> Bool {
        var keys: [(left: JSON, right: JSON, isAscending: Bool)] = []
        let sort = fetch["sort"]?.arrayValue ?? []
        for part in sort {
            let name = part["key"]?.stringValue ?? ""
            keys.append(
                (
                    NaivePredicate.value(name, of: left), NaivePredicate.value(name, of: right),
                    part["ascending"] != false
                )
            )
        }
        if sort.isEmpty, let ids = fetch["ids"]?.arrayValue {
            func position(_ asset: JSON) -> JSON { JSON(ids.firstIndex(of: asset["id"] ?? .null) ?? -1) }
            keys.append((position(left), position(right), true))
        } else if sort.isEmpty, let album = fetch["in"]?.stringValue, key(left, in: album) != nil {
            keys.append((key(left, in: album) ?? .null, key(right, in: album) ?? .null, true))
        } else if sort.isEmpty {
            keys.append((left["addedDate"] ?? .null, right["addedDate"] ?? .null, true))
        }
        keys.append((left["id"] ?? .null, right["id"] ?? .null, true))
        for key in keys {
            // Missing values are last in both directions.
            if key.left.isNull != key.right.isNull { return key.right.isNull }
            if precedes(key.left, key.right) { return key.isAscending }
            if precedes(key.right, key.left) { return !key.isAscending }
        }
        return false
    }

    private static func precedes(_ left: JSON, _ right: JSON) -> Bool {
        if let first = left.stringValue, let second = right.stringValue {
            return Array(first.utf8).lexicographicallyPrecedes(Array(second.utf8))
        }
        if let first = left.boolValue, let second = right.boolValue { return !first && second }
        if let first = left.intValue, let second = right.intValue { return first < second }
        return (left.doubleValue ?? 0) < (right.doubleValue ?? 0)
    }
}
