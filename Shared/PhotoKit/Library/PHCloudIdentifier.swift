import Contracts
import JSONValue
import PhotoModel

/// The identifier of an object in every copy of the library: `PHCloudIdentifier` (T-39).
public struct PHCloudIdentifier: Sendable, Hashable, Codable {
    /// The identifier as text, to store or to send.
    public let stringValue: String

    public init(stringValue: String) { self.stringValue = stringValue }

    public init(archivalStringValue: String) { stringValue = archivalStringValue }

    public var archivalStringValue: String { stringValue }
}

extension PHPhotoLibrary {
    /// Returns the cloud identifiers of objects; for an object without one the error
    /// ``PHPhotosError/Code/identifierNotFound``.
    public func cloudIdentifierMappings(
        forLocalIdentifiers localIdentifiers: [String]
    ) -> [String: Result<PHCloudIdentifier, any Error>] {
        let unknown = PHPhotosError(.identifierNotFound, "no object has this identifier")
        var mappings: [String: Result<PHCloudIdentifier, any Error>] = [:]
        for identifier in localIdentifiers { mappings[identifier] = .failure(unknown) }
        let ids = localIdentifiers.compactMap { ObjectID($0) }
        for start in stride(from: 0, to: ids.count, by: CloudMappings.maxCount) {
            let part = Array(ids[start..<min(ids.count, start + CloudMappings.maxCount)])
            for (id, entry) in map(IDsToCloud(ids: part), part.map(\.text)) {
                mappings[id] = entry.map { PHCloudIdentifier(stringValue: $0) }
            }
        }
        return mappings
    }

    /// Returns the local identifiers of cloud identifiers; for an unknown one the error
    /// ``PHPhotosError/Code/identifierNotFound``, and for one that several objects have
    /// ``PHPhotosError/Code/multipleIdentifiersFound`` with ``PHPhotosError/localIdentifiers``.
    public func localIdentifierMappings(
        for cloudIdentifiers: [PHCloudIdentifier]
    ) -> [PHCloudIdentifier: Result<String, any Error>] {
        var mappings: [PHCloudIdentifier: Result<String, any Error>] = [:]
        let ids = cloudIdentifiers.map(\.stringValue)
        for start in stride(from: 0, to: ids.count, by: CloudMappings.maxCount) {
            let part = Array(ids[start..<min(ids.count, start + CloudMappings.maxCount)])
            for (id, entry) in map(IDsToLocal(cloudIDs: part), part) {
                mappings[PHCloudIdentifier(stringValue: id)] = entry
            }
        }
        return mappings
    }

    private func map<R: Request>(
        _ request: R,
        _ ids: [String]
    ) -> [(id: String, entry: Result<String, any Error>)] where R.Result == CloudMappings {
        let connection = connection
        do throws(RPCError) {
            let found = try connection.wait { () async throws(RPCError) in
                try await connection.askCatalog(request).mappings
            }
            return ids.map { ($0, Self.entry(found[$0])) }
        } catch {
            return ids.map { ($0, .failure(PHPhotosError(error))) }
        }
    }

    private static func entry(_ json: JSON?) -> Result<String, any Error> {
        if let id = json?["id"]?.stringValue { return .success(id) }
        let code = json?["error"]?.stringValue.flatMap { ErrorCode(rawValue: $0) } ?? .identifierNotFound
        let candidates = (json?["candidates"]?.arrayValue ?? []).compactMap(\.stringValue)
        guard !candidates.isEmpty else { return .failure(PHPhotosError(code, "no object has this identifier")) }
        let message = "several objects have it: \(candidates.joined(separator: ", "))"
        return .failure(PHPhotosError(code.error(message, ["candidates": JSON(candidates)])))
    }
}
