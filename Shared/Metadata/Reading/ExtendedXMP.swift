import ImageFormats

/// The second XMP packet of a JPEG, for metadata that does not fit into one segment: it is divided among segments of
/// its own, and the first packet contains its identifier.
enum ExtendedXMP {
    private static let segmentName: StaticString = "http://ns.adobe.com/xmp/extension/\0"
    /// The identifier of the packet, its size and the offset of the piece come before the bytes of the piece.
    private static let identifierBytes = 32
    private static let headBytes = identifierBytes + 8
    /// The largest packet, in bytes: that of a sidecar. Larger ones are those of depth maps.
    private static let maxBytes = SidecarMetadata.maxBytes
    /// The maximum number of pieces. Programs fill the segments, so that a packet has 65 at most.
    private static let maxPieces = 1024

    /// Returns the packet; nil if there is none, or if a piece of it is missing.
    static func packet(_ bytes: [UInt8], _ header: ImageHeader) -> [UInt8]? {
        guard header.kind == .jpeg, let main = header.xmp else { return nil }
        let first = ByteReader(bytes[main])
        guard let name = first.find("HasExtendedXMP"), let identifier = identifier(first, from: name + 14) else {
            return nil
        }
        var pieces: [(offset: Int, bytes: ArraySlice<UInt8>)] = []
        var size: Int?
        let file = ByteReader(bytes)
        var offset = 2
        while pieces.count < maxPieces, file.byte(offset) == 0xFF, let marker = file.byte(offset + 1), marker != 0xDA,
            let length = file.big16(offset + 2), length >= 2
        {
            defer { offset += 2 + length }
            let start = offset + 4 + segmentName.utf8CodeUnitCount
            let end = offset + 2 + length
            guard marker == 0xE1, file.has(segmentName, at: offset + 4), end - start > headBytes,
                let found = file.slice(start, identifierBytes), found.elementsEqual(identifier),
                let whole = file.big32(start + identifierBytes), (1...maxBytes).contains(whole),
                let position = file.big32(start + identifierBytes + 4),
                let piece = file.slice(start + headBytes, end - start - headBytes)
            else { continue }
            size = whole
            pieces.append((position, piece))
        }
        var packet: [UInt8] = []
        for piece in pieces.sorted(by: { $0.offset < $1.offset })
        where piece.offset == packet.count && piece.bytes.count <= maxBytes - packet.count {
            packet += piece.bytes
        }
        return packet.isEmpty || packet.count != size ? nil : packet
    }

    /// Returns the identifier, 32 hexadecimal digits, that follows the name of an attribute or an element.
    private static func identifier(_ packet: ByteReader, from start: Int) -> ArraySlice<UInt8>? {
        guard let rest = packet.slice(start, min(96, packet.count - start)) else { return nil }
        let digits = rest.drop { !isDigit($0) }.prefix(identifierBytes)
        return digits.count == identifierBytes && digits.allSatisfy(isDigit) ? digits : nil
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "A")...UInt8(ascii: "F")).contains(byte)
    }
}
