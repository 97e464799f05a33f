import ImageFormats
import Metadata
import TestSupport
import Testing

/// Tests that the first bytes of a format, followed by random bytes, are not an image.
@Suite(.timeLimit(.minutes(TestEnvironment.rounds(1))))
struct RandomBytesTests {
    private static let beginnings: [[UInt8]] = [
        [0xFF, 0x0A], [0xFF, 0xD8, 0xFF, 0xE0], [0xFF, 0xD8, 0xFF, 0xC0], Array("BM".utf8), Array("GIF89a".utf8),
        [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A], [0x49, 0x49, 0x2A, 0x00], [0x49, 0x49, 0x2B, 0x00],
        Array("RIFF".utf8) + [0, 4, 0, 0] + Array("WEBPVP8 ".utf8),
        [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13] + Array("IHDR".utf8),
        [0xFF, 0x4F, 0xFF, 0x51], [0, 0, 0, 12, 0x6A, 0x50, 0x20, 0x20, 0x0D, 0x0A, 0x87, 0x0A],
        Array("8BPS".utf8), Array("8BPS".utf8) + [0, 1, 0, 0, 0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0, 1, 0],
        Array("P1\n".utf8), Array("P6\n".utf8), Array("P7\n".utf8), [0, 0, 2, 0, 0, 0, 0, 0], [0, 1, 9], [],
    ]

    @Test(arguments: beginnings)
    func `the first bytes of a format with random bytes are refused`(_ beginning: [UInt8]) {
        var random = SeededRandom(named: "random bytes after \(beginning.prefix(4))")
        for _ in 0..<TestEnvironment.rounds(300) {
            let count = Int.random(in: 100...3000, using: &random)
            let bytes = beginning + random.bytes(count)
            #expect(throws: MetadataError.self) { try MetadataReader.requireWhole(bytes) }
        }
    }
}
