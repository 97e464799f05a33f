import JSONValue

/// PhotoKit's `PHAssetCollectionSubtype`.
public enum CollectionSubtype: String, NumberedName {
    case any
    case albumRegular, albumSyncedEvent, albumSyncedFaces, albumSyncedAlbum, albumImported
    case albumMyPhotoStream, albumCloudShared
    case smartAlbumGeneric, smartAlbumPanoramas, smartAlbumVideos, smartAlbumFavorites, smartAlbumTimelapses
    case smartAlbumAllHidden, smartAlbumRecentlyAdded, smartAlbumBursts, smartAlbumSlomoVideos
    case smartAlbumUserLibrary, smartAlbumSelfPortraits, smartAlbumScreenshots, smartAlbumDepthEffect
    case smartAlbumLivePhotos, smartAlbumAnimated, smartAlbumLongExposures, smartAlbumUnableToUpload
    case smartAlbumRAW, smartAlbumCinematic, smartAlbumSpatial, smartAlbumScreenRecordings

    public var number: Int {
        switch self {
        case .any: Int.max
        case .albumRegular: 2
        case .albumSyncedEvent: 3
        case .albumSyncedFaces: 4
        case .albumSyncedAlbum: 5
        case .albumImported: 6
        case .albumMyPhotoStream: 100
        case .albumCloudShared: 101
        case .smartAlbumGeneric: 200
        case .smartAlbumPanoramas: 201
        case .smartAlbumVideos: 202
        case .smartAlbumFavorites: 203
        case .smartAlbumTimelapses: 204
        case .smartAlbumAllHidden: 205
        case .smartAlbumRecentlyAdded: 206
        case .smartAlbumBursts: 207
        case .smartAlbumSlomoVideos: 208
        case .smartAlbumUserLibrary: 209
        case .smartAlbumSelfPortraits: 210
        case .smartAlbumScreenshots: 211
        case .smartAlbumDepthEffect: 212
        case .smartAlbumLivePhotos: 213
        case .smartAlbumAnimated: 214
        case .smartAlbumLongExposures: 215
        case .smartAlbumUnableToUpload: 216
        case .smartAlbumRAW: 217
        case .smartAlbumCinematic: 218
        case .smartAlbumSpatial: 219
        case .smartAlbumScreenRecordings: 220
        }
    }
}
