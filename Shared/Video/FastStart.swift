import ImageFormats

/// The order of a video file's bytes in which a player can begin before it has all of them.
///
/// If the index (`moov`) of a QuickTime or MPEG-4 file follows its content (`mdat`), the index is moved before the
/// content and the chunk offsets in it are changed. The content does not change, so it need not be copied.
public struct FastStart {
    /// An index that was moved.
    public struct Moved {
        /// The changed index, of the same length.
        public let index: [UInt8]
        /// The position at which it is inserted, in bytes.
        public let position: Int
        /// The position in the file from which it is removed.
        public let original: Int
    }

    /// True if a player can begin before it has all bytes; if `moved` is not nil, only after that change.
    public let isPossible: Bool
    public let moved: Moved?

    private typealias Box = (name: String, start: Int, length: Int)

    /// - Parameter read: returns the bytes of a range; fewer at the end of the file
    public init(size: Int, read: (_ offset: Int, _ count: Int) -> [UInt8]) {
        guard VideoFileType.sniff(read(0, VideoFileType.sniffedBytes))?.structure == .isoMedia else {
            // The other containers can be played from their beginning.
            (isPossible, moved) = (true, nil)
            return
        }
        let boxes = Self.boxes(size: size, read: read)
        guard let index = boxes.first(where: { $0.name == "moov" }),
            let content = boxes.first(where: { $0.name == "mdat" })
        else {
            (isPossible, moved) = (boxes.contains { $0.name == "moov" }, nil)
            return
        }
        guard index.start > content.start else {
            (isPossible, moved) = (true, nil)
            return
        }
        guard index.length <= MovieHeader.maxIndexBytes,
            let changed = Self.shifted(
                read(index.start, index.length),
                by: index.length,
                in: content.start..<index.start
            )
        else {
            (isPossible, moved) = (false, nil)
            return
        }
        (isPossible, moved) = (true, Moved(index: changed, position: content.start, original: index.start))
    }

    private static func boxes(size: Int, read: (_ offset: Int, _ count: Int) -> [UInt8]) -> [Box] {
        var boxes: [Box] = []
        var offset = 0
        while boxes.count < 4096, offset < size {
            let head = ByteReader(read(offset, 16))
            guard var length = head.big32(0), let name = head.text(4, 4) else { break }
            if length == 1 { length = head.big(8, 8) ?? 0 } else if length == 0 { length = size - offset }
            guard length >= 8, length <= size - offset else { break }
            boxes.append((name, offset, length))
            offset += length
        }
        return boxes
    }

    private static let parents: Set = ["moov", "trak", "mdia", "minf", "stbl"]

    /// Returns an index with a distance added to the chunk offsets in a range; nil if an offset does not fit any more,
    /// or the index is damaged or compressed.
    private static func shifted(_ index: [UInt8], by distance: Int, in range: Range<Int>) -> [UInt8]? {
        var bytes = index
        /// Changes a table of offsets of 4 or 8 bytes.
        func shiftTable(_ start: Int, _ end: Int, width: Int) -> Bool {
            let reader = ByteReader(bytes)
            guard let count = reader.big32(start + 12), count <= (end - start - 16) / width else { return false }
            for entry in 0..<count {
                let at = start + 16 + entry * width
                guard let offset = reader.big(at, width) else { return false }
                guard range.contains(offset) else { continue }
                let shifted = offset + distance
                guard width == 8 || shifted <= Int(UInt32.max) else { return false }
                for byte in 0..<width {
                    bytes[at + byte] = UInt8(truncatingIfNeeded: shifted >> (8 * (width - 1 - byte)))
                }
            }
            return true
        }
        func shiftTables(_ start: Int, _ end: Int, depth: Int) -> Bool {
            var at = start
            while at + 8 <= end {
                let reader = ByteReader(bytes)
                guard let length = reader.big32(at), length >= 8, length <= end - at, let raw = reader.slice(at + 4, 4)
                else { return false }
                switch String(decoding: raw, as: UTF8.self) {
                case "cmov": return false
                case "stco": guard shiftTable(at, at + length, width: 4) else { return false }
                case "co64": guard shiftTable(at, at + length, width: 8) else { return false }
                case let name where parents.contains(name) && depth < 8:
                    guard shiftTables(at + 8, at + length, depth: depth + 1) else { return false }
                default: break
                }
                at += length
            }
            return true
        }
        return shiftTables(0, bytes.count, depth: 0) ? bytes : nil
    }
}
