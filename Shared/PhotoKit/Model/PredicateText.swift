import Contracts
import Foundation
import JSONValue
import PhotoModel

/// The text and the arguments of a predicate.
struct PredicateText: Sendable {
    var format: String
    var arguments: [JSON]

    /// Receives the text of a predicate that is evaluated with it, because `NSPredicate` has no property for the text.
    final class Reader {
        var text: PredicateText?
    }

    init(format: String, arguments: [JSON] = []) {
        self.format = format
        self.arguments = arguments
    }

    /// Reads the text of a predicate.
    ///
    /// - Throws: `unsupported_predicate` for a predicate that was created from a block
    init(_ predicate: NSPredicate) throws(PHPhotosError) {
        if let compound = predicate as? NSCompoundPredicate {
            self = try Self.join(compound)
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
                "a predicate with a block cannot be evaluated in the library; use NSPredicate(format:)"
            )
        }
    }

    private static func join(_ compound: NSCompoundPredicate) throws(PHPhotosError) -> PredicateText {
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
