import Basics
import JSONValue

/// A sidecar that an earlier export has written is replaced by a new one only if it is certain that nothing is lost:
/// other programs write into sidecars too, and keep the properties that they do not know.
extension XMPSidecar {
    /// The relation of a file to a new sidecar.
    enum Relation {
        /// It has the same content.
        case same
        /// It is the sidecar of the same asset, as an earlier export has written it.
        case earlier
        /// It is another file, or it was changed.
        case other
    }

    private static let asset = "safelight:asset"
    private static let history = "safelight:history"
    /// The property with the SHA-256 of the sidecar without this property.
    private static let digest = "safelight:digest"

    /// Returns the relation of a file to a new sidecar.
    ///
    /// The history of edits may be shorter in the new sidecar: the library keeps changes for a limited time.
    static func relation(of known: [UInt8], to sidecar: [UInt8]) -> Relation {
        guard known != sidecar else { return .same }
        let isSame = known.without(digest).without(history) == sidecar.without(digest).without(history)
        if isSame, lastEdit(in: sidecar) <= lastEdit(in: known) { return .same }
        return isUnchanged(known) && known.value(of: asset) == sidecar.value(of: asset) ? .earlier : .other
    }

    /// Returns the property with the digest of a sidecar, which is added to it.
    static func digestProperty(of sidecar: String) -> String {
        property(digest, SHA256.hash(data: sidecar.utf8).hexadecimal)
    }

    /// Returns a property as it is written in a sidecar.
    static func property(_ name: String, _ value: String) -> String { "\(beginning(of: name))\(escaped(value))\"" }

    fileprivate static func beginning(of property: String) -> String { "\n    \(property)=\"" }

    private static func isUnchanged(_ sidecar: [UInt8]) -> Bool {
        sidecar.value(of: digest) == SHA256.hash(data: sidecar.without(digest)).hexadecimal
    }

    /// Returns the sequence number of the last edit in the history of a sidecar; 0 if it has none.
    private static func lastEdit(in sidecar: [UInt8]) -> Int64 {
        let text = unescaped(sidecar.value(of: history) ?? "")
        let steps = try? JSON(parsing: Array(text.utf8)).arrayValue
        return steps?.compactMap { $0["sequence"]?.intValue }.max() ?? 0
    }

    private static func unescaped(_ text: String) -> String {
        let characters = [
            ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#10;", "\n"), ("&#9;", "\t"), ("&amp;", "&"),
        ]
        return characters.reduce(text) { $0.replacing($1.0, with: $1.1) }
    }
}

/// The bytes of a sidecar.
extension [UInt8] {
    /// Returns the escaped value of a property; nil if there is none.
    fileprivate func value(of property: String) -> String? {
        range(of: property).map { String(decoding: self[$0.value], as: UTF8.self) }
    }

    /// Returns the sidecar without a property.
    fileprivate func without(_ property: String) -> [UInt8] {
        guard let range = range(of: property) else { return self }
        return Array(self[..<range.all.lowerBound] + self[range.all.upperBound...])
    }

    private func range(of property: String) -> (all: Range<Int>, value: Range<Int>)? {
        guard let beginning = firstRange(of: Array(XMPSidecar.beginning(of: property).utf8)),
            let end = self[beginning.upperBound...].firstIndex(of: UInt8(ascii: "\""))
        else { return nil }
        return (beginning.lowerBound..<end + 1, beginning.upperBound..<end)
    }
}
