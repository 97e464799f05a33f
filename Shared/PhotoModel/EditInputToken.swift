import JSONValue

/// Identifies the input that `editing.begin` returned. The catalog verifies it when the edit is committed.
///
/// Opaque to clients. It grants no access: it records the version that the client saw, and the catalog compares that
/// with the current version.
public struct EditInputToken: Sendable, Hashable, CustomStringConvertible {
    /// The asset to be edited.
    public var asset: ObjectID
    /// The content revision that the edit replaces.
    public var contentRevision: Revision
    /// The version on which the edit is based.
    public var base: EditBase
    /// SHA-256 of the bytes that the client received.
    public var digest: String

    public init(asset: ObjectID, contentRevision: Revision, base: EditBase, digest: String) {
        self.asset = asset
        self.contentRevision = contentRevision
        self.base = base
        self.digest = digest
    }

    /// Parses a token; `nil` for text that cannot be one.
    public init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 5, parts[0] == "e1", let asset = ObjectID(parts[1]), asset.kind == .asset,
            parts[2].first == "r", let revision = Int64(parts[2].dropFirst()), revision >= 0,
            let base = EditBase(rawValue: parts[3]), parts[4].utf8.count == 64,
            parts[4].utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0) })
        else { return nil }
        self.init(asset: asset, contentRevision: Revision(revision), base: base, digest: parts[4])
    }

    public var description: String { "e1.\(asset).\(contentRevision).\(base.rawValue).\(digest)" }
}
