import PhotoModel

/// The part of an asset that the thumbnailer needs.
struct AssetSummary: Sendable, Hashable {
    var id: ObjectID
    var contentRevision: Revision
    var mediaType: MediaType
    var resources: [AssetResource]
    var filename: String?

    init(_ asset: Asset) {
        id = asset.id
        contentRevision = asset.contentRevision
        mediaType = asset.mediaType
        resources = asset.resources
        filename = asset.originalFilename
    }

    func resource(_ type: ResourceType) -> AssetResource? { resources.first { $0.type == type } }
}
