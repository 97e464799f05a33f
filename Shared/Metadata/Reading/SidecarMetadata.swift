import ImageFormats
public import JSONValue
public import PhotoModel

/// The metadata of an XMP sidecar. Values that the sidecar does not contain are nil.
public struct SidecarMetadata: Sendable, Hashable {
    /// 0...5; a rejected image (-1) is 0.
    public var rating: Int?
    public var caption: String?
    public var keywords: [String]?
    public var cameraMake: String?
    public var cameraModel: String?
    public var lensModel: String?
    public var location: PhotoMetadata.Coordinates?
    /// Microseconds since 1970-01-01T00:00:00Z.
    public var captureDate: Int64?
    /// Seconds east of UTC, if the date has an offset.
    public var captureOffset: Int?
    /// True if `captureOffset` is that of the time zone of the location.
    public var isOffsetDerived = false
    /// True if `captureDate` does not depend on a time zone; false if it is the time of a local clock.
    public var isCaptureTimeUTC = false
    public var metadata: AssetMetadata?
    /// The digest of the file that Safelight exported with this sidecar, which has all values of the library: a missing
    /// value was removed there. Nil in sidecars of other programs, which write only some values.
    public var original: String?

    public init() {}

    /// The image that a sidecar belongs to.
    public struct Image: Sendable, Hashable {
        /// The size in pixels as displayed.
        public var pixelWidth: Int
        public var pixelHeight: Int
        /// The EXIF orientation 1...8 of the stored pixels.
        public var orientation: Int

        public init(pixelWidth: Int, pixelHeight: Int, orientation: Int) {
            (self.pixelWidth, self.pixelHeight, self.orientation) = (pixelWidth, pixelHeight, orientation)
        }
    }

    /// The maximum size of a sidecar in bytes. It is generous because some programs store whole edits in sidecars.
    public static let maxBytes = 4 << 20

    /// Parses a sidecar.
    ///
    /// It may be encoded in UTF-8, UTF-16 or UTF-32, and begin with white space or without a packet header. Each value
    /// is read from the XMP fields of ``MetadataFields``; the time of the last change is not a date of capture. An
    /// empty list of keywords is read as an empty list; any other empty value is nil.
    ///
    /// - Parameters:
    ///   - image: the image beside it, to whose stored pixels areas of faces refer; nil if it is not known
    ///   - fallbackOffset: seconds east of UTC for dates without a time zone
    /// - Throws: `MetadataError.invalidSidecar` if it is not XMP, or cannot be parsed
    public init(xmp bytes: [UInt8], beside image: Image? = nil, fallbackOffset: Int = 0) throws(MetadataError) {
        guard let block = MetadataBlock(sidecar: bytes) else { throw .invalidSidecar(isEmpty: bytes.isEmpty) }
        self.init()
        if block.text("Xmp.safelight.digest") != nil { original = block.text("Xmp.safelight.original") }
        rating = block.rating("Xmp.xmp.Rating")
        caption = MetadataReader.caption(block)
        if block.hasField("Xmp.dc.subject") {
            var seen: Set<String> = []
            let words = block.texts("Xmp.dc.subject").compactMap(MetadataReader.keyword)
            keywords = words.filter { seen.insert($0).inserted }
        }
        cameraMake = MetadataReader.first(MetadataFields.makes, block)
        cameraModel = MetadataReader.first(MetadataFields.models, block)
        lensModel = LensReader.lens(block)
        location = LocationReader.location(block)
        metadata = AssetMetadataReader.read(block, Self.frame(block, image))
        guard let (time, source) = CaptureDateSource.find(block, PNGTextChunks()), !source.isModification
        else { return }
        captureOffset = time.offset ?? time.offset(at: location)
        isOffsetDerived = time.offset == nil && captureOffset != nil
        isCaptureTimeUTC = time.isUTC
        captureDate = time.utc(fallbackOffset: captureOffset ?? fallbackOffset)
    }

    /// Returns the pixels to which areas of faces refer: the stored ones, whose orientation is often only in the image.
    /// Without an orientation of their own, Safelight's sidecars have areas of the displayed image.
    private static func frame(_ block: borrowing MetadataBlock, _ image: Image?) -> PersonReader.Frame {
        let isExported = block.text("Xmp.safelight.original") != nil
        let own = block.number("Xmp.tiff.Orientation").flatMap { (1...8).contains($0) ? $0 : nil }
        var frame = PersonReader.Frame(orientation: own ?? (isExported ? 1 : image?.orientation ?? 1))
        if let image {
            let swapsSides = image.orientation >= 5
            frame.width = Double(swapsSides ? image.pixelHeight : image.pixelWidth)
            frame.height = Double(swapsSides ? image.pixelWidth : image.pixelHeight)
        }
        return frame
    }
}

extension SidecarMetadata {
    /// The JSON form in which a worker returns the metadata.
    public var json: JSON {
        var object: JSONObject = [:]
        object["rating"] = rating.map { JSON($0) }
        object["caption"] = caption.map(JSON.string)
        object["keywords"] = keywords.map { JSON($0) }
        object["cameraMake"] = cameraMake.map(JSON.string)
        object["cameraModel"] = cameraModel.map(JSON.string)
        object["lensModel"] = lensModel.map(JSON.string)
        if let location {
            var place: JSONObject = ["latitude": .double(location.latitude), "longitude": .double(location.longitude)]
            place["altitude"] = location.altitude.map(JSON.double)
            object["location"] = .object(place)
        }
        object["captureDate"] = captureDate.map(JSON.int)
        object["captureOffset"] = captureOffset.map { JSON($0) }
        if isOffsetDerived { object["isOffsetDerived"] = true }
        if isCaptureTimeUTC { object["isCaptureMoment"] = true }
        object["metadata"] = metadata?.json
        object["original"] = original.map(JSON.string)
        return .object(object)
    }

    /// Decodes and checks the metadata that a worker returned.
    public init(json: JSON) throws(MetadataError) {
        guard json.objectValue != nil else { throw .invalidFacts("the metadata must be an object") }
        self.init()
        rating = json["rating"]?.intValue.map { Int(min(5, max(0, $0))) }
        caption = json["caption"]?.stringValue
        keywords = json["keywords"]?.arrayValue?.compactMap(\.stringValue)
        cameraMake = json["cameraMake"]?.stringValue
        cameraModel = json["cameraModel"]?.stringValue
        lensModel = json["lensModel"]?.stringValue
        if let place = json["location"], let latitude = place["latitude"]?.doubleValue,
            let longitude = place["longitude"]?.doubleValue, (-90...90).contains(latitude),
            (-180...180).contains(longitude)
        {
            location = .init(latitude: latitude, longitude: longitude, altitude: place["altitude"]?.doubleValue)
        }
        captureDate = json["captureDate"]?.intValue
        captureOffset = json["captureOffset"]?.intValue.flatMap { $0.magnitude <= 86_400 ? Int($0) : nil }
        isOffsetDerived = json["isOffsetDerived"]?.boolValue ?? false
        isCaptureTimeUTC = json["isCaptureMoment"]?.boolValue ?? false
        metadata = try json["metadata"].map(PhotoMetadata.metadata)
        original = json["original"]?.stringValue
    }
}
