import Metadata
import PhotoModel
import SamplePhotos
import TestSupport
import Testing

/// Tests of the XMP of a JPEG that does not fit into one segment.
@Suite(.timeLimit(.minutes(1)))
struct ExtendedXMPTests {
    private static let identifier = "FD346B9BF807F7B05A516CEAC2AA02B4"

    private func bigEndian(_ number: Int) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
    }

    private func piece(_ packet: [UInt8], _ range: Range<Int>, identifier: String = Self.identifier) -> [UInt8] {
        let head = Array("http://ns.adobe.com/xmp/extension/\0\(identifier)".utf8)
        return JPEGEncoder.segment(
            0xE1,
            head + bigEndian(packet.count) + bigEndian(range.lowerBound) + Array(packet[range])
        )
    }

    private func facts(_ pieces: [[UInt8]]) throws -> PhotoMetadata {
        let note = "xmlns:xmpNote=\"http://ns.adobe.com/xmp/note/\" xmpNote:HasExtendedXMP=\"\(Self.identifier)\""
        let segments = [TestImages.xmpSegment("xmp:Rating=\"2\" \(note)")] + pieces
        return try MetadataReader.facts(
            of: TestImages.jpeg(width: 16, height: 8, orientation: 1, exif: nil, segments: segments)
        )
    }

    private static let packet = Array(
        TestImages.xmpPacket("xmp:Rating=\"5\" photoshop:City=\"Oslo\" xmp:Label=\"Red\"").utf8
    )

    @Test func `fields that only the second packet has are read`() throws {
        let (packet, half) = (Self.packet, Self.packet.count / 2)
        let (first, second) = (piece(packet, 0..<half), piece(packet, half..<packet.count))
        for pieces in [[piece(packet, 0..<packet.count)], [first, second], [second, first]] {
            let facts = try facts(pieces)
            #expect((facts.rating, facts.metadata?.city, facts.metadata?.label) == (2, "Oslo", "Red"))
        }
    }

    @Test func `a packet that is incomplete, not the one named in the first, or not XMP is ignored`() throws {
        let (packet, half) = (Self.packet, Self.packet.count / 2)
        let other = String(Self.identifier.reversed())
        for pieces in [
            [], [piece(packet, 0..<half)], [piece(packet, half..<packet.count)],
            [piece(packet, 0..<packet.count, identifier: other)], [piece(Array(packet.dropLast(9)), 0..<half)],
            [piece(Array("no XMP".utf8), 0..<6)],
            [JPEGEncoder.segment(0xE1, Array("http://ns.adobe.com/xmp/extension/".utf8))],
        ] as [[[UInt8]]] {
            let facts = try facts(pieces)
            #expect((facts.rating, facts.metadata?.city) == (2, nil))
        }
    }

    @Test func `keywords that exiftool writes into the second packet are read`() throws {
        let words = (0..<900).map { "-XMP-dc:Subject=keyword number \($0) " + String(repeating: "x", count: 100) }
        let facts = try ExifToolFile.facts(words + ["-XMP-xmp:Rating=4"])
        #expect((facts.keywords.count, facts.rating) == (900, 4))
    }
}
