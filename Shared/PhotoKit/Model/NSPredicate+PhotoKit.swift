public import Foundation
import Contracts
import JSONValue
import PhotoModel

extension NSPredicate {
    /// Creates a predicate from its text, with Safelight's parser: swift-corelibs-foundation has none.
    ///
    /// The keys have the units of PhotoKit's properties: `duration` is in seconds.
    ///
    /// - Parameter arguments: the values of `%@`, `%d`, `%f`, `%K` and the like, in their order: numbers, flags, text,
    ///   dates, objects of PhotoKit, nil, and lists of these
    public convenience init(format predicateFormat: String, _ arguments: Any?...) {
        self.init(PredicateText(format: predicateFormat, arguments: arguments.map(PredicateText.json)))
    }

    /// Creates a predicate from its text, as ``init(format:_:)`` does.
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

/// A type whose key paths represent the names of sort keys, because descriptors only support key paths.
private struct SortKeys {
    subscript(name: String) -> String { name }
}

extension NSSortDescriptor {
    /// Creates a descriptor for a key of the fetched class; swift-corelibs-foundation only supports key paths.
    public convenience init(key: String?, ascending: Bool) {
        self.init(keyPath: \SortKeys[key ?? ""], ascending: ascending)
    }

    /// Returns the name of the key.
    ///
    /// - Throws: `unsupported_sort_key` for other key paths than those of ``init(key:ascending:)`` and of the
    ///   properties of ``PHAsset`` that have a comparable type
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
