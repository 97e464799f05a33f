import Contracts
import PhotoModel

/// The rules for the files of one new asset, by ``FileGrouping``.
enum ResourceRules {
    /// The resource types that a new asset may have.
    static let accepted: [ResourceType] = [.photo, .video, .alternatePhoto, .pairedVideo]

    /// Implements `resource.supports`.
    static func supports(_ request: SupportsResources) -> SupportsResources.Result {
        SupportsResources.Result(isSupported: supports(request.types))
    }

    /// Returns true if files of these types make an asset: exactly one original, each type at most once, and other
    /// files only beside a photo (T-20).
    static func supports(_ types: [ResourceType]) -> Bool {
        let originals = types.filter(\.isOriginal)
        return originals.count == 1 && Set(types).count == types.count && types.allSatisfy(accepted.contains)
            && (types.count == 1 || originals == [.photo])
    }

    /// Checks the types of the files of a new asset before any of them is read (T-19).
    ///
    /// - Throws: `missing_resource` without an original, `resources_disagree` if there are several files of one role
    static func check(_ types: [ResourceType]) throws(ResourceError) {
        let originals = types.filter(\.isOriginal)
        guard !originals.isEmpty else {
            throw ResourceError.noOriginal
        }
        guard originals.count == 1, Set(types).count == types.count else {
            throw ResourceError.severalOfOneType(types)
        }
    }

    /// Sets the type of each original from its bytes, and checks that the files belong together.
    ///
    /// - Throws: `resources_disagree`
    static func resolve(_ resources: inout [PreparedResource]) throws {
        for index in resources.indices where resources[index].type.isOriginal {
            guard let facts = resources[index].facts else { continue }
            resources[index].type = facts.mediaType == .video ? .video : .photo
        }
        guard let original = resources.first(where: \.type.isOriginal), let facts = original.facts else { return }
        for other in resources where !other.type.isOriginal {
            guard original.type == .photo, let otherFacts = other.facts else {
                throw disagreement(original, other, "only a photo can have other files beside it")
            }
            switch other.type {
            case .pairedVideo:
                guard otherFacts.mediaType == .video else { throw disagreement(original, other, "it is not a video") }
                let isPair = FileGrouping.isLivePhoto(
                    facts.contentIdentifier,
                    video: otherFacts.contentIdentifier,
                    duration: otherFacts.duration
                )
                guard isPair else { throw disagreement(original, other, "they are not a Live Photo") }
            default:
                guard otherFacts.mediaType == .image else { throw disagreement(original, other, "it is a video") }
                guard isSameShot(facts, otherFacts) else {
                    throw disagreement(original, other, "they were taken at different times")
                }
            }
        }
    }

    /// Returns true if the capture times of an image and its raw file agree: the instants if both files have them, else
    /// the local times. Often only one of the files has a time zone, or the location from which it is derived.
    private static func isSameShot(_ photo: ExtractedMetadata, _ raw: ExtractedMetadata) -> Bool {
        func isAbsolute(_ facts: ExtractedMetadata) -> Bool {
            facts.isInstant || (facts.creationOffset != nil && !facts.isOffsetDerived)
        }
        let areInstants = isAbsolute(photo) && isAbsolute(raw)
        func time(_ facts: ExtractedMetadata) -> Int64? {
            guard let date = facts.creationDate, !facts.isModificationDate else { return nil }
            if areInstants { return date }
            // The local time of an instant without an offset is unknown.
            if facts.isInstant, facts.creationOffset == nil { return nil }
            return date + Int64(facts.creationOffset ?? 0) * 1_000_000
        }
        return FileGrouping.isSameShot(time(photo), time(raw))
    }

    private static func disagreement(_ original: PreparedResource, _ other: PreparedResource, _ reason: String)
        -> ResourceError
    {
        .disagreement(original: original.name, file: other.name, reason: reason)
    }
}
