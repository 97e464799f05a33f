public import JSONValue
public import PhotoModel

/// An independent evaluation of predicates, on the JSON of the tree and of the asset: slow, short, and sharing only the
/// two text functions with the code it checks.
///
/// Only for trees that ``Predicate`` accepts.
public enum NaivePredicate {
    /// Returns true if the asset matches the tree.
    public static func evaluate(_ tree: JSON, on asset: Asset) -> Bool { evaluate(tree, asset.json) }

    /// Returns true if the asset, given as JSON, matches the tree.
    public static func evaluate(_ tree: JSON, _ asset: JSON) -> Bool {
        if let truth = tree.boolValue { return truth }
        if let operands = tree["and"]?.arrayValue { return operands.allSatisfy { evaluate($0, asset) } }
        if let operands = tree["or"]?.arrayValue { return operands.contains { evaluate($0, asset) } }
        if let operand = tree["not"] { return !evaluate(operand, asset) }
        if let circle = tree["near"] ?? tree["inside"] {
            guard let latitude = asset["location"]?["latitude"]?.doubleValue,
                let longitude = asset["location"]?["longitude"]?.doubleValue
            else { return false }
            func number(_ name: String) -> Double { circle[name]?.doubleValue ?? .nan }
            if tree["near"] != nil {
                return GeoCircle(
                    latitude: number("latitude"),
                    longitude: number("longitude"),
                    radius: number("radius")
                )?.contains(latitude: latitude, longitude: longitude) ?? false
            }
            let isBetween =
                number("west") <= number("east")
                ? number("west") <= longitude && longitude <= number("east")
                : !(number("east") < longitude && longitude < number("west"))
            return number("south") <= latitude && latitude <= number("north") && isBetween
        }
        return leaf(tree, asset)
    }

    private static func leaf(_ tree: JSON, _ asset: JSON) -> Bool {
        let sign = tree["op"]?.stringValue ?? ""
        let options = tree["options"]?.stringValue ?? ""
        let folding = TextFolding(letters: options) ?? []
        if let name = tree["any"]?.stringValue {
            let words = list(name, asset)
            return words.contains { word in
                sign == "in"
                    ? (tree["value"]?.arrayValue ?? []).contains { isSame($0, word) }
                    : isTrue(word, sign, tree["value"] ?? .null, folding)
            }
        }
        let name = tree["key"]?.stringValue ?? ""
        if name.hasSuffix(".@count") {
            return (sign == "==") == list(String(name.dropLast(7)), asset).isEmpty
        }
        let value = assetValue(name, asset)
        if let mask = tree["mask"] {
            let bits = (value.intValue ?? 0) & (converted(name, mask).intValue ?? 0)
            let isEqual = bits == converted(name, tree["value"] ?? 0).intValue
            return sign == "==" ? isEqual : !isEqual
        }
        let literal = tree["value"] ?? .null
        switch sign {
        case "in": return (literal.arrayValue ?? []).contains { isSame(converted(name, $0), value) }
        case "between":
            let bounds = (literal.arrayValue ?? []).map { converted(name, $0) }
            return isTrue(value, ">=", bounds[0], []) && isTrue(value, "<=", bounds[1], [])
        default: return isTrue(value, sign, converted(name, literal), folding)
        }
    }

    /// Returns the value of a key for an asset given as JSON, as a number or text.
    public static func value(_ name: String, of asset: JSON) -> JSON { assetValue(name, asset) }

    private static func list(_ name: String, _ asset: JSON) -> [JSON] {
        switch name {
        case "keywords": asset[name]?.arrayValue ?? []
        case "persons": (asset["metadata"]?[name]?.arrayValue ?? []).compactMap { $0["name"] }
        default: asset["metadata"]?[name]?.arrayValue ?? []
        }
    }

    /// The members of `metadata` that are keys.
    private static let metadataNames: Set<String> = [
        "aperture", "exposureTime", "iso", "focalLength", "focalLengthIn35mm", "flash", "imageDirection", "title",
        "headline", "copyright", "creator", "credit", "city", "state", "country", "label", "software",
    ]

    /// Returns the asset's own value as a number or text.
    private static func assetValue(_ name: String, _ asset: JSON) -> JSON {
        switch name {
        case "localIdentifier": asset["id"] ?? .null
        case "isLocal":
            .bool(asset["resources"]?.arrayValue?.contains { $0["locallyAvailable"]?.boolValue == false } != true)
        case "hasAdjustments": .bool(asset["adjustmentFormatIdentifier"] != nil)
        case "location.latitude": asset["location"]?["latitude"] ?? .null
        case "location.longitude": asset["location"]?["longitude"] ?? .null
        case "rating", "burstSelectionTypes": converted(name, asset[name] ?? 0)
        case "representsBurst", "hasOnlyModificationDate", "isCreationOffsetDerived": asset[name] ?? false
        case _ where metadataNames.contains(name): converted(name, asset["metadata"]?[name] ?? .null)
        default: name == "duration" ? asset[name] ?? .null : converted(name, asset[name] ?? .null)
        }
    }

