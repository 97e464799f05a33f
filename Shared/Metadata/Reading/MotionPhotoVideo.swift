import ImageFormats
import JSONValue

/// The video in the file of a motion photo.
public struct MotionPhotoVideo: Sendable, Hashable {
    /// The offset and the size of the video in the file, in bytes.
    public var offset: Int64
    public var size: Int64
    /// The uniform type identifier.
    public var contentType: String
    /// Pixels as displayed.
    public var pixelWidth: Int
    public var pixelHeight: Int
    /// Microseconds.
    public var duration: Int64
}

extension MotionPhotoVideo {
    init(_ video: EmbeddedVideo) {
        offset = Int64(video.range.lowerBound)
        size = Int64(video.range.count)
        contentType = video.movie.contentType
        pixelWidth = video.movie.pixelWidth
        pixelHeight = video.movie.pixelHeight
        duration = video.movie.duration
    }

    /// The JSON form in which a worker returns it.
    var json: JSON {
        [
            "offset": .int(offset), "size": .int(size), "contentType": .string(contentType),
            "pixelWidth": JSON(pixelWidth), "pixelHeight": JSON(pixelHeight), "duration": .int(duration),
        ]
    }

    /// Decodes what a worker returned, which is checked because the worker opened untrusted bytes; nil if it is not
    /// valid.
    init?(json: JSON) {
        guard let offset = json["offset"]?.intValue, let size = json["size"]?.intValue,
            let contentType = json["contentType"]?.stringValue, let width = json["pixelWidth"]?.intValue,
            let height = json["pixelHeight"]?.intValue, let duration = json["duration"]?.intValue, offset >= 0,
            size > 0,
            (1...65_535).contains(width), (1...65_535).contains(height)
        else { return nil }
        self.offset = offset
        self.size = size
        self.contentType = contentType
        (pixelWidth, pixelHeight) = (Int(width), Int(height))
        self.duration = min(10_000_000_000_000, max(0, duration))
    }
}
