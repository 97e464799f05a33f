import Glibc

/// Parses the segments of a JPEG file.
public enum JPEGStructure {
    static func read(_ reader: ByteReader) throws(ImageHeader.Failure) -> ImageHeader {
        var header: ImageHeader?
        var exif: Range<Int>?
        var xmp: Range<Int>?
        var isComplete = false
        var scan: Int?
        var offset = 2
        while let marker = nextMarker(reader, &offset) {
            if marker == 0xD9 {
                isComplete = true
                break
            }
            if marker == 0x01 || (0xD0...0xD8).contains(marker) { continue }
            guard let length = reader.big16(offset), length >= 2, let content = reader.slice(offset + 2, length - 2)
            else {
                // In the entropy-coded data of a damaged file this may not be a marker: continue the search.
                if header != nil, reader.slice(offset, 2) != nil { continue }
                break
            }
            switch marker {
            case 0xC0...0xC3, 0xC5...0xC7, 0xC9...0xCB, 0xCD...0xCF:
                guard header == nil, let height = reader.big16(offset + 3), let width = reader.big16(offset + 5) else {
                    break
                }
                guard isFrame(reader, offset, length) else {
                    throw .invalid("a JPEG file with an impossible frame header")
                }
                header = ImageHeader(kind: .jpeg, storedWidth: width, storedHeight: height)
            case 0xDA where scan == nil: scan = offset
            case 0xE1 where reader.has("Exif\0", at: offset + 2) && exif == nil:
                if content.count > 6 { exif = content.startIndex + 6..<content.endIndex }
            case 0xE1 where reader.has("http://ns.adobe.com/xap/1.0/\0", at: offset + 2) && xmp == nil:
                xmp = content.startIndex + 29..<content.endIndex
            default: break
            }
            offset += length
        }
        guard var header else { throw isComplete ? .invalid("a JPEG file without an image") : .truncated }
        header.exif = exif
        header.xmp = xmp
        // Bytes of damaged image data that look like a segment may reach beyond the end marker.
        header.isComplete = isComplete || scan.map { hasEnd(reader, after: $0) } ?? false
        return header
    }

    /// Returns true if there is an end marker in or behind the image data. In undamaged image data those bytes do not
    /// occur.
    private static func hasEnd(_ reader: ByteReader, after scan: Int) -> Bool {
        let bytes = reader.bytes.dropFirst(scan)
        return zip(bytes, bytes.dropFirst()).contains { $0 == 0xFF && $1 == 0xD9 }
    }

    /// Returns true if a frame header has values that are allowed (ITU-T T.81, B.2.2).
    private static func isFrame(_ reader: ByteReader, _ offset: Int, _ length: Int) -> Bool {
        guard let precision = reader.byte(offset + 2), (2...16).contains(precision),
            let components = reader.byte(offset + 7), (1...4).contains(components), length == 8 + 3 * components
        else { return false }
        return (0..<components).allSatisfy { component in
            guard let sampling = reader.byte(offset + 9 + 3 * component) else { return false }
            return (1...4).contains(sampling >> 4) && (1...4).contains(sampling & 15)
        }
    }

    /// Returns true if there is a colour profile in the segments before the image data.
    public static func hasProfile(_ bytes: [UInt8]) -> Bool {
        segment(ByteReader(bytes), marker: 0xE2, name: "ICC_PROFILE\0") != nil
    }

    /// Returns the content, without the name, of the first segment with this marker and name before the image data, as
    /// indices of the reader's bytes.
    static func segment(_ reader: ByteReader, marker expected: Int, name: StaticString) -> Range<Int>? {
        var offset = 2
        while reader.byte(offset) == 0xFF, let marker = reader.byte(offset + 1), marker != 0xDA,
            let length = reader.big16(offset + 2), length >= 2, let content = reader.slice(offset + 4, length - 2)
        {
            if marker == expected, reader.has(name, at: offset + 4), content.count >= name.utf8CodeUnitCount {
                return content.startIndex + name.utf8CodeUnitCount..<content.endIndex
            }
            offset += 2 + length
        }
        return nil
    }

    /// Returns the next marker at or after `offset` and moves `offset` behind it. Skips entropy-coded data.
    private static func nextMarker(_ reader: ByteReader, _ offset: inout Int) -> UInt8? {
        let start = offset
        let found: (UInt8, Int)? = reader.bytes.withUnsafeBufferPointer { buffer in
            var at = start
            guard let base = buffer.baseAddress else { return nil }
            while at < buffer.count - 1, let next = memchr(base + at, 0xFF, buffer.count - 1 - at) {
                at = base.distance(to: next.assumingMemoryBound(to: UInt8.self))
                let code = buffer[at + 1]
                if code == 0xFF {
                    at += 1
                } else if code == 0 {
                    at += 2
                } else {
                    return (code, at + 2)
                }
            }
            return nil
        }
        guard let found else { return nil }
        offset = found.1
        return found.0
    }
}
