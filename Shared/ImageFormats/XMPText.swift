/// Finds a value in an XMP packet without parsing it, which is enough for a single number.
enum XMPText {
    /// Returns `tiff:Orientation`, written as an attribute or as an element.
    static func orientation(_ packet: ByteReader) -> Int? {
        guard let name = packet.find("tiff:Orientation") else { return nil }
        var offset = name + "tiff:Orientation".utf8.count
        while let byte = packet.byte(offset), [0x20, 0x3D, 0x22, 0x27, 0x3E, 0x0A, 0x0D, 0x09].contains(byte) {
            offset += 1
        }
        guard let digit = packet.byte(offset), (0x30...0x39).contains(digit) else { return nil }
        if let next = packet.byte(offset + 1), (0x30...0x39).contains(next) { return nil }
        return digit - 0x30
    }
}
