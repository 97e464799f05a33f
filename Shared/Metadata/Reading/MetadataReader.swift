import CMetadata
public import ImageFormats

/// Reads the metadata of photo files.
public enum MetadataReader {
    /// The version of the metadata library, for example "0.27.6".
    public static var libraryVersion: String {
        let number = Int(safelight_metadata_version())
        return "\(number >> 16).\(number >> 8 & 0xFF).\(number & 0xFF)"
    }

    /// Reads the metadata of an image.
    ///
    /// Each fact is read from the fields of ``MetadataFields``, in their order; the capture date from those of
    /// ``CaptureDateSource``.
    ///
    /// A panorama has XMP GPano with a projection type, or EXIF CustomRendered 6. An HDR image has CustomRendered 2, 3
    /// or 7, or a gain map; 4 is the original beside an HDR image. A depth effect has 7 or 8. These are Apple's values.
    /// A screenshot is marked in the user comment.
    ///
    /// - Parameters:
    ///   - bytes: the whole file
    ///   - fallbackOffset: seconds east of UTC for dates without a time zone
    /// - Returns: the metadata; broken fields are `nil`
    /// - Throws: `MetadataError` if the bytes are not an image
    public static func facts(of bytes: [UInt8], fallbackOffset: Int = 0) throws(MetadataError) -> PhotoMetadata {
        facts(of: bytes, try header(of: bytes), fallbackOffset: fallbackOffset)
    }

    /// Reads the metadata of an image whose header was read before. This saves a pass over the file.
    public static func facts(
        of bytes: [UInt8],
        _ header: ImageHeader,
        fallbackOffset: Int = 0
    ) -> PhotoMetadata {
        var facts = PhotoMetadata(
            contentType: header.rawContentType ?? header.kind.contentType,
            pixelWidth: header.pixelWidth,
            pixelHeight: header.pixelHeight
        )
        facts.orientation = header.orientation
        facts.damage = header.problem
        facts.isAnimated = header.frameCount > 1
        if facts.isAnimated { facts.mediaSubtypes |= PhotoMetadata.Subtype.animation }
        facts.embeddedVideo = EmbeddedVideo.find(in: bytes, header).map(MotionPhotoVideo.init)
        guard let block = MetadataBlock(bytes, header) else { return facts }

        facts.location = LocationReader.location(block)
        if let (time, source) = CaptureDateSource.find(block, header.texts) {
            facts.captureOffset = time.offset ?? time.offset(at: facts.location)
            facts.isOffsetDerived = time.offset == nil && facts.captureOffset != nil
            facts.captureDate = time.utc(fallbackOffset: facts.captureOffset ?? fallbackOffset)
            facts.isCaptureTimeUTC = time.isUTC
            facts.captureDateSource = source
        }
        facts.cameraMake = first(MetadataFields.makes, block)
        facts.cameraModel = first(MetadataFields.models, block)
        facts.lensModel = LensReader.lens(block)
        facts.mediaSubtypes |= subtypes(block, bytes, header)
        for field in MetadataFields.ratings.reversed() { facts.rating = block.rating(field) ?? facts.rating }
        facts.caption = caption(block)
        facts.keywords = keywords(block)
        facts.metadata = AssetMetadataReader.read(block, PersonReader.Frame(header))
        let note = AppleMakerNote(block.bytes("Exif.Photo.MakerNote"))
        facts.contentIdentifier = note?.contentIdentifier
        facts.burstIdentifier = note?.burstIdentifier
        return facts
    }

    /// Refuses a truncated image, whose missing part would be rendered grey, and a header without an image.
    ///
    /// - Returns: the header
    /// - Throws: `MetadataError.truncated`, or another error if the bytes are not an image
    @discardableResult
    public static func requireWhole(_ bytes: [UInt8]) throws(MetadataError) -> ImageHeader {
        let header = try header(of: bytes)
        guard header.isComplete else { throw .truncated }
        guard header.kind != .jxl || JPEGXLFrames.areReadable(bytes) else {
            throw .invalid("a JPEG XL file whose frames cannot be read")
        }
        return header
    }

    /// The number of bytes that ``isVideo(_:rawFileExtension:)`` examines.
    public static let beginningBytes = 512

