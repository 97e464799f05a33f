import ImageFormats

/// Reads the metadata of photo files.
public enum MetadataReader {
    /// Reads the metadata of an image.
    ///
    /// The capture date is the first of `DateTimeOriginal`, `DateTimeDigitized` and `DateTime`, each with its own
    /// sub-seconds and offset, then XMP's `exif:DateTimeOriginal`, `photoshop:DateCreated` and `xmp:CreateDate`. The
    /// offset of one date is never used for another, and GPS time is not used.
    ///
    /// A panorama has XMP GPano with a projection type, or EXIF CustomRendered 6; HDR is CustomRendered 2, 3, 4 or 7; a
    /// depth effect is 7 or 8 (Apple's values); a screenshot is marked in the user comment.
    ///
    /// - Parameters:
    ///   - bytes: the whole file
    ///   - fallbackOffset: seconds east of UTC for dates without a time zone
    /// - Returns: the metadata; broken fields are `nil`
    /// - Throws: `MetadataError` if the bytes are not an image
    public static func facts(of bytes: [UInt8], fallbackOffset: Int = 0) throws(MetadataError) -> PhotoMetadata {
        let header = try header(of: bytes)
        var facts = PhotoMetadata(
            contentType: header.kind.contentType,
            pixelWidth: header.pixelWidth,
            pixelHeight: header.pixelHeight
        )
        facts.orientation = header.orientation
        facts.isAnimated = header.frameCount > 1
        if facts.isAnimated { facts.mediaSubtypes |= PhotoMetadata.Subtype.animation }
        guard let block = MetadataBlock(bytes, header) else { return facts }

        if let time = captureTime(block) {
            facts.captureDate = time.utc(fallbackOffset: fallbackOffset)
            facts.captureOffset = time.offset
        }
        facts.location = LocationReader.location(block)
        facts.cameraMake = block.text("Exif.Image.Make") ?? block.text("Xmp.tiff.Make")
        facts.cameraModel = block.text("Exif.Image.Model") ?? block.text("Xmp.tiff.Model")
        facts.lensModel = block.text("Exif.Photo.LensModel") ?? block.text("Xmp.aux.Lens")
        facts.mediaSubtypes |= subtypes(block, bytes, header)
        facts.rating = min(5, max(0, block.number("Xmp.xmp.Rating") ?? block.number("Exif.Image.Rating") ?? 0))
        facts.caption = caption(block)
        facts.keywords = keywords(block)
        let note = AppleMakerNote(block.text("Exif.Photo.MakerNote"))
        facts.contentIdentifier = note?.contentIdentifier
        facts.burstIdentifier = note?.burstIdentifier
        return facts
    }

    /// Refuses a truncated image, whose missing part would be rendered grey, and a header without an image.
    ///
    /// - Throws: `MetadataError.truncated`, or another error if the bytes are not an image
    public static func requireWhole(_ bytes: [UInt8]) throws(MetadataError) {
        let header = try header(of: bytes)
        guard header.isComplete else { throw .truncated }
        guard header.kind != .jxl || JPEGXLFrames.areReadable(bytes) else {
            throw .invalid("a JPEG XL file whose frames cannot be read")
        }
    }

    /// How many bytes ``isFilm(_:rawEnding:)`` looks at.
    public static let beginningBytes = 512

    /// Returns true if a file that begins with these bytes is a film; else it is a picture.
    ///
    /// - Parameters:
    ///   - beginning: the first ``beginningBytes`` of it, or all that there are.
    ///   - rawEnding: the ending of its name where a raw file is taken too; else nil.
    /// - Throws: ``MetadataError/unsupported(found:supported:)`` where it is neither.
    public static func isFilm(_ beginning: [UInt8], rawEnding: String?) throws(MetadataError) -> Bool {
        if MovieHeader.sniff(beginning.prefix(16)) != nil { return true }
        if let rawEnding, RawFileType.sniff(beginning, ending: rawEnding) != nil { return false }
        guard ImageFileType.sniff(beginning) != nil else {
            throw .unsupported(found: ImageFileType.describe(beginning), supported: ImageFileType.supportedNames)
        }
        return false
    }

