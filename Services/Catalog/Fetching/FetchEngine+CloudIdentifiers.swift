import Contracts
import JSONValue
import PhotoModel

/// Implements `ids.toCloud` and `ids.toLocal` (T-39).
///
/// An asset is identified by the bytes of its original, which export and import keep; albums and folders are by their own
/// identifier, which every backup and copy of the library keeps. So a mapping needs no state that could be lost.
extension FetchEngine {
    private static let assetPrefix = "safelight:original:"
    private static let collectionPrefix = "safelight:collection:"

    func toCloud(_ request: IDsToCloud) async throws -> CloudMappings {
        try await store.read { reader in
            let head = try reader.head()
            let now = HistoricalState(reader: reader, moment: head.sequence, head: head)
            var mappings = JSONObject()
            for id in request.ids {
                mappings[id.text] =
                    try Self.cloudIdentifier(of: id, now).map(CloudMappings.found)
                    ?? CloudMappings.failed(.identifierNotFound)
            }
            return CloudMappings(token: head.token, mappings: mappings)
        }
    }

    func toLocal(_ request: IDsToLocal) async throws -> CloudMappings {
        try await store.read { reader in
            let head = try reader.head()
            let now = HistoricalState(reader: reader, moment: head.sequence, head: head)
            var mappings = JSONObject()
            for cloud in request.cloudIDs {
                let candidates = try Self.candidates(cloud, reader, now)
                mappings[cloud] =
                    switch candidates.count {
                    case 0: CloudMappings.failed(.identifierNotFound)
                    case 1: CloudMappings.found(candidates[0].text)
                    default: CloudMappings.failed(.multipleIdentifiers, candidates: candidates)
                    }
            }
            return CloudMappings(token: head.token, mappings: mappings)
        }
    }

    private static func cloudIdentifier(of id: ObjectID, _ now: HistoricalState) throws -> String? {
        guard id.kind == .asset else {
            return try !id.isTransient && now.had(id) ? collectionPrefix + id.text : nil
        }
        guard let original = try now.asset(id)?.resources.first(where: \.type.isCloudOriginal) else { return nil }
        return assetPrefix + original.digest
    }

    private static func candidates(
        _ cloud: String,
        _ reader: LibraryReader,
        _ now: HistoricalState
    ) throws -> [ObjectID] {
        if cloud.hasPrefix(assetPrefix) {
            let digest = String(cloud.dropFirst(assetPrefix.count))
            return try reader.assets.assets(withPrimaryOriginal: digest, limit: CloudMappings.maxCandidates)
        }
        guard cloud.hasPrefix(collectionPrefix), let id = ObjectID(String(cloud.dropFirst(collectionPrefix.count))),
            id.kind != .asset, !id.isTransient, try now.had(id)
        else { return [] }
        return [id]
    }
}

extension ResourceType {
    /// True for the original that identifies an asset; each asset has one.
    fileprivate var isCloudOriginal: Bool { self == .photo || self == .video || self == .audio }
}
