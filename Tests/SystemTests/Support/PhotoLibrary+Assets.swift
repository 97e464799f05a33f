import Basics
import Contracts
import PhotoClient
import PhotoModel
import Testing

extension PhotoLibrary {
    /// Creates an asset whose original has these bytes.
    func createAsset(_ bytes: Bytes) async throws -> ObjectID {
        let created = try await perform(
            [.createAsset(.init(ref: "a", resources: [NewResource(source: .attachment(0))]))],
            attachments: [bytes]
        )
        return try #require(created.id("a"))
    }

    /// Creates an asset whose original is a file that the catalog reads.
    func createAsset(path: String) async throws -> ObjectID {
        let created = try await perform([
            .createAsset(.init(ref: "a", resources: [NewResource(source: .path(path))]))
        ])
        return try #require(created.id("a"))
    }
}
