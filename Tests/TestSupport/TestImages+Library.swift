import Contracts
public import PhotoClient
public import PhotoModel

extension TestImages {
    /// Imports images into a library.
    ///
    /// - Returns: their assets in order, and the bytes of each
    public static func importImages(
        _ count: Int,
        into library: PhotoLibrary,
        make: (_ index: Int) -> [UInt8]
    ) async throws -> (ids: [ObjectID], originals: [ObjectID: [UInt8]]) {
        var ids: [ObjectID] = []
        var originals: [ObjectID: [UInt8]] = [:]
        for index in 0..<count {
            let bytes = make(index)
            let outcome = try await library.perform(
                [.createAsset(.init(ref: "a", resources: [NewResource(source: .attachment(0))]))],
                attachments: [bytes]
            )
            guard let id = outcome.id("a") else { continue }
            ids.append(id)
            originals[id] = bytes
        }
        return (ids, originals)
    }
}
