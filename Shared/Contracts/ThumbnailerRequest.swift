import JSONValue
import PhotoModel

/// All requests of the thumbnailer.
public enum ThumbnailerRequest: ServiceRequest {
    case image(ImageRequest)
    case data(ImageData)
    case sheet(ImageSheet)
    case frames(ImageFrames)
    case livePhoto(LivePhotoRequest)
    case playback(VideoPlayback)
    case videoAsset(VideoAsset)
    case readVideo(ReadVideo)
    case exportVideo(ExportVideo)
    case exportStatus(WaitForVideoExport)
    case cancelExport(CancelVideoExport)
    case openCache(OpenCache)
    case configureCache(ConfigureCache)
    case startCaching(StartCaching)
    case stopCaching(StopCaching)
    case stopAllCaching(StopAllCaching)
    case closeCache(CloseCache)
    case cacheStatus(CacheStatus)
    case discover(Discover)
    case health(Health)
    case figures(MetricsRequest)

    public static let table = MethodTable<ThumbnailerRequest>([
        .method(
            image,
            access: .view,
            attachments: "Response, image.degraded: the image, in one or more frames; above "
                + "\(ImageDelivery.maxAttachedBytes) bytes it is sent in image.chunk notifications before the response.",
            notifications: [.imageDegraded, .imageChunk, .resourceProgress]
        ),
        .method(
            data,
            access: .view,
            attachments: "As image.request.",
            notifications: [.imageChunk, .resourceProgress]
        ),
        .method(sheet, access: .view, attachments: "Response: the image."),
        .method(
            frames,
            access: .view,
            attachments: "Response: the frames, one each, in order; those with an error have none.",
            notifications: [.resourceProgress]
        ),
        .method(
            livePhoto,
            access: .view,
            attachments: "Response, image.degraded: the still, as those of image.request.",
            notifications: [.imageDegraded, .imageChunk, .resourceProgress]
        ),
        .method(playback, access: .view, notifications: [.resourceProgress]),
        .method(videoAsset, access: .view, notifications: [.resourceProgress]),
        .method(
            readVideo,
            access: .view,
            attachments: "Response, resource.chunk: the bytes.",
            notifications: [.resourceChunk, .resourceProgress]
        ),
        .method(exportVideo, access: .view, notifications: [.resourceProgress]),
        .method(exportStatus, access: .view, limits: .waiting),
        .method(cancelExport, access: .view),
        .method(openCache, access: .view),
        .method(configureCache, access: .view),
        .method(startCaching, access: .view),
        .method(stopCaching, access: .view),
        .method(stopAllCaching, access: .view),
        .method(closeCache, access: .view),
        .method(cacheStatus, access: .view),
        .method(discover, access: .public),
        .method(health, access: .public),
        .method(figures, access: .read),
    ])
}
