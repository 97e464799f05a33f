#if canImport(Glibc)
    import Glibc
#endif

/// The gain map in an image file: its location, and the meaning of its values.
///
/// It is found in a JPEG among the images of its Multi-Picture Format index (CIPA DC-007) or of its XMP list (Ultra
/// HDR), and in HEIC and AVIF as the second input of an item `tmap` (ISO 21496-1). Apple's maps are further images of a
/// JPEG, or auxiliary images of a HEIC.
public enum GainMapFile: Sendable, Hashable {
    /// A JPEG of its own: a range of the file's bytes.
    case jpeg(Range<Int>, GainMapMetadata)
    /// An image item of a HEIC or AVIF, and the index of the byte whose lowest bit hides it from programs that list the
    /// images of the file.
    case item(UInt32, hidingByte: Int, GainMapMetadata)
    /// The auxiliary image of a HEIC with the type ``appleType``. The XMP packet of the map may state another headroom.
    case auxiliary(GainMapMetadata?)

    /// The type of Apple's maps.
    public static let appleType = "urn:com:apple:photo:2020:aux:hdrgainmap"

    /// Finds the gain map of an image; nil if it has none that can be used.
    public static func find(in bytes: [UInt8], _ header: ImageHeader) -> GainMapFile? {
        let file = ByteReader(bytes)
        switch header.kind {
        case .jpeg: return images(file, header).lazy.compactMap { map(file, $0, header) }.first
        case .heic, .avif:
            if let map = BMFFStructure.toneMap(file), map.payload.byte(0) == 0,
                let content = map.payload.slice(1, map.payload.count - 1), let item = UInt32(exactly: map.item),
                let metadata = GainMapMetadata(iso: ByteReader(content))
            {
                return .item(item, hidingByte: map.hidingByte, metadata)
            }
            guard let meta = BMFFStructure.boxes(file).first(where: { $0.name == "meta" }),
                meta.content.find("urn:com:apple:photo:2020:aux:hdrgainmap") != nil
            else { return nil }
            return .auxiliary(appleHeadroom(file, header).flatMap(GainMapMetadata.init(appleHeadroom:)))
        default: return nil
        }
    }

    /// Reads the XMP packet of one of Apple's maps. Newer cameras write the headroom there.
    public static func appleMetadata(xmp packet: [UInt8]) -> GainMapMetadata? {
        XMPText(packet[...]).numbers(":HDRGainMapHeadroom")?.first.flatMap(GainMapMetadata.init(appleHeadroom:))
    }

    // MARK: JPEG

    /// The name of the segments with the binary form of the metadata.
    static let isoName: StaticString = "urn:iso:std:iso:ts:21496:-1\0"

    /// Returns the ranges of the further images of a JPEG.
    private static func images(_ file: ByteReader, _ header: ImageHeader) -> [Range<Int>] {
        var found: [Range<Int>] = []
        if let block = JPEGStructure.segment(file, marker: 0xE2, name: "MPF\0") {
            for (size, offset) in TIFFStructure.multiPictureEntries(ByteReader(file.bytes[block])) where offset > 0 {
                if let image = file.slice(block.lowerBound + offset, size) {
                    found.append(image.startIndex..<image.endIndex)
                }
            }
        }
        if let packet = header.xmp.map({ XMPText(file.bytes[$0]) }),
            let listed = packet.containerItem("GainMap", size: file.count)
        {
            found.append(listed)
        }
        return found
    }

    private static func map(_ file: ByteReader, _ range: Range<Int>, _ header: ImageHeader) -> GainMapFile? {
        let image = ByteReader(file.bytes[range])
        guard image.big16(0) == 0xFFD8 else { return nil }
        if let block = JPEGStructure.segment(image, marker: 0xE2, name: isoName),
            let metadata = GainMapMetadata(iso: ByteReader(file.bytes[block]))
        {
            return .jpeg(range, metadata)
        }
        guard let packet = JPEGStructure.segment(image, marker: 0xE1, name: "http://ns.adobe.com/xap/1.0/\0") else {
            return nil
        }
        let text = XMPText(file.bytes[packet])
        if let metadata = GainMapMetadata(text) { return .jpeg(range, metadata) }
        guard text.value(":AuxiliaryImageType") == appleType else { return nil }
        let named = text.numbers(":HDRGainMapHeadroom")?.first ?? appleHeadroom(file, header)
        return named.flatMap(GainMapMetadata.init(appleHeadroom:)).map { .jpeg(range, $0) }
    }

    // MARK: Apple

    /// Computes the headroom from two numbers of Apple's maker note ("Applying Apple HDR effect to your photos").
    private static func appleHeadroom(_ file: ByteReader, _ header: ImageHeader) -> Double? {
        guard let exif = header.exif, let note = TIFFStructure.makerNote(ByteReader(file.bytes[exif])),
            note.has("Apple iOS\0", at: 0), let count = note.big16(14), count < 1024
        else { return nil }
        var values: [Int: Double] = [:]
        for index in 0..<count {
            let entry = 16 + 12 * index
            guard let tag = note.big16(entry), tag == 33 || tag == 48, note.big16(entry + 2) == 10,
                let offset = note.big32(entry + 8), let numerator = note.big32(offset),
                let denominator = note.big32(offset + 4), denominator != 0
            else { continue }
            values[tag] =
                Double(Int32(truncatingIfNeeded: numerator)) / Double(Int32(truncatingIfNeeded: denominator))
        }
        guard let headroom = values[33], let gain = values[48] else { return nil }
        let stops =
            headroom < 1
            ? gain <= 0.01 ? -20 * gain + 1.8 : -0.101 * gain + 1.601
            : gain <= 0.01 ? -70 * gain + 3 : -0.303 * gain + 2.303
        return exp2(max(stops, 0))
    }
}