    static func header(of bytes: [UInt8]) throws(MetadataError) -> ImageHeader {
        do {
            return try ImageHeader.read(bytes)
        } catch {
            switch error {
            case .unsupported(let found): throw .unsupported(found: found, supported: ImageFileType.supportedNames)
            case .truncated: throw .truncated
            case .invalid(let reason): throw .invalid(reason)
            }
        }
    }

    static func captureTime(_ block: borrowing MetadataBlock) -> CaptureTime? {
        CaptureTime(
            exif: block.text("Exif.Photo.DateTimeOriginal"),
            subsec: block.text("Exif.Photo.SubSecTimeOriginal"),
            offset: block.text("Exif.Photo.OffsetTimeOriginal")
        )
            ?? CaptureTime(
                exif: block.text("Exif.Photo.DateTimeDigitized"),
                subsec: block.text("Exif.Photo.SubSecTimeDigitized"),
                offset: block.text("Exif.Photo.OffsetTimeDigitized")
            )
            ?? CaptureTime(
                exif: block.text("Exif.Image.DateTime"),
                subsec: block.text("Exif.Photo.SubSecTime"),
                offset: block.text("Exif.Photo.OffsetTime")
            )
            ?? CaptureTime(xmp: block.text("Xmp.exif.DateTimeOriginal"))
            ?? CaptureTime(xmp: block.text("Xmp.photoshop.DateCreated"))
            ?? CaptureTime(xmp: block.text("Xmp.xmp.CreateDate"))
    }

    private static func subtypes(_ block: borrowing MetadataBlock, _ bytes: [UInt8], _ header: ImageHeader) -> Int {
        var mask = 0
        switch block.number("Exif.Photo.CustomRendered") {
        case 6: mask |= PhotoMetadata.Subtype.panorama
        case 2, 3, 4: mask |= PhotoMetadata.Subtype.hdr
        case 7: mask |= PhotoMetadata.Subtype.hdr | PhotoMetadata.Subtype.depthEffect
        case 8: mask |= PhotoMetadata.Subtype.depthEffect
        default: break
        }
        if let xmp = header.xmp, ByteReader(bytes[xmp]).find("GPano:ProjectionType") != nil {
            mask |= PhotoMetadata.Subtype.panorama
        }
        let comment = block.text("Exif.Photo.UserComment") ?? block.texts("Xmp.exif.UserComment").first
        if comment?.hasSuffix("Screenshot") == true { mask |= PhotoMetadata.Subtype.screenshot }
        return mask
    }

    /// Descriptions that cameras write into every image.
    private static let emptyCaptions: Set<String> = [
        "OLYMPUS DIGITAL CAMERA", "SONY DSC", "SAMSUNG", "MINOLTA DIGITAL CAMERA", "KONICA MINOLTA DIGITAL CAMERA",
        "DIGITAL CAMERA", "SAMSUNG DIGITAL CAMERA", "Exif_JPEG_PICTURE", "DCIM",
    ]

    private static func caption(_ block: borrowing MetadataBlock) -> String? {
        let found =
            block.texts("Xmp.dc.description").first ?? block.text("Iptc.Application2.Caption")
            ?? block.text("Exif.Image.ImageDescription")
        guard var text = found else { return nil }
        if text.hasPrefix("lang=\""), let space = text.firstIndex(of: " ") {
            text = String(text[text.index(after: space)...])
        }
        return emptyCaptions.contains(text) || text.isEmpty ? nil : text
    }

    private static func keywords(_ block: borrowing MetadataBlock) -> [String] {
        var seen: Set<String> = []
        let all = block.texts("Xmp.dc.subject") + block.texts("Iptc.Application2.Keywords")
        return all.map { String($0.prefix(256)) }.filter { seen.insert($0).inserted }
    }
}
