extension VideoFileType {
    /// Returns false if the end of the file is missing, by the lengths that its container states.
    ///
    /// Only AVI, Matroska and WebM are examined. A program writes the lengths when a recording ends, so a file may have
    /// none. MPEG streams never have any; the boxes of QuickTime and MPEG-4 are read by ``MovieHeader``.
    ///
    /// - Parameters:
    ///   - size: the size of the file in bytes
    ///   - read: returns the bytes of a range
    public func isWhole(size: Int, read: (_ offset: Int, _ count: Int) throws -> [UInt8]) rethrows -> Bool {
        switch structure {
        case .avi: try Self.isWholeAVI(size, read)
        case .matroska: Self.isWholeMatroska(size, ByteReader(try read(0, Self.sniffedBytes)))
        case .isoMedia, .transportStream, .programStream: true
        }
    }

    /// The maximum number of chunks that are examined; a file has a few for each gigabyte.
    private static let maxChunks = 4096

    /// Follows the chunks of a RIFF file, and of those behind it that continue a long one. The length of the file
    /// itself is not used, because some programs write a wrong one.
    private static func isWholeAVI(_ size: Int, _ read: (Int, Int) throws -> [UInt8]) rethrows -> Bool {
        var offset = 0
        for _ in 0..<maxChunks {
            guard offset + 8 <= size else { break }
            let head = ByteReader(try read(offset, 8))
            if head.has("RIFF", at: 0) {
                offset += 12
                continue
            }
            let isList = head.has("LIST", at: 0)
            // Any bytes may follow the last chunk.
            guard let length = head.little32(4), isList || head.has("idx1", at: 0) || head.has("JUNK", at: 0),
                length != 0xFFFF_FFFF, length > 0 || !isList
            else { break }
            let end = offset + 8 + length
            guard end <= size else { return false }
            offset = end + end & 1
        }
        return true
    }

    /// Compares the size of the file with the length of the segment, which contains everything but the first header.
    private static func isWholeMatroska(_ size: Int, _ head: ByteReader) -> Bool {
        guard head.big32(0) == 0x1A45_DFA3, let header = ebmlLength(head, at: 4), let headerLength = header.length,
            header.end + headerLength <= head.count, head.big32(header.end + headerLength) == 0x1853_8067,
            let segment = ebmlLength(head, at: header.end + headerLength + 4), let length = segment.length
        else { return true }
        return length <= size - segment.end
    }

    /// Reads the length of an element: the leading zeros determine how many bytes it has. All ones mean an unknown
    /// length, which is returned as nil.
    private static func ebmlLength(_ head: ByteReader, at offset: Int) -> (length: Int?, end: Int)? {
        guard let first = head.byte(offset), first > 0 else { return nil }
        let count = UInt8(first).leadingZeroBitCount + 1
        guard let number = head.big(offset, count) else { return nil }
        let mask = (1 << (7 * count)) - 1
        return (number & mask == mask ? nil : number & mask, offset + count)
    }
}
