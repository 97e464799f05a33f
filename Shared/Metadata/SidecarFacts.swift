import Glibc
public import JSONValue

/// What an XMP sidecar says about the picture beside it; what it does not say is nil.
public struct SidecarFacts: Sendable, Hashable {
    /// 0...5; a rejected picture (-1) is 0.
    public var rating: Int?
    /// The description, else the title.
    public var caption: String?
    public var keywords: [String]?
    public var location: PhotoFacts.Location?
    /// Microseconds since 1970-01-01T00:00:00Z.
    public var captureDate: Int64?
    /// Seconds east of UTC, where the date has them.
    public var captureOffset: Int?

    public init() {}

    /// The largest sidecar, in bytes: some programs keep whole edits in them.
    public static let maxBytes = 4 << 20

    /// Reads a sidecar.
    ///
    /// The date is `exif:DateTimeOriginal`, else `photoshop:DateCreated`, else `xmp:CreateDate`.
    ///
    /// - Throws: `MetadataError.invalid` where it is no XMP
    public init(xmp bytes: [UInt8], fallbackOffset: Int = 0) throws(MetadataError) {
        guard let block = MetadataBlock(sidecar: bytes) else {
            throw .invalid("the sidecar is no XMP that can be read")
        }
        self.init()
        rating = block.number("Xmp.xmp.Rating").map { min(5, max(0, $0)) }
        caption = Self.plain(block.texts("Xmp.dc.description").first) ?? Self.plain(block.texts("Xmp.dc.title").first)
        let words = block.texts("Xmp.dc.subject")
        if !words.isEmpty {
            var seen: Set<String> = []
            keywords = words.map { String($0.prefix(256)) }.filter { seen.insert($0).inserted }
        }
        location = PlaceReader.location(block)
        let time =
            CaptureTime(xmp: block.text("Xmp.exif.DateTimeOriginal"))
            ?? CaptureTime(xmp: block.text("Xmp.photoshop.DateCreated"))
            ?? CaptureTime(xmp: block.text("Xmp.xmp.CreateDate"))
        captureDate = time?.utc(fallbackOffset: fallbackOffset)
        captureOffset = time?.offset
    }

    /// Text of one language without the mark that names it.
    private static func plain(_ text: String?) -> String? {
        guard let text, !text.isEmpty else { return nil }
        guard text.hasPrefix("lang=\""), let space = text.firstIndex(of: " ") else { return text }
        let rest = String(text[text.index(after: space)...])
        return rest.isEmpty ? nil : rest
    }
}

extension SidecarFacts {
    /// The facts as they leave a worker.
    public var json: JSON {
        var object: JSONObject = [:]
        object["rating"] = rating.map { JSON($0) }
        object["caption"] = caption.map(JSON.string)
        object["keywords"] = keywords.map { JSON($0) }
        if let location {
            var place: JSONObject = ["latitude": .double(location.latitude), "longitude": .double(location.longitude)]
            place["altitude"] = location.altitude.map(JSON.double)
            object["location"] = .object(place)
        }
        object["captureDate"] = captureDate.map(JSON.int)
        object["captureOffset"] = captureOffset.map { JSON($0) }
        return .object(object)
    }

    /// Reads facts that a worker sent; they are checked again.
    public init(json: JSON) throws(MetadataError) {
        guard json.objectValue != nil else { throw .invalidFacts("facts are an object") }
        self.init()
        rating = json["rating"]?.intValue.map { Int(min(5, max(0, $0))) }
        caption = json["caption"]?.stringValue
        keywords = json["keywords"]?.arrayValue?.compactMap(\.stringValue)
        if let place = json["location"], let latitude = place["latitude"]?.doubleValue,
            let longitude = place["longitude"]?.doubleValue, (-90...90).contains(latitude),
            (-180...180).contains(longitude)
        {
            location = .init(latitude: latitude, longitude: longitude, altitude: place["altitude"]?.doubleValue)
        }
        captureDate = json["captureDate"]?.intValue
        captureOffset = json["captureOffset"]?.intValue.flatMap { $0.magnitude <= 86_400 ? Int($0) : nil }
    }
}
