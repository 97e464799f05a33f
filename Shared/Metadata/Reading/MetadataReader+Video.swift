public import ImageFormats
import PhotoModel

extension MetadataReader {
    /// The frame rate, in frames per second, from which a video counts as slow motion (S-34).
    static let minSlowMotionFrameRate = 100.0

    /// Reads the metadata of a video from its container.
    ///
    /// Reads QuickTime and MPEG-4 files only; for other containers see ``video(_:)``.
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
        return video(movie)
    }

    /// Returns the metadata of a video from its header.
    ///
    /// The date is QuickTime's `creationdate`, which has an offset, or else that of the header, which is UTC. The
    /// location is `location.ISO6709`. XMP adds values that these do not have.
    public static func video(_ movie: MovieHeader) -> PhotoMetadata {
        var facts = PhotoMetadata(
            contentType: movie.contentType,
            pixelWidth: movie.pixelWidth,
            pixelHeight: movie.pixelHeight
        )
        facts.isVideo = true
        facts.duration = movie.duration
        if max(movie.frameRate, movie.captureRate ?? 0) >= minSlowMotionFrameRate {
            facts.mediaSubtypes |= PhotoMetadata.Subtype.highFrameRate
        }
        // In a time lapse, far fewer frames per second were recorded than are played.
        if let rate = movie.captureRate, rate > 0, 2 * rate < movie.frameRate {
            facts.mediaSubtypes |= PhotoMetadata.Subtype.timelapse
        }
        let xmp = movie.xmp.flatMap { try? SidecarMetadata(xmp: $0) }
        facts.location = movie.values["location.ISO6709"].flatMap(parseLocation) ?? xmp?.location
        let date = movie.values["creationdate"]
        if let time = CaptureTime(xmp: date) ?? CaptureTime(exif: date) {
            facts.captureOffset = time.offset ?? time.offset(at: facts.location)
            facts.isOffsetDerived = time.offset == nil && facts.captureOffset != nil
            facts.captureDate = time.utc(fallbackOffset: facts.captureOffset ?? 0)
        } else if let created = movie.created {
            facts.captureDate = created
            facts.isCaptureTimeUTC = true
            facts.captureOffset = facts.location.flatMap { PlaceTimeZones.table?.offset(at: created, $0) }
            facts.isOffsetDerived = facts.captureOffset != nil
        }
        facts.cameraMake = movie.values["make"]
        facts.cameraModel = movie.values["model"]
        facts.lensModel = movie.values["camera.lens_model"]
        facts.caption = movie.values["description"] ?? movie.values["comment"]
        facts.keywords = keywords(movie.values["keywords"])
        facts.metadata = AssetMetadataReader.read(movie.values)
        facts.contentIdentifier = movie.values["content.identifier"]
        if let xmp { facts.add(xmp) }
        return facts
    }

    /// Returns the words of a list that is separated by commas or semicolons.
    private static func keywords(_ text: String?) -> [String] {
        var seen: Set<String> = []
        return (text ?? "").split { $0 == "," || $0 == ";" }.map { String($0.trimmingSpaces.prefix(256)) }
            .filter { !$0.isEmpty && seen.insert($0).inserted }
    }

    /// Parses "+52.5000+013.4000+034.5/" of ISO 6709: degrees north, degrees east and metres, each with its sign.
    ///
    /// The name of the reference system may follow, as in "+27.5916+086.5640+8850CRSWGS_84/".
    static func parseLocation(_ text: String) -> PhotoMetadata.Coordinates? {
        var numbers: [Substring] = []
        var rest = text.prefix(64).prefix { $0 != "/" && $0 != "C" }
        while let sign = rest.first {
            guard sign == "+" || sign == "-" || numbers.isEmpty else { return nil }
            let end = rest.dropFirst().firstIndex { $0 == "+" || $0 == "-" } ?? rest.endIndex
            numbers.append(rest[..<end])
            rest = rest[end...]
        }
        guard numbers.count >= 2, let latitude = degrees(numbers[0]), let longitude = degrees(numbers[1]),
            (-90...90).contains(latitude), (-180...180).contains(longitude), latitude != 0 || longitude != 0
        else { return nil }
        let altitude = numbers.count > 2 ? Double(numbers[2]) : nil
        return .init(latitude: latitude, longitude: longitude, altitude: altitude?.isFinite == true ? altitude : nil)
    }

    /// Parses degrees, or degrees and minutes, or also seconds, by the number of digits before the point: "+52.5",
    /// "+5230.5" or "+523030.5".
    private static func degrees(_ text: Substring) -> Double? {
        guard let number = Double(text), number.isFinite else { return nil }
        let digits = text.drop { $0 == "+" || $0 == "-" }.prefix { $0 != "." }
        guard digits.allSatisfy({ $0.isASCII && $0.isNumber }) else { return nil }
        let magnitude = abs(number)
        var result = magnitude
        switch digits.count {
        case 0...3: break
        case 4...5:
            let minutes = magnitude.truncatingRemainder(dividingBy: 100)
            guard minutes < 60 else { return nil }
            result = (magnitude / 100).rounded(.down) + minutes / 60
        case 6...7:
            let (minutes, seconds) = (
                (magnitude / 100).rounded(.down).truncatingRemainder(dividingBy: 100),
                magnitude.truncatingRemainder(dividingBy: 100)
            )
            guard minutes < 60, seconds < 60 else { return nil }
            result = (magnitude / 10_000).rounded(.down) + minutes / 60 + seconds / 3600
        default: return nil
        }
        return text.hasPrefix("-") ? -result : result
    }

    /// Reads the metadata of a camera raw file.
    ///
    /// - Parameter fileExtension: the file extension without the dot
    /// - Returns: nil if the bytes are not a raw file
    public static func raw(_ bytes: [UInt8], fileExtension: String?) -> PhotoMetadata? {
        guard let contentType = RawFileType.sniff(bytes, fileExtension: fileExtension) else { return nil }
        if var facts = try? facts(of: bytes) {
            // The bytes determine the type; the extension is used only if they do not.
            if !facts.contentType.hasSuffix("raw-image") { facts.contentType = contentType }
            return facts
        }
        var facts = PhotoMetadata(contentType: contentType, pixelWidth: 0, pixelHeight: 0)
        if let block = MetadataBlock(raw: bytes) {
            let found = CaptureDateSource.find(block, PNGTextChunks())
            facts.captureDate = found?.0.utc(fallbackOffset: 0)
            facts.captureOffset = found?.0.offset
            facts.isCaptureTimeUTC = found?.0.isUTC ?? false
            facts.captureDateSource = found?.1
            facts.metadata = AssetMetadataReader.read(block, PersonReader.Frame(orientation: 1))
        }
        return facts
    }
}

extension PhotoMetadata {
    /// Adds the values of XMP that the container does not have.
    fileprivate mutating func add(_ xmp: SidecarMetadata) {
        if rating == 0 { rating = xmp.rating ?? 0 }
        if keywords.isEmpty { keywords = xmp.keywords ?? [] }
        caption = caption ?? xmp.caption
        cameraMake = cameraMake ?? xmp.cameraMake
        cameraModel = cameraModel ?? xmp.cameraModel
        lensModel = lensModel ?? xmp.lensModel
        if captureDate == nil, let date = xmp.captureDate {
            captureDate = date
            captureOffset = xmp.captureOffset
            isOffsetDerived = xmp.isOffsetDerived
            isCaptureTimeUTC = xmp.isCaptureTimeUTC
        }
        if let more = xmp.metadata { metadata = metadata.map { more.replacing(with: $0) } ?? more }
    }
}

extension Substring {
    /// The text without white space at its ends.
    fileprivate var trimmingSpaces: Substring {
        var text = drop { $0.isWhitespace }
        while text.last?.isWhitespace == true { text.removeLast() }
        return text
    }
}
