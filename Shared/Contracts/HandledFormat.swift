public import JSONValue
import PhotoModel

/// A format of adjustment data that an editor can read, with its versions.
public struct HandledFormat: Sendable, Hashable, JSONTabled {
    /// Reverse DNS name of the format.
    public var formatIdentifier: String
    /// The only accepted version; nil if the range applies.
    public var formatVersion: String?
    /// The lowest accepted version, inclusive; nil for any.
    public var minimumVersion: String?
    /// The highest accepted version, inclusive; nil for any.
    public var maximumVersion: String?

    public init(
        formatIdentifier: String,
        formatVersion: String? = nil,
        minimumVersion: String? = nil,
        maximumVersion: String? = nil
    ) {
        self.formatIdentifier = formatIdentifier
        self.formatVersion = formatVersion
        self.minimumVersion = minimumVersion
        self.maximumVersion = maximumVersion
    }

    public static let table = JSONTable(
        "HandledFormat",
        "A readable adjustment data format. Versions are compared number by number: 1.10 is above 1.9.",
        unknown: .refused,
        blank: HandledFormat(formatIdentifier: ""),
        [
            .required("formatIdentifier", \.formatIdentifier, .text(maxBytes: 256), "Reverse DNS name of the format."),
            .optional("formatVersion", \.formatVersion, .text(maxBytes: 64), "The only accepted version."),
            .optional("minimumVersion", \.minimumVersion, .text(maxBytes: 64), "The lowest version; absent: any."),
            .optional("maximumVersion", \.maximumVersion, .text(maxBytes: 64), "The highest version; absent: any."),
        ]
    )

    /// Returns true if adjustment data of a format and version can be read.
    public func includes(_ identifier: String, _ version: String) -> Bool {
        guard identifier == formatIdentifier else { return false }
        if let formatVersion { return formatVersion == version }
        if let minimumVersion, Self.isBelow(version, minimumVersion) { return false }
        if let maximumVersion, Self.isBelow(maximumVersion, version) { return false }
        return true
    }

    /// Returns true if a version is below another one. Versions are compared component by component: numbers by value,
    /// others by their bytes. A missing component is 0.
    static func isBelow(_ left: String, _ right: String) -> Bool {
        let (lefts, rights) = (left.split(separator: "."), right.split(separator: "."))
        for index in 0..<max(lefts.count, rights.count) {
            let (a, b) = (index < lefts.count ? lefts[index] : "0", index < rights.count ? rights[index] : "0")
            if a == b { continue }
            guard let a = Int64(a), let b = Int64(b) else {
                return a.utf8.lexicographicallyPrecedes(b.utf8)
            }
            if a != b { return a < b }
        }
        return false
    }
}
