public import JSONValue

/// Which version of an asset an edit begins with (spec section 9).
public enum EditBase: String, Sendable, Hashable, CaseIterable {
    /// The picture as it was imported.
    case original
    /// What the last edit began with, where that was not the original.
    case previous
    /// What is shown: the render of the last edit.
    case current
}

/// Which original an edit begins with, where an asset has a RAW and a compressed one (spec T-49).
public enum OriginalChoice: String, Sendable, CaseIterable {
    case raw, compressed
}

/// What `editing.begin` handed out, as the catalog verifies it when the edit is committed (DESIGN 3.5).
///
/// Opaque to clients. It is no key: it says what the client saw, and the catalog compares that with what is there.
public struct EditInputToken: Sendable, Hashable, CustomStringConvertible {
    public var asset: ObjectID
    /// The pixels that the edit takes the place of.
    public var contentRevision: Revision
    public var base: EditBase
    /// SHA-256 of the bytes that were handed out.
    public var digest: String

    public init(asset: ObjectID, contentRevision: Revision, base: EditBase, digest: String) {
        self.asset = asset
        self.contentRevision = contentRevision
        self.base = base
        self.digest = digest
    }

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

extension JSONType where Value == EditInputToken {
    /// The token as text.
    public static var editInput: JSONType {
        JSONType(
            schema: ["type": "string", "maxLength": 256],
            decode: { (json: JSON) throws(JSONProblem) in
                guard let token = json.stringValue.flatMap({ EditInputToken($0) }) else {
                    throw JSONProblem("expected the inputToken of editing.begin")
                }
                return token
            },
            encode: { .string($0.description) }
        )
    }
}

/// The formats in which an edit's render may come (spec S-89, T-23), by uniform type identifier; the first is the usual
/// one.
public enum RenderType {
    public static func supported(for mediaType: MediaType) -> [String] {
        mediaType == .video
            ? ["com.apple.quicktime-movie", "public.mpeg-4"]
            : ["public.jpeg", "public.png", "public.heic", "public.tiff", "org.webmproject.webp"]
    }
}

extension Asset {
    /// Whether what an edit began with is kept, so that a later edit can be made of it again: not of a video (spec S-87).
    public var keepsPreviousVersion: Bool { mediaType != .video }

    /// Which version an edit begins with, by the table of section 9.
    ///
    /// - Parameter handles: Whether the editor can read adjustment data of this format and version.
    /// - Returns: The version, its bytes, and whether the last edit's adjustment data belongs to it.
    public func editingInput(
        handles: (_ formatIdentifier: String, _ formatVersion: String) -> Bool
    ) -> (base: EditBase, resource: AssetResource, hasAdjustmentData: Bool)? {
        guard let original = originalResource else { return nil }
        guard let identifier = adjustmentFormatIdentifier else { return (.original, original, false) }
        let isReadable = handles(identifier, adjustmentFormatVersion ?? "")
        guard isReadable, keepsPreviousVersion else { return currentResource.map { (.current, $0, isReadable) } }
        if let previous = resource(.adjustmentBasePhoto) { return (.previous, previous, true) }
        return (.original, original, true)
    }

    /// The bytes of a version, where the asset has it now.
    public func resource(of base: EditBase) -> [AssetResource] {
        switch base {
        case .original: [originalResource, resource(.alternatePhoto)].compactMap { $0 }
        case .previous: [resource(.adjustmentBasePhoto)].compactMap { $0 }
        case .current: [currentResource].compactMap { $0 }
        }
    }
}

extension Asset {
    /// Whether it began with a RAW and a compressed file.
    public var originalChoices: [OriginalChoice: AssetResource] {
        let originals = [resource(.photo), resource(.alternatePhoto)].compactMap { $0 }
        guard originals.count == 2 else { return [:] }
        let pairs = originals.map { (OriginalChoice(contentType: $0.contentType), $0) }
        return pairs[0].0 == pairs[1].0 ? [:] : Dictionary(uniqueKeysWithValues: pairs)
    }
}

extension OriginalChoice {
    /// By the uniform type identifier.
    public init(contentType: String) {
        self = contentType.hasSuffix("raw-image") || contentType.hasSuffix("raw-picture") ? .raw : .compressed
    }
}
