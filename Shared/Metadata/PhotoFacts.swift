public import JSONValue
import PictureFormats

/// What a photo file says about itself.
///
/// Facts that the file does not hold, or holds broken, are `nil`. Sources: rows S-30..S-33 and T-08.
public struct PhotoFacts: Sendable, Hashable {
    /// Degrees, and metres above the sea.
    public struct Location: Sendable, Hashable {
        /// -90...90, north positive.
        public var latitude: Double
        /// -180...180, east positive.
        public var longitude: Double
        public var altitude: Double?

        public init(latitude: Double, longitude: Double, altitude: Double? = nil) {
            self.latitude = latitude
            self.longitude = longitude
            self.altitude = altitude
        }
    }

    /// The uniform type identifier, such as "public.jpeg".
    public var contentType: String
    /// Pixels as displayed, orientation applied.
    public var pixelWidth: Int
    public var pixelHeight: Int
    /// EXIF 1...8 as stored.
    ///
    /// HEIC and AVIF are turned by their own transformations; there it is only told.
    public var orientation = 1
    /// When the picture was taken, in microseconds since 1970-01-01T00:00:00Z.
    ///
    /// A file without a time zone was read with the fallback offset.
    public var captureDate: Int64?
    /// Seconds east of UTC; `nil` when the file has none.
    public var captureOffset: Int?
    public var location: Location?
    public var cameraMake: String?
    public var cameraModel: String?
    public var lensModel: String?
    /// PhotoKit's mask: panorama 1, HDR 2, screenshot 4, depth effect 16, animation 64.
    ///
    /// Live Photos (8) are pairs, which only the catalog can see, by `contentIdentifier`.
    public var mediaSubtypes = 0
    public var isAnimated = false
    /// 0...5; 0 is none.
    public var rating = 0
    public var caption: String?
    public var keywords: [String] = []
    /// Apple's identifier that a Live Photo's still and video share.
    public var contentIdentifier: String?
    /// Apple's identifier that the frames of a burst share.
    public var burstIdentifier: String?
    /// Whether the bytes are a film, of which only the container was read.
    public var isFilm = false
    /// Microseconds; zero for a picture.
    public var duration: Int64 = 0

    public init(contentType: String, pixelWidth: Int, pixelHeight: Int) {
        self.contentType = contentType
        self.pixelWidth = pixelWidth
        self.pixelHeight = pixelHeight
    }

    /// Whether decoders turn the pixels as the file itself says: then `orientation` only tells.
    public var turnsItself: Bool {
        PictureKind.allCases.contains { $0.contentType == contentType && $0.turnsItself }
    }

    /// The bits of `mediaSubtypes`.
    public enum Subtype {
        public static let panorama = 1
        public static let hdr = 2
        public static let screenshot = 4
        public static let live = 8
        public static let depthEffect = 16
        public static let animation = 64
        public static let highFrameRate = 1 << 17
    }
}

extension PhotoFacts {
    /// The facts as they leave a worker; facts that are `nil` are left out.
    public var json: JSON {
        var object: JSONObject = [
            "contentType": .string(contentType), "pixelWidth": JSON(pixelWidth), "pixelHeight": JSON(pixelHeight),
            "orientation": JSON(orientation),
        ]
        object["captureDate"] = captureDate.map(JSON.int)
        object["captureOffset"] = captureOffset.map { JSON($0) }
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
        object["contentIdentifier"] = contentIdentifier.map(JSON.string)
        object["burstIdentifier"] = burstIdentifier.map(JSON.string)
        if isFilm {
            object["isFilm"] = true
            object["duration"] = .int(duration)
        }
        return .object(object)
    }

    /// Reads facts that a worker sent.
    ///
    /// A worker that opened a hostile file may itself be hostile: sizes, dates and places are checked again.
    public init(json: JSON) throws(MetadataError) {
        guard let contentType = json["contentType"]?.stringValue,
            let width = json["pixelWidth"]?.intValue, let height = json["pixelHeight"]?.intValue,
            (0...1_000_000).contains(width), (0...1_000_000).contains(height)
        else { throw .invalidFacts("contentType, pixelWidth and pixelHeight are needed") }
        self.init(contentType: contentType, pixelWidth: Int(width), pixelHeight: Int(height))
        guard let orientation = json["orientation"]?.intValue, (1...8).contains(orientation) else {
            throw .invalidFacts("orientation must be 1...8")
        }
        self.orientation = Int(orientation)
        captureDate = json["captureDate"]?.intValue
        captureOffset = json["captureOffset"]?.intValue.flatMap { $0.magnitude <= 86_400 ? Int($0) : nil }
        if let place = json["location"] {
            guard let latitude = place["latitude"]?.doubleValue, let longitude = place["longitude"]?.doubleValue,
                (-90...90).contains(latitude), (-180...180).contains(longitude)
            else { throw .invalidFacts("location must hold latitude and longitude in degrees") }
            location = Location(latitude: latitude, longitude: longitude, altitude: place["altitude"]?.doubleValue)
        }
        cameraMake = json["cameraMake"]?.stringValue
        cameraModel = json["cameraModel"]?.stringValue
        lensModel = json["lensModel"]?.stringValue
        mediaSubtypes = Int(json["mediaSubtypes"]?.intValue ?? 0)
        isAnimated = json["isAnimated"]?.boolValue ?? false
        rating = Int(min(5, max(0, json["rating"]?.intValue ?? 0)))
        caption = json["caption"]?.stringValue
        keywords = (json["keywords"]?.arrayValue ?? []).compactMap(\.stringValue)
        contentIdentifier = json["contentIdentifier"]?.stringValue
        burstIdentifier = json["burstIdentifier"]?.stringValue
        isFilm = json["isFilm"]?.boolValue ?? false
        duration = min(10_000_000_000_000, max(0, json["duration"]?.intValue ?? 0))
    }
}

/// Why a file has no facts, or metadata could not be written.
public enum MetadataError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The bytes begin no picture format that is known.
    case unsupported(found: String, supported: [String])
    /// The file ends inside its header.
    case truncated
    /// The file's structure is broken beyond its metadata.
    case invalid(String)
    /// JSON that is no `PhotoFacts`.
    case invalidFacts(String)

    /// The name of the error on the wire.
    public var name: String {
        switch self {
        case .unsupported: "unsupported_format"
        case .truncated, .invalid: "invalid_resource"
        case .invalidFacts: "internal_error"
        }
    }

    /// What is wrong and what to do.
    public var message: String {
        switch self {
        case .unsupported(let found, let supported):
            "the file is \(found); give one of \(supported.joined(separator: ", "))"
        case .truncated: "the picture file ends too early; copy it again from its source"
        case .invalid(let reason): "the picture file is broken: \(reason)"
        case .invalidFacts(let reason): reason
        }
    }

    public var description: String { message }
}
