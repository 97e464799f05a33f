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
            attachments: "Response, image.degraded: the image, in one or more frames; above \(ImageDelivery.inReply) "
                + "bytes it is sent in image.chunk notifications before the response.",
            notifications: [.imageDegraded, .imageChunk]
        ),
        .method(data, access: .view, attachments: "As image.request.", notifications: [.imageChunk]),
        .method(sheet, access: .read, attachments: "Response: the image."),
        .method(
            frames,
            access: .read,
            attachments: "Response: the frames, one each, in order; those with an error have none."
        ),
        .method(
            livePhoto,
            access: .read,
            attachments: "Response, image.degraded: the still, as those of image.request.",
            notifications: [.imageDegraded, .imageChunk]
        ),
        .method(playback, access: .read),
        .method(
            readVideo,
            access: .read,
            attachments: "Response, resource.chunk: the bytes.",
            notifications: [.resourceChunk]
        ),
        .method(exportVideo, access: .read),
        .method(exportStatus, access: .read),
        .method(cancelExport, access: .read),
        .method(openCache, access: .read),
        .method(configureCache, access: .read),
        .method(startCaching, access: .read),
        .method(stopCaching, access: .read),
        .method(stopAllCaching, access: .read),
        .method(closeCache, access: .read),
        .method(cacheStatus, access: .read),
        .method(discover, access: .public),
        .method(health, access: .public),
        .method(figures, access: .read),
    ])
}
