public import JSONValue

/// The version of an asset on which an edit is based.
public enum EditBase: String, Sendable, Hashable, CaseIterable {
    /// The file as it was imported.
    case original
    /// The base of the last edit, if that was not the original that is presented.
    case previous
    /// The version that is presented: the render of the last edit.
    case current
}

/// The original on which an edit is based, for assets with a RAW and a compressed one (T-49).
public enum OriginalChoice: String, Sendable, CaseIterable {
    case raw, compressed
}

extension JSONType where Value == EditInputToken {
    /// The type of the token, which is text.
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

/// The formats of renders (S-89, T-23) as uniform type identifiers. The first is the preferred one.
public enum RenderType {
    /// Returns the formats that are accepted for a media type.
    public static func supported(for mediaType: MediaType) -> [String] {
        mediaType == .video
            ? ["com.apple.quicktime-movie", "public.mpeg-4"]
            : ["public.jpeg", "public.png", "public.heic", "public.tiff", "org.webmproject.webp"]
    }
}

extension Asset {
    /// True if the base of an edit is kept, so that a later edit can start from it again. False for videos (S-87).
    public var keepsPreviousVersion: Bool { mediaType != .video }

    /// Returns the version on which an edit is based, depending on the adjustment formats that the editor can read.
    ///
    /// - Parameter handles: returns true if the editor can read adjustment data of this format and version
    /// - Returns: the version, its resource, and true if the adjustment data of the last edit applies to it; nil if the
    ///   asset has no original
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

    /// Returns one of two originals as the version on which an edit is based (T-49). If the last edit began with it,
    /// and the editor can read its adjustment data, the edit is resumed.
    ///
    /// - Parameter handles: returns true if the editor can read adjustment data of this format and version
    /// - Returns: as ``editingInput(handles:)``; nil if the asset has no such original
    public func editingInput(
        of choice: OriginalChoice,
        handles: (_ formatIdentifier: String, _ formatVersion: String) -> Bool
    ) -> (base: EditBase, resource: AssetResource, hasAdjustmentData: Bool)? {
        guard let original = originalChoices[choice] else { return nil }
        if let input = editingInput(handles: handles), input.hasAdjustmentData,
            input.resource.digest == original.digest
        {
            return input
        }
        return (.original, original, false)
    }

    /// Returns the resources of a version; empty if the asset does not have it.
    public func resources(of base: EditBase) -> [AssetResource] {
        switch base {
        case .original: [originalResource, resource(.alternatePhoto)].compactMap { $0 }
        case .previous: [resource(.adjustmentBasePhoto)].compactMap { $0 }
        case .current: [currentResource].compactMap { $0 }
        }
    }
}

extension Asset {
    /// The originals by kind, if the asset has both a RAW and a compressed one; otherwise empty.
    public var originalChoices: [OriginalChoice: AssetResource] {
        let originals = [resource(.photo), resource(.alternatePhoto)].compactMap { $0 }
        guard originals.count == 2 else { return [:] }
        let pairs = originals.map { (OriginalChoice(contentType: $0.contentType), $0) }
        return pairs[0].0 == pairs[1].0 ? [:] : Dictionary(uniqueKeysWithValues: pairs)
    }

    /// The original that is presented and edited, if the asset has both a RAW and a compressed one (T-11); nil
    /// otherwise.
    public var originalResourceChoice: OriginalChoice? {
        // It is evaluated for every asset that is encoded, and most assets have one file.
        guard resources.count > 1, !originalChoices.isEmpty else { return nil }
        return resource(.photo).map { OriginalChoice(contentType: $0.contentType) }
    }
}

extension OriginalChoice {
    /// Derives the choice from the uniform type identifier.
    public init(contentType: String) {
        self = contentType.hasSuffix("raw-image") || contentType.hasSuffix("raw-picture") ? .raw : .compressed
    }
}
