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

    /// - Parameter view: for an identity with a limited grant, what it sees: all else has the error of what does not exist
    func toCloud(_ request: IDsToCloud, view: LimitedView? = nil) async throws -> CloudMappings {
        try await store.read { reader in
            let head = try reader.head()
            let now = HistoricalState(reader: reader, moment: head.sequence, head: head)
            var mappings = JSONObject()
            for id in request.ids {
                // Before anything is looked up: what is there costs what is not there.
                let isVisible = try view?.has(id, reader, head) ?? true
                let found = isVisible ? try Self.cloudIdentifier(of: id, now) : nil
                mappings[id.text] =
                    found.map(CloudMappings.found) ?? CloudMappings.failed(.identifierNotFound)
            }
            return CloudMappings(token: head.token, mappings: mappings)
        }
    }

    /// - Parameter view: for an identity with a limited grant, what it sees: only that is a candidate
    func toLocal(_ request: IDsToLocal, view: LimitedView? = nil) async throws -> CloudMappings {
        try await store.read { reader in
            let head = try reader.head()
            let now = HistoricalState(reader: reader, moment: head.sequence, head: head)
            var mappings = JSONObject()
            for cloud in request.cloudIDs {
                var candidates = try Self.candidates(cloud, reader, now, limit: view == nil ? nil : Grant.maxAssets)
                if let view {
                    candidates = Array(
                        try candidates.filter { try view.has($0, reader, head) }.prefix(CloudMappings.maxCandidates)
                    )
                }
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
        _ now: HistoricalState,
        limit: Int?
    ) throws -> [ObjectID] {
        if cloud.hasPrefix(assetPrefix) {
            let digest = String(cloud.dropFirst(assetPrefix.count))
            return try reader.assets.assets(withPrimaryOriginal: digest, limit: limit ?? CloudMappings.maxCandidates)
        }
        guard cloud.hasPrefix(collectionPrefix), let id = ObjectID(String(cloud.dropFirst(collectionPrefix.count))),
            id.kind != .asset, !id.isTransient, try now.had(id)
        else { return [] }
        return [id]
    }
}

extension LimitedView {
    /// Returns true if an asset or a collection is in the view now.
    fileprivate func has(_ id: ObjectID, _ reader: LibraryReader, _ head: LibraryHead) throws -> Bool {
        id.kind == .asset ? try contains(id, reader) : try hasCollection(id, reader, head)
    }
}

extension ResourceType {
    /// True for the original that identifies an asset; each asset has one.
    fileprivate var isCloudOriginal: Bool { self == .photo || self == .video || self == .audio }
}
