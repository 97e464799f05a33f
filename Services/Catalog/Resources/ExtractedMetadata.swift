import PhotoModel

/// Metadata that was read from a file before the transaction.
struct ExtractedMetadata: Sendable, Hashable {
    var mediaType = MediaType.image
    var mediaSubtypes: MediaSubtypes = []
    var playbackStyle = PlaybackStyle.image
    var contentType = ""
    /// The size in pixels after orientation.
    var pixelWidth = 0
    var pixelHeight = 0
    /// The reason why the image cannot be shown; nil if it can.
    var damage: String?
    /// The EXIF orientation of the stored pixels; 1 is upright.
    var orientation = 1
    /// Microseconds.
    var duration: Int64 = 0
    /// Microseconds since 1970.
    var creationDate: Int64?
    /// The offset from UTC in seconds.
    var creationOffset: Int?
    /// True if `creationDate` is the time of the file's last change, because the file has no date of capture.
    var isModificationDate = false
    /// True if `creationOffset` is that of the time zone of the location.
    var isOffsetDerived = false
    /// True if `creationDate` is an instant, independent of the time zone; false if it is local time, stored as UTC if
    /// there is no offset.
    var isInstant = false
    var location: Location?
    var burstIdentifier: String?
    /// The sharpness of a frame of a burst; nil if it was not measured.
    var sharpness: Double?
    var rating = 0
    var caption: String?
    var keywords: [String] = []
    var cameraMake: String?
    var cameraModel: String?
    var lensModel: String?
    var metadata: AssetMetadata?
    /// The identifier that the photo and the video of a Live Photo share.
    var contentIdentifier: String?
    /// SHA-256 of the image data; nil if the image data cannot be separated from the metadata.
    var imageDigest: [UInt8]?
    /// The video in the file of a motion photo.
    var embeddedVideo: MotionPhotoVideo?

    /// A part of a photo's file that is a video.
    struct MotionPhotoVideo: Sendable, Hashable {
        /// The offset of its bytes in the file.
        let offset: Int64
        /// The number of its bytes.
        let size: Int64
        let contentType: String
        let pixelWidth: Int
        let pixelHeight: Int
        /// Microseconds.
        let duration: Int64
    }
}
