public import Foundation
import Contracts
import JSONValue
import PhotoModel

extension NSPredicate {
    /// Creates a predicate from its text, with Safelight's parser: swift-corelibs-foundation has none.
    ///
    /// The keys have the units of PhotoKit's properties: `duration` is in seconds.
    ///
    /// - Parameter arguments: the values of `%@`, `%d`, `%f`, `%K` and the like, in their order: numbers, flags, text, dates,
    ///   objects of PhotoKit, nil, and lists of these
    public convenience init(format predicateFormat: String, _ arguments: Any?...) {
        self.init(PredicateText(format: predicateFormat, arguments: arguments.map(PredicateText.json)))
    }

    /// Creates a predicate from its text, as ``init(format:_:)``.
    public convenience init(format predicateFormat: String, argumentArray arguments: [Any]?) {
        self.init(PredicateText(format: predicateFormat, arguments: (arguments ?? []).map(PredicateText.json)))
    }

    private convenience init(_ text: PredicateText) {
        self.init { object, _ in
            if let reader = object as? PredicateText.Reader {
                reader.text = text
                return true
            }
            return text.evaluate(object)
        }
    }
}

/// The text and the arguments of a predicate.
struct PredicateText: Sendable {
    var format: String
    var arguments: [JSON]

    /// An object whose evaluation makes a predicate store its text in it, because `NSPredicate` has no property for
    /// that.
    final class Reader {
        var text: PredicateText?
    }

    init(format: String, arguments: [JSON] = []) {
        self.format = format
        self.arguments = arguments
    }

    /// Reads the text of a predicate.
    ///
    /// - Throws: `unsupported_predicate` for a predicate made from a block
    init(_ predicate: NSPredicate) throws(PHPhotosError) {
        if let compound = predicate as? NSCompoundPredicate {
            self = try Self.joined(compound)
            return
        }
        let reader = Reader()
        if predicate == NSPredicate(value: true) {
            self.init(format: "TRUEPREDICATE")
        } else if predicate == NSPredicate(value: false) {
            self.init(format: "FALSEPREDICATE")
        } else if predicate.evaluate(with: reader), let text = reader.text {
            self = text
        } else {
            throw PHPhotosError(
                .unsupportedPredicate,
                "a predicate made from a block cannot be evaluated in the library; use NSPredicate(format:)"
            )
        }
    }

    private static func joined(_ compound: NSCompoundPredicate) throws(PHPhotosError) -> PredicateText {
        var parts: [PredicateText] = []
        for part in compound.subpredicates { parts.append(try PredicateText(part)) }
        let texts = parts.map { "(\($0.format))" }
        let format =
            switch compound.compoundPredicateType {
            case .not: "NOT " + (texts.first ?? "(TRUEPREDICATE)")
            case .and: texts.isEmpty ? "TRUEPREDICATE" : texts.joined(separator: " AND ")
            case .or: texts.isEmpty ? "FALSEPREDICATE" : texts.joined(separator: " OR ")
            }
        return PredicateText(format: format, arguments: parts.flatMap(\.arguments))
    }

    /// Parses the text for the objects of a class.
    ///
    /// Durations are in seconds, as PhotoKit's are. The library's are in microseconds, so the parsed tree is sent, not
    /// the text.
    func predicate(
        of entityClass: EntityClass
    ) throws(PhotoModel.PredicateError) -> PhotoModel.Predicate {
        try PhotoModel.Predicate(format: format, arguments: arguments, of: entityClass, durations: .seconds)
    }

    /// Evaluates the predicate for an object of PhotoKit; false for any other.
    func evaluate(_ object: Any?) -> Bool {
        switch object {
        case let asset as PHAsset: (try? predicate(of: .asset))?.evaluate(asset.asset) ?? false
        case let collection as PHAssetCollection:
            (try? predicate(of: .assetCollection))?.evaluate(collection.collection) ?? false
        case let list as PHCollectionList: (try? predicate(of: .collectionList))?.evaluate(list.list) ?? false
        default: false
        }
    }

    /// Returns the JSON of an argument; text for values that have none.
    static func json(_ value: Any?) -> JSON {
        switch value {
        case nil, is NSNull: .null
        case let value as Bool: .bool(value)
        case let value as any BinaryInteger: .int(Int64(clamping: value))
        case let value as any BinaryFloatingPoint: .double(Double(value))
        case let value as String: .string(value)
        case let value as Date: .int(value.microseconds)
        case let value as PHObject: .string(value.localIdentifier)
        case let value as NSDate: .int(Date(timeIntervalSince1970: value.timeIntervalSince1970).microseconds)
        case let value as NSString: .string(value.description)
        case let value as [Any?]: .array(value.map(json))
        case let value?: json(unwrapping: value)
        }
    }

    private static func json(unwrapping value: Any) -> JSON {
        if let number = value as? NSNumber { return .double(number.doubleValue) }
        if let set = value as? any Collection { return .array(set.map { json($0) }) }
        return .string("\(value)")
    }
}

/// A type whose key paths represent the names of sort keys, because descriptors only support key paths.
private struct SortKeys {
    subscript(name: String) -> String { name }
}

extension NSSortDescriptor {
    /// Creates a descriptor for a key of the fetched class; swift-corelibs-foundation only supports key paths.
    public convenience init(key: String?, ascending: Bool) {
        self.init(keyPath: \SortKeys[key ?? ""], ascending: ascending)
    }

    /// The key's name.
    ///
    /// - Throws: `unsupported_sort_key` for other key paths than those of ``init(key:ascending:)`` and of the properties of
    ///   ``PHAsset`` that have a comparable type
    func photosKey() throws(PHPhotosError) -> String {
        if let path = keyPath as? KeyPath<SortKeys, String> { return SortKeys()[keyPath: path] }
        let keys: [(path: AnyKeyPath, name: String)] = [
            (\PHAsset.pixelWidth, "pixelWidth"), (\PHAsset.pixelHeight, "pixelHeight"),
            (\PHAsset.duration, "duration"), (\PHAsset.rating, "rating"), (\PHAsset.localIdentifier, "localIdentifier"),
        ]
        if let key = keys.first(where: { $0.path == keyPath }) { return key.name }
        throw PHPhotosError(
            .unsupportedSortKey,
            "name the key: NSSortDescriptor(key: \"creationDate\", ascending: true)"
        )
    }
}
