import ImageFormats

extension MetadataReader {
    /// The frame rate, in frames per second, from which a video counts as slow motion (S-34).
    static let slowMotion = 100.0

    /// Reads the metadata of a video from its container.
    ///
    /// The date is QuickTime's `creationdate`, which has an offset, or else that of `mvhd`, which is UTC. The location
    /// is `location.ISO6709`.
    ///
    /// - Parameters:
    ///   - size: the size of the file in bytes
    ///   - read: returns the bytes of a range
    /// - Returns: nil if the file does not begin like a video
    /// - Throws: `MetadataError`, or an error of `read`
    public static func video(size: Int, read: (_ offset: Int, _ count: Int) throws -> [UInt8]) throws -> PhotoMetadata?
    {
        guard let contentType = MovieHeader.sniff(try read(0, 16)) else { return nil }
        let movie: MovieHeader
        do {
            movie = try MovieHeader.find(contentType: contentType, size: size, read: read)
        } catch let failure as ImageHeader.Failure {
            if case .invalid(let reason) = failure { throw MetadataError.invalid(reason) }
            throw MetadataError.truncated
        }
        guard movie.pixelWidth > 0 else { throw MetadataError.invalid("the file has no video track") }
        var facts = PhotoMetadata(
            contentType: contentType,
            pixelWidth: movie.pixelWidth,
            pixelHeight: movie.pixelHeight
        )
        facts.isVideo = true
        facts.duration = movie.duration
        if movie.frameRate >= slowMotion { facts.mediaSubtypes |= PhotoMetadata.Subtype.highFrameRate }
        facts.location = movie.values["location.ISO6709"].flatMap(place)
        if let time = CaptureTime(xmp: movie.values["creationdate"]) {
            facts.captureOffset = time.offset ?? time.offset(at: facts.location)
            facts.isOffsetDerived = time.offset == nil && facts.captureOffset != nil
            facts.captureDate = time.utc(fallbackOffset: facts.captureOffset ?? 0)
        } else if let created = movie.created {
            facts.captureDate = created
            facts.captureOffset = facts.location.flatMap { PlaceTimeZones.table?.offset(at: created, $0) }
            facts.isOffsetDerived = facts.captureOffset != nil
        }
        facts.cameraMake = movie.values["make"]
        facts.cameraModel = movie.values["model"]
        facts.caption = movie.values["description"]
        facts.metadata = AssetMetadataReader.read(movie.values)
        facts.contentIdentifier = movie.values["content.identifier"]
        return facts
    }

    /// Parses "+52.5000+013.4000+034.5/": degrees north, degrees east and metres, each with its sign.
    static func place(_ text: String) -> PhotoMetadata.Coordinates? {
        var numbers: [Double] = []
        var current = ""
        for character in text.prefix(64) + "/" {
            if "+-/".contains(character), !current.isEmpty {
                guard let number = Double(current) else { return nil }
                numbers.append(number)
                current = ""
            }
            if character == "/" { break }
            current.append(character)
        }
        guard numbers.count >= 2, (-90...90).contains(numbers[0]), (-180...180).contains(numbers[1]) else { return nil }
        if numbers[0] == 0, numbers[1] == 0 { return nil }
        return .init(latitude: numbers[0], longitude: numbers[1], altitude: numbers.count > 2 ? numbers[2] : nil)
    }

    /// Reads the metadata of a camera raw file.
    ///
    /// - Parameter ending: the file extension without the dot
    /// - Returns: nil if the bytes are not a raw file
    public static func raw(_ bytes: [UInt8], ending: String?) -> PhotoMetadata? {
        guard let contentType = RawFileType.sniff(bytes, ending: ending) else { return nil }
        if var facts = try? facts(of: bytes) {
            // The bytes decide the type; the extension only if they do not.
            if !facts.contentType.hasSuffix("raw-image") { facts.contentType = contentType }
            return facts
        }
        var facts = PhotoMetadata(contentType: contentType, pixelWidth: 0, pixelHeight: 0)
        if let block = MetadataBlock(raw: bytes) {
            let found = CaptureDateSource.find(block, PNGTextChunks())
            facts.captureDate = found?.0.utc(fallbackOffset: 0)
            facts.captureDateSource = found?.1
            facts.metadata = AssetMetadataReader.read(block, PersonReader.Frame(orientation: 1))
        }
        return facts
    }
}
