import ImageFormats

/// Copies metadata from an original to an image rendered from it.
public enum MetadataWriter {
    /// Adds to a render the metadata of its source that still applies.
    ///
    /// Kept: capture dates with offsets, location, camera, lens, caption, keywords, rating, and everything of
    /// ``AssetMetadata`` except the areas of faces. Facts that are only in dropped fields, such as those of IPTC,
    /// are written to EXIF or XMP.
    ///
    /// Set: Orientation 1, PixelXDimension and PixelYDimension, and ColorSpace sRGB if the render has no profile.
    ///
    /// Dropped: the embedded thumbnail and maker notes, both of which may show the image before it was cropped;
    /// everything that describes the original's pixels, gain maps (hdrgm), regions, panorama geometry, raw-development
    /// settings and the history of edits. If the XMP is too long for a JPEG, fields that are not in ``MetadataFields``
    /// are dropped too.
    ///
    /// - Parameters:
    ///   - source: the original
    ///   - render: the rendered image with orientation applied: JPEG, PNG or WebP
    ///   - width: the width of the render in pixels
    ///   - height: the height of the render in pixels
    /// - Returns: the render with metadata; unchanged if the source has no readable metadata
    /// - Throws: `MetadataError.unsupported` for a render in another format
    public static func transfer(
        from source: [UInt8],
        to render: [UInt8],
        width: Int,
        height: Int
    ) throws(MetadataError) -> [UInt8] {
        let target = try MetadataReader.header(of: render)
        guard [.jpeg, .png, .webp].contains(target.kind) else {
            throw .unsupported(found: target.kind.rawValue, supported: ["jpeg", "png", "webp"])
        }
        let origin = try MetadataReader.header(of: source)
        guard let block = MetadataBlock(source, origin) else { return render }
        let hasProfile = target.kind == .jpeg && JPEGStructure.hasProfile(render)
        let kept = KeptFacts(block, PersonReader.Frame(origin))
        prepare(block, width: width, height: height, isSRGB: !hasProfile)
        kept.write(to: block)
        let exif = block.names(.exif).isEmpty ? nil : block.exif()
        let maxXMPBytes = target.kind == .jpeg ? JPEGMetadataWriter.maxXMPBytes : .max
        let xmp = packet(block, maxXMPBytes: maxXMPBytes, lists: kept.lists)
        switch target.kind {
        case .png: return PNGMetadataWriter.replacing(in: render, exif: exif, xmp: xmp)
        case .webp:
            return WebPMetadataWriter.replacing(
                in: render,
                exif: exif,
                xmp: xmp,
                width: target.storedWidth,
                height: target.storedHeight,
                hasAlpha: target.hasAlpha
            )
        default: return JPEGMetadataWriter.replacing(in: render, exif: exif, xmp: xmp)
        }
    }

    /// Returns the XMP fields as a packet. If it is longer than `maxXMPBytes`, the fields that are not read are
    /// removed, and if it is still too long, the last texts of the lists.
    private static func packet(
        _ block: borrowing MetadataBlock,
        maxXMPBytes: Int,
        lists: [(field: String, texts: [String])]
    ) -> [UInt8]? {
        guard !block.names(.xmp).isEmpty, let packet = block.xmp() else { return nil }
        guard packet.count > maxXMPBytes else { return packet }
        // Facts that are parts of structures were written to the first field of their row.
        var read: Set<String> = []
        for row in MetadataFields.table { read.formUnion(row.fields.filter { !$0.contains("/") }) }
        for name in block.names(.xmp) where !read.contains(name) && !keptXMPFields.contains(name) { block.remove(name) }
        var short = block.xmp()
        for (field, texts) in lists {
            var count = texts.count
            while let packet = short, packet.count > maxXMPBytes, count > 0 {
                count = count * 3 / 4
                if count == 0 { block.remove(field) } else { block.set(field, Array(texts.prefix(count))) }
                short = block.xmp()
            }
        }
        return block.names(.xmp).isEmpty ? nil : short
    }

    private static let keptImageFields: Set<String> = [
        "Make", "Model", "Software", "DateTime", "Artist", "Copyright", "ImageDescription", "HostComputer", "Rating",
        "XPTitle", "XPComment", "XPAuthor", "XPKeywords", "XPSubject",
    ]

    private static let droppedPhotoFields: Set<String> = [
        "MakerNote", "PixelXDimension", "PixelYDimension", "SubjectArea", "SubjectLocation", "InteroperabilityTag",
        "ColorSpace", "ComponentsConfiguration", "CompressedBitsPerPixel", "RelatedSoundFile",
    ]

    private static let keptXMP: Set<String> = [
        "dc", "photoshop", "iptc", "iptcExt", "xmpRights", "aux", "lr", "exifEX", "plus",
    ]

    private static let keptXMPFields: Set<String> = [
        "Xmp.xmp.CreateDate", "Xmp.xmp.Rating", "Xmp.xmp.Label", "Xmp.xmp.CreatorTool", "Xmp.tiff.Make",
        "Xmp.tiff.Model",
        "Xmp.tiff.Artist", "Xmp.tiff.Copyright", "Xmp.exif.DateTimeOriginal", "Xmp.exif.DateTimeDigitized",
        "Xmp.exif.GPSLatitude", "Xmp.exif.GPSLongitude", "Xmp.exif.GPSAltitude", "Xmp.exif.GPSAltitudeRef",
    ]

    private static func prepare(_ block: borrowing MetadataBlock, width: Int, height: Int, isSRGB: Bool) {
        block.removeThumbnail()
        let lens = LensReader.lens(block)
        for name in block.names(.exif) {
            let parts = name.split(separator: ".", maxSplits: 2).map(String.init)
            guard parts.count == 3 else { continue }
            let isKept =
                switch parts[1] {
                case "Image": keptImageFields.contains(parts[2])
                case "Photo": !droppedPhotoFields.contains(parts[2])
                case "GPSInfo": true
                default: false
                }
            if !isKept { block.remove(name) }
        }
        for name in block.names(.xmp) where !keptXMPFields.contains(name) {
            let group = name.split(separator: ".", maxSplits: 2).dropFirst().first.map(String.init) ?? ""
            let isHistory = ["DocumentAncestors", "History"].contains { name.hasPrefix("Xmp.photoshop.\($0)") }
            if !keptXMP.contains(group) || isHistory { block.remove(name) }
        }
        block.set("Exif.Image.Orientation", "1")
        block.set("Exif.Photo.PixelXDimension", String(width))
        block.set("Exif.Photo.PixelYDimension", String(height))
        // The maker note, which may be the only field with the lens, is dropped.
        if let lens, block.text("Exif.Photo.LensModel") == nil { block.set("Exif.Photo.LensModel", lens) }
        if isSRGB { block.set("Exif.Photo.ColorSpace", "1") }
    }
}
