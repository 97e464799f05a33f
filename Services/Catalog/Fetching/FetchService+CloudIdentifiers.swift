import Contracts
import JSONValue
import PhotoModel

/// Implements `ids.toCloud` and `ids.toLocal` (T-39).
///
/// An asset is identified by the bytes of its original, which export and import keep; a pair of originals by the bytes
/// of the compressed one, whichever is presented; albums and folders by their own identifier, which every backup and
/// copy of the library keeps. So a mapping needs no state that could be lost.
extension FetchService {
    private static let assetPrefix = "safelight:original:"
    private static let collectionPrefix = "safelight:collection:"

    /// - Parameter view: the view of an identity with a limited grant, in which other objects have the error of unknown
    ///   ones; nil for the whole library
    func toCloud(_ request: IDsToCloud, view: LimitedView? = nil) async throws -> CloudMappings {
        try await store.read { reader in
            let head = try reader.head()
            let state = HistoricalState(reader: reader, sequence: head.sequence, head: head)
            var mappings = JSONObject()
            for id in request.ids {
                // Checked before any look-up, so that existing and unknown objects take the same time.
                let isVisible = try view?.has(id, reader, head) ?? true
                let found = isVisible ? try Self.cloudIdentifier(of: id, state) : nil
                mappings[id.text] =
                    found.map(CloudMappings.found) ?? CloudMappings.failed(.identifierNotFound)
            }
            return CloudMappings(token: head.token, mappings: mappings)
        }
    }

    /// - Parameter view: the view of an identity with a limited grant, which contains all candidates; nil for the whole
    ///   library
    func toLocal(_ request: IDsToLocal, view: LimitedView? = nil) async throws -> CloudMappings {
        try await store.read { reader in
            let head = try reader.head()
            let state = HistoricalState(reader: reader, sequence: head.sequence, head: head)
            var mappings = JSONObject()
            let digests = request.cloudIDs.compactMap(Self.digest)
            let listed = try view?.assets(withPrimaryOriginals: digests, reader, limit: CloudMappings.maxCandidates)
            for cloud in request.cloudIDs {
                let candidates =
                    if let listed, let digest = Self.digest(cloud) {
                        listed[digest] ?? []
                    } else {
                        try Self.candidates(cloud, reader, state, view)
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

    private static func cloudIdentifier(of id: ObjectID, _ state: HistoricalState) throws -> String? {
        guard id.kind == .asset else {
            return try !id.isTransient && state.contains(id) ? collectionPrefix + id.text : nil
        }
        return try state.asset(id)?.primaryOriginal.map { assetPrefix + $0.digest }
    }

    /// Returns the digest in the cloud identifier of an asset.
    private static func digest(_ cloud: String) -> String? {
        cloud.hasPrefix(assetPrefix) ? cloud.dropFirst(assetPrefix.count).lowercased() : nil
    }

    private static func candidates(
        _ cloud: String,
        _ reader: LibraryReader,
        _ state: HistoricalState,
        _ view: LimitedView?
    ) throws -> [ObjectID] {
        if let digest = digest(cloud) {
            return try reader.assets.assets(withPrimaryOriginal: digest, limit: CloudMappings.maxCandidates)
        }
        guard cloud.hasPrefix(collectionPrefix), let id = ObjectID(String(cloud.dropFirst(collectionPrefix.count))),
            id.kind != .asset, !id.isTransient, try view?.hasCollection(id, reader, state.head) ?? true,
            try state.contains(id)
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
