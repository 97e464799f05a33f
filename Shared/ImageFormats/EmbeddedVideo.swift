/// The video in the file of a motion photo: a range of its bytes that is a QuickTime or MPEG-4 file of its own.
///
/// Cameras that use Google's format append it to the image and write its position into XMP (MicroVideo, Motion Photo);
/// in HEIC it is in a box `mpvd`. Samsung's cameras write a table of blocks at the end of the file, one of which is the
/// video.
public struct EmbeddedVideo: Sendable {
    /// The bytes of the video in the file.
    public let range: Range<Int>
    public let movie: MovieHeader

    /// Finds the video of a photo; nil if the file contains none that can be played.
    public static func find(in bytes: [UInt8], _ header: ImageHeader) -> EmbeddedVideo? {
        guard [.jpeg, .heic, .avif].contains(header.kind) else { return nil }
        let file = ByteReader(bytes)
        let packet = header.xmp.map { XMPText(bytes[$0]) }
        let candidates = [
            boxed(file, header.kind), samsung(file),
            packet.flatMap { $0.containerItem("MotionPhoto", size: bytes.count) },
        ]
        for range in candidates + [packet.flatMap { atEnd($0, size: bytes.count) }] {
            guard let range, let video = EmbeddedVideo(file, range) else { continue }
            return video
        }
        return nil
    }

    /// Returns nil if the range is not a video.
    private init?(_ file: ByteReader, _ range: Range<Int>) {
        guard let contentType = file.slice(range.lowerBound, range.count).flatMap({ MovieHeader.sniff($0.prefix(16)) }),
            let movie = try? MovieHeader.find(
                contentType: contentType,
                size: range.count,
                read: { offset, count in
                    let length = min(count, range.count - offset)
                    return file.slice(range.lowerBound + offset, length).map(Array.init) ?? []
                }
            ), movie.pixelWidth > 0
        else { return nil }
        self.range = range
        self.movie = movie
    }

    /// Returns the content of the box `mpvd` of a HEIC.
    private static func boxed(_ file: ByteReader, _ kind: ImageFormat) -> Range<Int>? {
        guard kind != .jpeg else { return nil }
        let box = BMFFStructure.boxes(file).last { $0.name == "mpvd" }
        return box.map { $0.content.bytes.startIndex..<$0.content.bytes.endIndex }
    }

    /// The maximum number of blocks of Samsung's table that are read.
    private static let maxBlocks = 64

    /// Returns the block `MotionPhoto_Data` of the table at the end of the file: `SEFH`, a version, the number of
    /// blocks, twelve bytes for each (kind, distance before the table, length), the length of all this, and `SEFT`.
    private static func samsung(_ file: ByteReader) -> Range<Int>? {
        let end = file.count - 8
        guard file.has("SEFT", at: end + 4), let length = file.little32(end), length <= end,
            file.has("SEFH", at: end - length), let count = file.little32(end - length + 8)
        else { return nil }
        let table = end - length
        for entry in 0..<min(count, maxBlocks) {
            let at = table + 12 + entry * 12
            guard let distance = file.little32(at + 4), let size = file.little32(at + 8), distance <= table,
                size <= distance
            else { return nil }
            // A block repeats its kind, and has a name before its content.
            let block = table - distance
            guard let letters = file.little32(block + 4), letters <= 256, letters + 8 <= size,
                file.text(block + 8, letters) == "MotionPhoto_Data"
            else { continue }
            return block + 8 + letters..<block + size
        }
        return nil
    }

    /// Returns the range of the video in the earlier version of Google's format, which states its distance from the end
    /// of the file.
    private static func atEnd(_ packet: XMPText, size: Int) -> Range<Int>? {
        guard let distance = packet.number(":MicroVideoOffset"), (1..<size).contains(distance) else { return nil }
        return size - distance..<size
    }
}
