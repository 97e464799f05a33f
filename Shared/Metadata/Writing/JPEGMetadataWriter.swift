/// Writes EXIF and XMP into JPEG files. Image data is copied byte for byte.
enum JPEGMetadataWriter {
    /// The maximum size of a segment's content, which follows the two length bytes.
    static let maxSegmentBytes = 65_533
    /// The maximum size of an XMP packet, which follows its name.
    static var maxXMPBytes: Int { maxSegmentBytes - xmpName.count }

    /// Returns a JPEG with the given blocks directly after its start; `exif` and `xmp` replace those that it had. A
    /// block that is too long for a segment is omitted.
    ///
    /// - Parameter iptc: IPTC records, or a Photoshop resource block that contains them
    static func replacing(in file: [UInt8], exif: [UInt8]?, xmp: [UInt8]?, iptc: [UInt8]? = nil) -> [UInt8] {
        var output: [UInt8] = [0xFF, 0xD8]
        output.reserveCapacity(file.count + (exif?.count ?? 0) + (xmp?.count ?? 0) + 64)
        if let exif { append(exifName + exif, to: &output) }
        if let xmp { append(xmpName + xmp, to: &output) }
        if let iptc { append(photoshopName + resourceBlock(iptc), marker: 0xED, to: &output) }
        var offset = 2
        while offset + 4 <= file.count, file[offset] == 0xFF {
            let marker = file[offset + 1]
            guard marker != 0xDA, marker != 0xD9 else { break }
            let end = offset + 2 + (Int(file[offset + 2]) << 8 | Int(file[offset + 3]))
            guard end <= file.count, end > offset + 3 else { break }
            let content = file[offset + 4..<end]
            let isReplaced = marker == 0xE1 && (content.starts(with: exifName) || content.starts(with: xmpName))
            if !isReplaced { output += file[offset..<end] }
            offset = end
        }
        return output + file[offset...]
    }

    private static let exifName = Array("Exif\0\0".utf8)
    private static let xmpName = Array("http://ns.adobe.com/xap/1.0/\0".utf8)

    private static let photoshopName = Array("Photoshop 3.0\0".utf8)

    /// Returns the records as Photoshop's resource 0x0404, unless they are one already.
    private static func resourceBlock(_ iptc: [UInt8]) -> [UInt8] {
        guard !iptc.starts(with: Array("8BIM".utf8)) else { return iptc }
        let count = (0..<4).map { UInt8(truncatingIfNeeded: iptc.count >> (24 - 8 * $0)) }
        return Array("8BIM".utf8) + [4, 4, 0, 0] + count + iptc + [UInt8](repeating: 0, count: iptc.count & 1)
    }

    private static func append(_ content: [UInt8], marker: UInt8 = 0xE1, to output: inout [UInt8]) {
        guard content.count <= maxSegmentBytes else { return }
        let length = content.count + 2
        output += [0xFF, marker, UInt8(length >> 8), UInt8(length & 255)] + content
    }
}