    /// Converts a literal to the form of the asset's values.
    private static func converted(_ name: String, _ literal: JSON) -> JSON {
        if literal.isNull { return .null }
        switch name {
        case "mediaType": return number(literal, MediaType.allCases.map { ($0.rawValue, $0.number) })
        case "playbackStyle": return number(literal, PlaybackStyle.allCases.map { ($0.rawValue, $0.number) })
        case "sourceType": return number(literal, SourceType.allCases.map { ($0.rawValue, $0.number) })
        case "mediaSubtypes": return number(literal, MediaSubtypes.names.map { ($0.name, $0.bit) })
        case "burstSelectionTypes": return number(literal, BurstSelectionTypes.names.map { ($0.name, $0.bit) })
        case "duration":
            // The only texts that the tests write are seconds.
            guard let text = literal.stringValue else { return literal }
            return .int(Int64(((Double(text.dropLast(2)) ?? 0) * 1e6).rounded()))
        case "flash": return number(literal, [("notFired", 0), ("fired", 1)])
        case "isFavorite", "isHidden", "isLocal", "representsBurst", "hasAdjustments", "hasOnlyModificationDate",
            "isCreationOffsetDerived":
            return .bool(literal.boolValue ?? (literal.intValue == 1))
        case "creationDate", "modificationDate", "contentModificationDate", "addedDate", "trashedDate":
            return literal.stringValue.flatMap(Timestamp.parse).map { .int($0) } ?? literal
        default: return literal
        }
    }

    private static func number(_ literal: JSON, _ names: [(String, Int)]) -> JSON {
        if let list = literal.arrayValue {
            return .int(list.reduce(0) { $0 | (number($1, names).intValue ?? 0) })
        }
        return names.first { $0.0 == literal.stringValue }.map { JSON($0.1) } ?? literal
    }

    private static func isSame(_ left: JSON, _ right: JSON) -> Bool {
        if let first = left.stringValue, let second = right.stringValue {
            return Array(first.utf8) == Array(second.utf8)
        }
        if let first = left.doubleValue, let second = right.doubleValue { return first == second }
        return left == right
    }

    private static func isBefore(_ left: JSON, _ right: JSON) -> Bool? {
        if let first = left.stringValue, let second = right.stringValue {
            return Array(first.utf8).lexicographicallyPrecedes(Array(second.utf8))
        }
        guard let first = left.doubleValue, let second = right.doubleValue else { return nil }
        return first < second
    }

    private static func isTrue(_ left: JSON, _ sign: String, _ right: JSON, _ folding: TextFolding) -> Bool {
        func fold(_ value: JSON) -> JSON { value.stringValue.map { .string(folding.apply($0)) } ?? value }
        let (left, right) = (fold(left), fold(right))
        switch sign {
        case "==": return isSame(left, right)
        case "!=": return !isSame(left, right)
        case "<": return isBefore(left, right) == true
        case ">": return isBefore(right, left) == true
        case "<=": return isBefore(right, left) == false
        case ">=": return isBefore(left, right) == false
        default: break
        }
        guard let text = left.stringValue, let pattern = right.stringValue else { return false }
        let (all, part) = (Array(text.unicodeScalars), Array(pattern.unicodeScalars))
        switch sign {
        case "beginsWith": return all.starts(with: part)
        case "endsWith": return all.reversed().starts(with: part.reversed())
        case "contains": return (0...all.count).contains { all[$0...].starts(with: part) }
        default: return isLike(all[...], part[...])
        }
    }

    private static func isLike(_ text: ArraySlice<Unicode.Scalar>, _ pattern: ArraySlice<Unicode.Scalar>) -> Bool {
        guard let first = pattern.first else { return text.isEmpty }
        let rest = pattern.dropFirst()
        switch first {
        case "*": return isLike(text, rest) || (!text.isEmpty && isLike(text.dropFirst(), pattern))
        case "?": return !text.isEmpty && isLike(text.dropFirst(), rest)
        case "\\": return text.first == (rest.first ?? "\\") && isLike(text.dropFirst(), rest.dropFirst())
        default: return text.first == first && isLike(text.dropFirst(), rest)
        }
    }
}
