import Glibc

/// The parts of an image file that are its image: samples, compressed or not, and the data that their decoder needs.
///
/// Metadata, previews in them, color profiles and the orientation are left out, so that a file has the same image data
/// after a program has written keywords, dates or a rating into it. ExifTool's `ImageDataHash` covers nearly the same
/// bytes.
public enum ImageData {
    /// The maximum number of parts of a file.
    static let maxParts = 65_536

    /// Returns the ranges of the image data of a file, in the order of the format.
    ///
    /// - Parameter format: as ``ImageFormat/sniff(_:)`` returns it; camera raw files are `tiff`
    /// - Returns: indices of `bytes`; nil if the image cannot be separated from the rest: other formats, damaged files
    public static func ranges(of bytes: [UInt8], _ format: ImageFormat) -> [Range<Int>]? {
        let reader = ByteReader(bytes)
        let found: [Range<Int>]? =
            switch format {
            case .jpeg: jpeg(reader)
            case .png: png(reader)
            case .webp: webp(reader)
            case .tiff: TIFFStructure.imageData(reader)
            case .heic, .avif: BMFFStructure.imageData(reader)
            default: nil
            }
        guard let found, !found.isEmpty, found.allSatisfy({ $0.upperBound <= bytes.count }) else { return nil }
        return found
    }

    /// Returns the tables and the frame header, and everything from the first scan to the end marker (ITU-T T.81, B.2).
    private static func jpeg(_ reader: ByteReader) -> [Range<Int>]? {
        var ranges: [Range<Int>] = []
        var offset = 2
        while ranges.count < maxParts, reader.byte(offset) == 0xFF, let marker = reader.byte(offset + 1) {
            if marker == 0xFF {
                offset += 1
                continue
            }
            guard let length = reader.big16(offset + 2), reader.slice(offset, length + 2) != nil else { return nil }
            let end = offset + 2 + length
            switch marker {
            case 0xDA:
                guard let last = endMarker(reader, from: end) else { return nil }
                return ranges + [offset..<last]
            // Application data and comments are left out, except Adobe's segment (0xEE): it states how to convert the
            // components.
            case 0xE0...0xED, 0xEF, 0xFE: break
            default: ranges.append(offset..<end)
            }
            offset = end
        }
        return nil
    }

    /// Returns the offset of the first end marker. Its bytes do not occur in entropy-coded data.
    private static func endMarker(_ reader: ByteReader, from start: Int) -> Int? {
        reader.bytes.withUnsafeBufferPointer { bytes in
            guard let base = bytes.baseAddress else { return nil }
            var at = start
            while at < bytes.count - 1, let next = memchr(base + at, 0xFF, bytes.count - 1 - at) {
                at = base.distance(to: next.assumingMemoryBound(to: UInt8.self))
                if bytes[at + 1] == 0xD9 { return at }
                at += 1
            }
            return nil
        }
    }

    /// Returns the chunks that decoders need (PNG, third edition, 11.2 and 11.3.1), and those of animations.
    private static func png(_ reader: ByteReader) -> [Range<Int>]? {
        var ranges: [Range<Int>] = []
        var offset = 8
        while ranges.count < maxParts, let length = reader.big32(offset), let name = reader.text(offset + 4, 4) {
            if name == "IEND" { return ranges }
            guard length <= reader.count - offset - 12 else { return nil }
            // The name is not part of the data, so that pixels may be divided among chunks differently.
            if ["IHDR", "PLTE", "tRNS", "IDAT", "fcTL", "fdAT"].contains(name) {
                ranges.append(offset + 8..<offset + 8 + length)
            }
            offset += length + 12
        }
        return nil
    }

    /// Returns the chunks with pixels (RFC 9649, section 2).
    private static func webp(_ reader: ByteReader) -> [Range<Int>]? {
        var ranges: [Range<Int>] = []
        var offset = 12
        while ranges.count < maxParts, let name = reader.text(offset, 4), let length = reader.little32(offset + 4) {
            guard length <= reader.count - offset - 8 else { return nil }
            if ["VP8 ", "VP8L", "ALPH", "ANIM", "ANMF"].contains(name) {
                ranges.append(offset + 8..<offset + 8 + length)
            }
            offset += 8 + length + length & 1
        }
        return ranges
    }
}
