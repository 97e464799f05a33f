/// Parses the blocks of a GIF file.
enum GIFStructure {
    static func read(_ reader: ByteReader) throws(ImageHeader.Failure) -> ImageHeader {
        guard var width = reader.little16(6), var height = reader.little16(8), let flags = reader.byte(10) else {
            throw .truncated
        }
        var frames = 0
        var hasAlpha = false
        var isComplete = false
        var xmp: Range<Int>?
        var offset = 13 + table(flags)
        scan: while let block = reader.byte(offset) {
            switch block {
            case 0x2C:
                guard let left = reader.little16(offset + 1), let top = reader.little16(offset + 3),
                    let across = reader.little16(offset + 5), let down = reader.little16(offset + 7),
                    let local = reader.byte(offset + 9), let codeSize = reader.byte(offset + 10 + table(local))
                else { break scan }
                guard across > 0, down > 0, left + across <= 0xFFFF, top + down <= 0xFFFF else {
                    throw .invalid("a GIF frame without area, or outside any canvas")
                }
                // Codes begin one bit longer than this and have at most 12 bits (GIF89a, appendix F).
                guard (1...11).contains(codeSize) else { throw .invalid("a GIF frame with impossible codes") }
                frames += 1
                // Some encoders write a canvas that is too small: it is extended to contain the frames.
                width = max(width, left + across)
                height = max(height, top + down)
                guard let end = subBlocks(reader, offset + 11 + table(local)) else { break scan }
                offset = end
            case 0x21:
                if reader.byte(offset + 1) == 0xF9, let control = reader.byte(offset + 3), control & 1 != 0 {
                    hasAlpha = true
                }
                guard let end = subBlocks(reader, offset + 2) else { break scan }
                if xmp == nil, reader.has("XMP DataXMP", at: offset + 3) {
                    // The packet is not divided into blocks. Behind it, whatever its last bytes are, 257 bytes lead to
                    // the end of the blocks (XMP, part 3, 1.1.2).
                    xmp = reader.slice(offset + 14, end - 258 - (offset + 14)).map { $0.startIndex..<$0.endIndex }
                }
                offset = end
            case 0x3B:
                isComplete = true
                break scan
            default: break scan
            }
        }
        guard frames > 0 else { throw isComplete ? .invalid("a GIF file without an image") : .truncated }
        var header = ImageHeader(kind: .gif, storedWidth: width, storedHeight: height)
        header.frameCount = frames
        header.hasAlpha = hasAlpha
        header.isComplete = isComplete
        header.xmp = xmp
        return header
    }

    private static func table(_ flags: Int) -> Int { flags & 0x80 == 0 ? 0 : 3 << (flags & 7 + 1) }

    private static func subBlocks(_ reader: ByteReader, _ start: Int) -> Int? {
        var offset = start
        while let length = reader.byte(offset) {
            offset += 1 + length
            if length == 0 { return offset }
        }
        return nil
    }
}
