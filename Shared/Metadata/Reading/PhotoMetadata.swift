import Basics
import ImageFormats
public import JSONValue
public import PhotoModel

/// The metadata of a photo or video file.
///
/// Properties that the file does not contain, or contains in a broken form, are `nil` (S-30 to S-33, T-08).
public struct PhotoMetadata: Sendable, Hashable {
    /// Coordinates in degrees, and metres above sea level.
    public struct Coordinates: Sendable, Hashable {
        /// Degrees north, -90...90.
        public var latitude: Double
        /// Degrees east, -180...180.
        public var longitude: Double
        /// Metres above sea level; nil if unknown.
        public var altitude: Double?

        public init(latitude: Double, longitude: Double, altitude: Double? = nil) {
            self.latitude = latitude
            self.longitude = longitude
            self.altitude = altitude
        }
    }

    /// The uniform type identifier, such as "public.jpeg".
    public var contentType: String
    /// Pixels as displayed, with orientation applied.
    public var pixelWidth: Int
    public var pixelHeight: Int
    /// Why the image cannot be shown, although its file is whole: it is beyond ``ImageBounds``. Nil if it can be shown.
    public var damage: String?
    /// The EXIF orientation 1...8 as stored. Informational for HEIC, AVIF and JPEG XL, whose decoders apply the file's
    /// own orientation.
    public var orientation = 1
    /// The capture time in microseconds since 1970-01-01T00:00:00Z. For a file without a time zone it was computed with
    /// the fallback offset.
    public var captureDate: Int64?
    /// Seconds east of UTC; `nil` if neither the file nor its location gives it.
    public var captureOffset: Int?
    /// True if `captureOffset` is not in the file, but that of the time zone of `location`.
    public var isOffsetDerived = false
    /// True if `captureDate` does not depend on a time zone, as that of GPS; false if it is the time of a local clock.
    public var isCaptureTimeUTC = false
    /// The field of the capture date. If it is the time of the last change, the file has no date of capture.
    public var captureDateSource: CaptureDateSource?
    public var location: Coordinates?
    public var cameraMake: String?
    public var cameraModel: String?
    public var lensModel: String?
    /// PhotoKit's mask: panorama 1, HDR 2, screenshot 4, depth effect 16, animation 64.
    ///
    /// Live Photos (8) are pairs of files, which the catalog detects by `contentIdentifier`, or have an
    /// `embeddedVideo`.
    public var mediaSubtypes = 0
    /// True if the file has more than one frame.
    public var isAnimated = false
    /// 0...5; 0 is unrated.
    public var rating = 0
    public var caption: String?
    public var keywords: [String] = []
    /// Further facts that people search by; nil if the file has none.
    public var metadata: AssetMetadata?
    /// Apple's identifier shared by the still and the video of a Live Photo.
    public var contentIdentifier: String?
    /// SHA-256 of the image data, 32 bytes; nil if it was not computed.
    public var imageDigest: [UInt8]?
    /// The video in the file of a motion photo; nil if there is none.
    public var embeddedVideo: MotionPhotoVideo?
    /// Apple's identifier shared by the frames of a burst.
    public var burstIdentifier: String?
    /// The sharpness of a frame of a burst (``MetadataReader/sharpness(of:)``); nil if it was not measured.
    public var sharpness: Double?
    /// True if the file is a video, of which only the container was read.
    public var isVideo = false
    /// The duration in microseconds; 0 for an image.
    public var duration: Int64 = 0

    public init(contentType: String, pixelWidth: Int, pixelHeight: Int) {
        self.contentType = contentType
        self.pixelWidth = pixelWidth
        self.pixelHeight = pixelHeight
    }

    /// True if decoders apply the file's own orientation, in which case `orientation` is informational.
    public var isOrientedByDecoder: Bool {
        ImageFormat.allCases.contains { $0.contentType == contentType && $0.isOrientedByDecoder }
    }

    /// The possible values of `sharpness`.
    private static let sharpnesses = 0...1e9

    /// The bits of `mediaSubtypes`.
    public enum Subtype {
        public static let panorama = 1
        public static let hdr = 2
        public static let screenshot = 4
        public static let live = 8
        public static let depthEffect = 16
        public static let animation = 64
        public static let highFrameRate = 1 << 17
        public static let timelapse = 1 << 18
    }
}

