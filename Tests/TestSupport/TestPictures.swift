public import SamplePictures

/// Pictures made by code, so that a fresh clone needs no photographs.
///
/// A test picture shows four quadrants: red above left, green above right, blue below left, yellow below right, as a
/// person sees it (upright). The seed shifts a small textured patch in the middle, so that every seed has other bytes.
public enum TestPictures {
    /// A real baseline JPEG with EXIF.
    ///
    /// - Parameters:
    ///   - width: Pixels across as displayed, that is after the orientation was applied.
    ///   - height: Pixels down as displayed.
    ///   - orientation: EXIF 1...8; the stored pixels are turned so that the picture is upright when it is obeyed.
    ///     0 writes no orientation at all.
    ///   - date: `DateTimeOriginal` as EXIF writes it ("2024:06:01 12:30:00").
    ///   - offset: `OffsetTimeOriginal` ("+02:00").
    ///   - subsec: `SubSecTimeOriginal` ("123").
    ///   - latitude: Degrees, positive north; written only together with the longitude.
    ///   - longitude: Degrees, positive east.
    ///   - seed: Changes the pixels of a small patch.
    /// - Returns: The file.
    public static func jpeg(
        width: Int = 160,
        height: Int = 120,
        orientation: Int = 1,
        date: String? = nil,
        offset: String? = nil,
        subsec: String? = nil,
        latitude: Double? = nil,
        longitude: Double? = nil,
        seed: UInt64 = 1
    ) -> [UInt8] {
        var exif = ExifBlock()
        exif.main.append(.ascii(0x010F, "Safelight"))
        exif.main.append(.ascii(0x0110, "Test camera \(seed % 7)"))
        if orientation > 0 { exif.main.append(.short(0x0112, orientation)) }
        if let date { exif.photo.append(.ascii(0x9003, date)) }
        if let offset { exif.photo.append(.ascii(0x9011, offset)) }
        if let subsec { exif.photo.append(.ascii(0x9291, subsec)) }
        if let latitude, let longitude { exif.setLocation(latitude: latitude, longitude: longitude) }
        return jpeg(width: width, height: height, orientation: orientation, exif: exif, seed: seed)
    }

    /// The same picture with any EXIF block and further segments (XMP and so on, given whole with their marker).
    public static func jpeg(
        width: Int,
        height: Int,
        orientation: Int,
        exif: ExifBlock?,
        segments: [[UInt8]] = [],
        seed: UInt64 = 1
    ) -> [UInt8] {
        let isTurned = orientation >= 5
        var all: [[UInt8]] = []
        if let exif { all.append(exif.segment) }
        all += segments
        return JPEGEncoder.encode(
            width: isTurned ? height : width,
            height: isTurned ? width : height,
            segments: all
        ) { x, y in
            let (u, v) = Orientations.displayed(x, y, width: width, height: height, orientation: orientation)
            return colour(u, v, width: width, height: height, seed: seed)
        }
    }

    /// A JPEG of any pixels, without metadata.
    public static func jpeg(
        width: Int,
        height: Int,
        segments: [[UInt8]] = [],
        pixel: (_ x: Int, _ y: Int) -> (UInt8, UInt8, UInt8)
    ) -> [UInt8] {
        JPEGEncoder.encode(width: width, height: height, segments: segments, pixel: pixel)
    }

    /// The colour of the upright quadrant picture.
    public static func colour(_ x: Int, _ y: Int, width: Int, height: Int, seed: UInt64) -> (UInt8, UInt8, UInt8) {
        let patch = max(1, min(width, height) / 8)
        if abs(2 * x - width) < patch, abs(2 * y - height) < patch {
            var mixed = seed &* 0x9E37_79B9_7F4A_7C15 &+ UInt64(x / 4 &* 131 &+ y / 4 &* 31)
            mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
            return (UInt8(truncatingIfNeeded: mixed), UInt8(truncatingIfNeeded: mixed >> 8), 128)
        }
        let tone = UInt8(190 + seed % 50)
        switch (2 * x < width, 2 * y < height) {
        case (true, true): return (tone, 30, 30)
        case (false, true): return (30, tone, 30)
        case (true, false): return (30, 30, tone)
        case (false, false): return (tone, tone, 30)
        }
    }

    /// An APP1 segment with an XMP packet around the given attributes of its description.
    public static func xmpSegment(_ attributes: String) -> [UInt8] {
        JPEGEncoder.segment(0xE1, Array("http://ns.adobe.com/xap/1.0/\0".utf8) + Array(xmpPacket(attributes).utf8))
    }

    /// An XMP packet around the given attributes.
    public static func xmpPacket(_ attributes: String) -> String {
        """
        <x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">\
        <rdf:Description rdf:about="" xmlns:tiff="http://ns.adobe.com/tiff/1.0/" \
        xmlns:exif="http://ns.adobe.com/exif/1.0/" xmlns:xmp="http://ns.adobe.com/xap/1.0/" \
        xmlns:photoshop="http://ns.adobe.com/photoshop/1.0/" \
        xmlns:GPano="http://ns.google.com/photos/1.0/panorama/" \
        xmlns:hdrgm="http://ns.adobe.com/hdr-gain-map/1.0/" \(attributes)/></rdf:RDF></x:xmpmeta>
        """
    }
}

extension TestPictures {
    /// A picture with a maker note of Apple's, or of anybody's.
    public static func applePicture(
        note: [UInt8],
        date: String? = nil,
        seed: UInt64 = 1
    ) -> [UInt8] {
        var exif = ExifBlock()
        if let date { exif.photo.append(.ascii(0x9003, date)) }
        exif.photo.append(ExifBlock.Field(tag: 0x927C, type: 7, count: note.count, value: note))
        return jpeg(width: 48, height: 32, orientation: 1, exif: exif, seed: seed)
    }

    /// Apple's maker note with a burst's identifier, a content identifier, or both.
    public static func appleNote(burst: String? = nil, content: String? = nil) -> [UInt8] {
        let fields = [(UInt8(0x0B), burst), (UInt8(0x11), content)].compactMap { tag, text in text.map { (tag, $0) } }
        var note = Array("Apple iOS\0\0\u{1}MM".utf8) + [0, UInt8(fields.count)]
        var values: [UInt8] = []
        let start = note.count + fields.count * 12 + 4
        for (tag, text) in fields {
            note += [0, tag, 0, 2, 0, 0, 0, UInt8(text.utf8.count + 1), 0, 0, 0, UInt8(start + values.count)]
            values += Array(text.utf8) + [0]
        }
        return note + [0, 0, 0, 0] + values
    }
}
