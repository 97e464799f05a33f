/// Writes a JPEG with a gain map (Ultra HDR Image Format 1.1, ISO 21496-1): the image as any program shows it, an index
/// of both images, and the map behind it.
public enum GainMapJPEG {
    /// Returns a file of an image and its gain map.
    ///
    /// - Parameters:
    ///   - image: a JPEG. Its XMP packet is kept, with a description of the map added.
    ///   - map: a JPEG of one or three channels, in the logarithmic form
    ///   - metadata: the meaning of the map's values; Apple's are described in the logarithmic form
    /// - Returns: nil if `image` or `map` is not a JPEG, or if the description does not fit into the image's XMP packet
    public static func file(image: [UInt8], map: [UInt8], _ metadata: GainMapMetadata) -> [UInt8]? {
        guard image.starts(with: start), map.starts(with: start) else { return nil }
        let metadata = metadata.logarithmic
        let iso = GainMapFile.isoName.bytes
        let described =
            start
            + segment(0xE1, xmpName + packet(description(metadata.xmpProperties)))
            + segment(0xE2, iso + metadata.isoBytes) + map[2...]
        let properties =
            "<hdrgm:Version>1.0</hdrgm:Version><Container:Directory><rdf:Seq>"
            + "<rdf:li rdf:parseType=\"Resource\"><Container:Item Item:Semantic=\"Primary\" Item:Mime=\"image/jpeg\"/></rdf:li>"
            + "<rdf:li rdf:parseType=\"Resource\"><Container:Item Item:Semantic=\"GainMap\" Item:Mime=\"image/jpeg\""
            + " Item:Length=\"\(described.count)\"/></rdf:li></rdf:Seq></Container:Directory>"
        guard let (head, rest) = divided(image, adding: description(properties)) else { return nil }
        let version = segment(0xE2, iso + [0, 0, 0, 0])
        // Offsets of the index count from its own beginning, behind the name of its segment.
        let before = head.count + version.count + 8
        let total = head.count + version.count + indexLength + rest.count
        let index = index(image: total, map: described.count, offset: total - before)
        return head + version + segment(0xE2, Array("MPF\0".utf8) + index) + rest + described
    }

    private static let start: [UInt8] = [0xFF, 0xD8]
    private static let xmpName = Array("http://ns.adobe.com/xap/1.0/\0".utf8)

    private static func segment(_ marker: UInt8, _ content: [UInt8]) -> [UInt8] {
        let length = content.count + 2
        return [0xFF, marker, UInt8(truncatingIfNeeded: length >> 8), UInt8(truncatingIfNeeded: length)] + content
    }

    private static func description(_ properties: String) -> String {
        "<rdf:Description rdf:about=\"\" xmlns:hdrgm=\"http://ns.adobe.com/hdr-gain-map/1.0/\""
            + " xmlns:Container=\"http://ns.google.com/photos/1.0/container/\""
            + " xmlns:Item=\"http://ns.google.com/photos/1.0/container/item/\">\(properties)</rdf:Description>"
    }

    private static func packet(_ description: String) -> [UInt8] {
        Array(
            ("<x:xmpmeta xmlns:x=\"adobe:ns:meta/\"><rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">"
                + description + "</rdf:RDF></x:xmpmeta>").utf8
        )
    }

    /// Divides a JPEG behind its application segments, and adds a description to its XMP packet.
    private static func divided(_ image: [UInt8], adding description: String) -> (head: [UInt8], rest: [UInt8])? {
        let reader = ByteReader(image)
        var (head, hasPacket, offset) = (start, false, 2)
        while reader.byte(offset) == 0xFF, let marker = reader.byte(offset + 1), (0xE0...0xEF).contains(marker),
            let length = reader.big16(offset + 2), length >= 2, let whole = reader.slice(offset, length + 2)
        {
            offset += whole.count
            guard marker == 0xE1, !hasPacket, whole.dropFirst(4).starts(with: xmpName) else {
                head += whole
                continue
            }
            hasPacket = true
            let content = ByteReader(Array(whole.dropFirst(4)))
            guard let end = content.find("</rdf:RDF>"), let before = content.slice(0, end),
                let after = content.slice(end, content.count - end)
            else { return nil }
            let merged = before + Array(description.utf8) + after
            guard merged.count <= maxSegmentBytes else { return nil }
            head += segment(0xE1, Array(merged))
        }
        if !hasPacket { head += segment(0xE1, xmpName + packet(description)) }
        return (head, Array(image[offset...]))
    }

    /// The maximum size of a segment's content, in bytes.
    private static let maxSegmentBytes = 65_533

    /// The length of the index's segment.
    private static let indexLength = 4 + 4 + 82

    /// Returns the index of two images (CIPA DC-007): a directory of three entries, and 16 bytes for each image.
    private static func index(image: Int, map: Int, offset: Int) -> [UInt8] {
        func big(_ value: Int, _ count: Int = 4) -> [UInt8] {
            (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * (count - 1 - $0))) }
        }
        func entry(_ tag: Int, _ type: Int, _ count: Int, _ value: [UInt8]) -> [UInt8] {
            big(tag, 2) + big(type, 2) + big(count) + value
        }
        let directory =
            big(3, 2) + entry(0xB000, 7, 4, Array("0100".utf8)) + entry(0xB001, 4, 1, big(2))
            + entry(0xB002, 7, 32, big(8 + 2 + 36 + 4)) + big(0)
        // The first image is the representative one, a "Baseline MP Primary Image".
        let primary = big(0x0003_0000) + big(image) + big(0) + big(0)
        return Array("MM".utf8) + big(42, 2) + big(8) + directory + primary + big(0) + big(map) + big(offset) + big(0)
    }
}

extension StaticString {
    /// The text's bytes.
    var bytes: [UInt8] { Array(UnsafeBufferPointer(start: utf8Start, count: utf8CodeUnitCount)) }
}