extension PhotoMetadata {
    /// The JSON form in which a worker returns the metadata; `nil` values are omitted.
    public var json: JSON {
        var object: JSONObject = [
            "contentType": .string(contentType), "pixelWidth": JSON(pixelWidth), "pixelHeight": JSON(pixelHeight),
            "orientation": JSON(orientation),
        ]
        object["damage"] = damage.map(JSON.string)
        object["captureDate"] = captureDate.map(JSON.int)
        object["captureOffset"] = captureOffset.map { JSON($0) }
        if isOffsetDerived { object["isOffsetDerived"] = true }
        if isCaptureTimeUTC { object["isCaptureMoment"] = true }
        object["captureDateSource"] = (captureDateSource?.rawValue).map(JSON.string)
        if let location {
            var place: JSONObject = ["latitude": .double(location.latitude), "longitude": .double(location.longitude)]
            place["altitude"] = location.altitude.map(JSON.double)
            object["location"] = .object(place)
        }
        object["cameraMake"] = cameraMake.map(JSON.string)
        object["cameraModel"] = cameraModel.map(JSON.string)
        object["lensModel"] = lensModel.map(JSON.string)
        object["mediaSubtypes"] = JSON(mediaSubtypes)
        object["isAnimated"] = .bool(isAnimated)
        object["rating"] = JSON(rating)
        object["caption"] = caption.map(JSON.string)
        object["keywords"] = JSON(keywords)
        object["metadata"] = metadata?.json
        object["contentIdentifier"] = contentIdentifier.map(JSON.string)
        object["imageDigest"] = imageDigest.map { .string($0.hexadecimal) }
        object["film"] = embeddedVideo?.json
        object["burstIdentifier"] = burstIdentifier.map(JSON.string)
        object["sharpness"] = sharpness.map(JSON.double)
        if isVideo {
            object["isFilm"] = true
            object["duration"] = .int(duration)
        }
        return .object(object)
    }

    /// Decodes the metadata that a worker returned.
    ///
    /// A worker that opened a hostile file may be compromised, so sizes, dates and locations are checked again.
    public init(json: JSON) throws(MetadataError) {
        guard let contentType = json["contentType"]?.stringValue,
            let width = json["pixelWidth"]?.intValue, let height = json["pixelHeight"]?.intValue,
            (0...Int64(Asset.maxSide)).contains(width), (0...Int64(Asset.maxSide)).contains(height)
        else { throw .invalidFacts("contentType, pixelWidth and pixelHeight are required") }
        self.init(contentType: contentType, pixelWidth: Int(width), pixelHeight: Int(height))
        guard let orientation = json["orientation"]?.intValue, (1...8).contains(orientation) else {
            throw .invalidFacts("orientation must be 1...8")
        }
        self.orientation = Int(orientation)
        damage = json["damage"]?.stringValue
        captureDate = json["captureDate"]?.intValue
        captureOffset = json["captureOffset"]?.intValue.flatMap { $0.magnitude <= 86_400 ? Int($0) : nil }
        isOffsetDerived = json["isOffsetDerived"]?.boolValue ?? false
        isCaptureTimeUTC = json["isCaptureMoment"]?.boolValue ?? false
        captureDateSource = json["captureDateSource"]?.stringValue.flatMap(CaptureDateSource.init)
        if let place = json["location"] {
            guard let latitude = place["latitude"]?.doubleValue, let longitude = place["longitude"]?.doubleValue,
                (-90...90).contains(latitude), (-180...180).contains(longitude)
            else { throw .invalidFacts("location must have latitude and longitude in degrees") }
            location = Coordinates(latitude: latitude, longitude: longitude, altitude: place["altitude"]?.doubleValue)
        }
        cameraMake = json["cameraMake"]?.stringValue
        cameraModel = json["cameraModel"]?.stringValue
        lensModel = json["lensModel"]?.stringValue
        mediaSubtypes = Int(json["mediaSubtypes"]?.intValue ?? 0)
        isAnimated = json["isAnimated"]?.boolValue ?? false
        rating = Int(min(5, max(0, json["rating"]?.intValue ?? 0)))
        caption = json["caption"]?.stringValue
        keywords = (json["keywords"]?.arrayValue ?? []).compactMap(\.stringValue)
        metadata = try json["metadata"].map(Self.metadata)
        contentIdentifier = json["contentIdentifier"]?.stringValue
        imageDigest = json["imageDigest"]?.stringValue.flatMap { [UInt8](hexadecimal: $0) }.flatMap {
            $0.count == 32 ? $0 : nil
        }
        embeddedVideo = json["film"].flatMap(MotionPhotoVideo.init)
        burstIdentifier = json["burstIdentifier"]?.stringValue
        sharpness = json["sharpness"]?.doubleValue.flatMap { Self.sharpnesses.contains($0) ? $0 : nil }
        isVideo = json["isFilm"]?.boolValue ?? false
        duration = min(10_000_000_000_000, max(0, json["duration"]?.intValue ?? 0))
    }

    static func metadata(_ json: JSON) throws(MetadataError) -> AssetMetadata {
        do throws(JSONProblem) {
            return try AssetMetadata(json: json)
        } catch {
            throw .invalidFacts("metadata: \(error)")
        }
    }
}
