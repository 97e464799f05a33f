import Contracts
import JSONValue
import Messaging
import PhotoModel

/// What the files of a new asset must be to each other, by the rules of ``FileGrouping``.
enum ResourceRules {
    /// What may come with a new asset.
    static let accepted: [ResourceType] = [.photo, .video, .alternatePhoto, .pairedVideo]

    /// Whether files of these types make an asset: one original, each type once, and beside a still only (spec T-20).
    static func supports(_ types: [ResourceType]) -> Bool {
        let originals = types.filter(\.isOriginal)
        return originals.count == 1 && Set(types).count == types.count && types.allSatisfy(accepted.contains)
            && (types.count == 1 || originals == [.photo])
    }

    /// Gives each original the type that its bytes say, and checks that the files are of one picture.
    ///
    /// - Throws: `resources_disagree`
    static func settle(_ resources: inout [PreparedResource]) throws {
        for index in resources.indices where resources[index].type.isOriginal {
            guard let facts = resources[index].facts else { continue }
            resources[index].type = facts.mediaType == .video ? .video : .photo
        }
        guard let original = resources.first(where: \.type.isOriginal), let facts = original.facts else { return }
        for other in resources where !other.type.isOriginal {
            guard original.type == .photo, let otherFacts = other.facts else {
                throw disagreement(original, other, "only a still has other files beside it")
            }
            switch other.type {
            case .pairedVideo:
                guard otherFacts.mediaType == .video else { throw disagreement(original, other, "it is no film") }
                let isPair = FileGrouping.isLivePhoto(
                    facts.contentIdentifier,
                    film: otherFacts.contentIdentifier,
                    duration: otherFacts.duration
                )
                guard isPair else { throw disagreement(original, other, "they are no Live Photo") }
            default:
                guard otherFacts.mediaType == .image else { throw disagreement(original, other, "it is a film") }
                guard FileGrouping.isSameShot(facts.creationDate, otherFacts.creationDate) else {
                    throw disagreement(original, other, "they were taken at other times")
                }
            }
        }
    }

    private static func disagreement(_ one: PreparedResource, _ other: PreparedResource, _ reason: String) -> RPCError {
        Refusal.resourcesDisagree.error(
            "\(other.name) does not belong to \(one.name): \(reason); take it in as an asset of its own",
            ["file": .string(other.name), "reason": .string(reason)]
        )
    }
}
