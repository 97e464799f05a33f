import Contracts
import JSONValue
import PhotoModel

/// Implements `ids.toCloud` and `ids.toLocal` (T-39).
///
/// An asset is identified by the bytes of its original, which export and import keep, and a pair by those of the
/// compressed one, whichever is presented; albums and folders are by their own identifier, which every backup and copy
/// of the library keeps. So a mapping needs no state that could be lost.
extension FetchService {
    private static let assetPrefix = "safelight:original:"
    private static let collectionPrefix = "safelight:collection:"

    /// - Parameter view: for an identity with a limited grant, what it sees; other objects have the error of unknown
    ///   ones
    func toCloud(_ request: IDsToCloud, view: LimitedView? = nil) async throws -> CloudMappings {
        try await store.read { reader in
            let head = try reader.head()
            let now = HistoricalState(reader: reader, sequence: head.sequence, head: head)
            var mappings = JSONObject()
            for id in request.ids {
                // Before any look-up, so that existing and unknown objects take the same time.
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
            let now = HistoricalState(reader: reader, sequence: head.sequence, head: head)
            var mappings = JSONObject()
            let digests = request.cloudIDs.compactMap(Self.digest)
            let listed = try view?.assets(withPrimaryOriginals: digests, reader, limit: CloudMappings.maxCandidates)
            for cloud in request.cloudIDs {
                let candidates =
                    if let listed, let digest = Self.digest(cloud) {
                        listed[digest] ?? []
                    } else {
                        try Self.candidates(cloud, reader, now, view)
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
        return try now.asset(id)?.primaryOriginal.map { assetPrefix + $0.digest }
    }

    /// Returns the digest in the cloud identifier of an asset.
    private static func digest(_ cloud: String) -> String? {
        cloud.hasPrefix(assetPrefix) ? cloud.dropFirst(assetPrefix.count).lowercased() : nil
    }

    private static func candidates(
        _ cloud: String,
        _ reader: LibraryReader,
        _ now: HistoricalState,
        _ view: LimitedView?
    ) throws -> [ObjectID] {
        if let digest = digest(cloud) {
            return try reader.assets.assets(withPrimaryOriginal: digest, limit: CloudMappings.maxCandidates)
        }
        guard cloud.hasPrefix(collectionPrefix), let id = ObjectID(String(cloud.dropFirst(collectionPrefix.count))),
            id.kind != .asset, !id.isTransient, try view?.hasCollection(id, reader, now.head) ?? true, try now.had(id)
        else { return [] }
        return [id]
    }
}

extension LimitedView {
    /// Returns true if an asset or a collection is in the view now.
    func has(_ id: ObjectID, _ reader: LibraryReader, _ head: LibraryHead) throws -> Bool {
        id.kind == .asset ? try contains(id, reader) : try hasCollection(id, reader, head)
    }
}

extension Asset {
    /// The original whose bytes identify the asset in every copy of the library. Copies may present different originals
    /// of a pair.
    fileprivate var primaryOriginal: AssetResource? { originalChoices[.compressed] ?? originalResource }
}