    /// Returns true if a file that begins with these bytes is a video, false if it is an image.
    ///
    /// - Parameters:
    ///   - beginning: the first ``beginningBytes`` of the file, or all if it is shorter
    ///   - rawFileExtension: the file extension if raw files are accepted too; else nil
    /// - Throws: ``MetadataError/unsupported(found:supported:)`` if it is neither
    public static func isVideo(_ beginning: [UInt8], rawFileExtension: String?) throws(MetadataError) -> Bool {
        if VideoFileType.sniff(beginning) != nil { return true }
        if let rawFileExtension, RawFileType.sniff(beginning, fileExtension: rawFileExtension) != nil { return false }
        guard ImageFormat.sniff(beginning) != nil else {
            throw .unsupported(
                found: ImageFormat.describe(beginning),
                supported: ImageFormat.supportedNames + VideoFileType.supportedNames
            )
        }
        return false
    }

    static func header(of bytes: [UInt8]) throws(MetadataError) -> ImageHeader {
        do {
            return try ImageHeader.read(bytes)
        } catch {
            switch error {
            case .unsupported(let found): throw .unsupported(found: found, supported: ImageFormat.supportedNames)
            case .truncated: throw .truncated
            case .invalid(let reason): throw .invalid(reason)
            }
        }
    }

    /// Returns the text of the first field that has one.
    static func first(_ fields: [String], _ block: borrowing MetadataBlock) -> String? {
        for field in fields { if let text = block.text(field) { return text } }
        return nil
    }

    private static func subtypes(_ block: borrowing MetadataBlock, _ bytes: [UInt8], _ header: ImageHeader) -> Int {
        var mask = 0
        switch block.number("Exif.Photo.CustomRendered") {
        case 6: mask |= PhotoMetadata.Subtype.panorama
        case 2, 3: mask |= PhotoMetadata.Subtype.hdr
        case 7: mask |= PhotoMetadata.Subtype.hdr | PhotoMetadata.Subtype.depthEffect
        case 8: mask |= PhotoMetadata.Subtype.depthEffect
        default: break
        }
        let xmp = header.xmp.map { bytes[$0] } ?? header.texts.xmp?[...]
        if let xmp, ByteReader(xmp).find("GPano:ProjectionType") != nil {
            mask |= PhotoMetadata.Subtype.panorama
        }
        if GainMapFile.find(in: bytes, header) != nil { mask |= PhotoMetadata.Subtype.hdr }
        let comment = block.text("Exif.Photo.UserComment") ?? block.localizedText("Xmp.exif.UserComment")
        if comment?.hasSuffix("Screenshot") == true { mask |= PhotoMetadata.Subtype.screenshot }
        return mask
    }

    /// Descriptions that cameras write into every image.
    private static let emptyCaptions: Set<String> = [
        "OLYMPUS DIGITAL CAMERA", "SONY DSC", "SAMSUNG", "MINOLTA DIGITAL CAMERA", "KONICA MINOLTA DIGITAL CAMERA",
        "DIGITAL CAMERA", "SAMSUNG DIGITAL CAMERA", "SANYO DIGITAL CAMERA", "TRAVELER DIGITAL CAMERA",
        "Exif_JPEG_PICTURE", "DCIM", "DCF 1.0", "default", "KODAK Digital Still Camera", "KODAK Action Cam",
        "Minolta DSC", "EPSON DSC picture",
    ]

    /// Returns true for a description that a camera writes into every image. Drones write the path of the file.
    private static func isWrittenByCamera(_ text: String) -> Bool {
        emptyCaptions.contains(text) || text.hasPrefix("DCIM\\") || text.hasPrefix("<Digimax ")
    }

    static func caption(_ block: borrowing MetadataBlock) -> String? {
        for field in MetadataFields.captions {
            let text = field.hasPrefix("Xmp.") ? block.localizedText(field) : block.text(field)
            if let text, !isWrittenByCamera(text) { return text }
        }
        return nil
    }

    static func keywords(_ block: borrowing MetadataBlock) -> [String] {
        var seen: Set<String> = []
        var all: [String] = []
        for field in MetadataFields.keywords { all += block.texts(field) }
        return all.compactMap(keyword).filter { seen.insert($0).inserted }
    }

    /// Returns a keyword of at most 256 characters and ``AssetMetadata/maxTextBytes``; nil for an empty text.
    static func keyword(_ text: String) -> String? {
        AssetMetadataReader.clipped(String(text.prefix(256)))
    }
}
