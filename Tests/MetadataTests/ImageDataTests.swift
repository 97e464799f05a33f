import ImageFormats
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(TestEnvironment.rounds(1))))
struct ImageDataTests {
    @Test func `cut and damaged files have no image data, or parts within the file`() throws {
        var random = SeededRandom(named: "damaged image data")
        let whole: [([UInt8], ImageFormat)] = [
            (TestImages.jpeg(width: 64, height: 48), .jpeg),
            (TestImages.png(width: 64, height: 48) { (UInt8($0), UInt8($1), 9, 255) }, .png),
            (TestRaw.dng(width: 64, height: 48), .tiff),
        ]
        for (bytes, format) in whole {
            #expect(ImageFormat.sniff(bytes) == format)
            #expect(ImageData.ranges(of: bytes, format)?.isEmpty == false)
            for _ in 0..<TestEnvironment.rounds(300) {
                var damaged = bytes
                if Bool.random(using: &random) { damaged.removeLast(Int.random(in: 1..<bytes.count, using: &random)) }
                for _ in 0..<4 where !damaged.isEmpty {
                    let position = Int.random(in: damaged.indices, using: &random)
                    damaged[position] = UInt8.random(in: .min ... .max, using: &random)
                }
                for range in ImageData.ranges(of: damaged, format) ?? [] {
                    #expect(range.lowerBound >= 0 && range.upperBound <= damaged.count)
                }
            }
        }
        #expect(ImageData.ranges(of: TestImages.jpeg(width: 8, height: 8), .gif) == nil)
    }

    @Test func `different pixels give different image data`() throws {
        func data(_ bytes: [UInt8]) throws -> [UInt8] {
            try #require(ImageData.ranges(of: bytes, .jpeg)).flatMap { bytes[$0] }
        }
        let first = try data(TestImages.jpeg(width: 64, height: 48, date: "2024:05:01 12:00:00", seed: 1))
        #expect(try data(TestImages.jpeg(width: 64, height: 48, date: "2023:05:01 12:00:00", seed: 1)) == first)
        #expect(try data(TestImages.jpeg(width: 64, height: 48, seed: 2)) != first)
    }
}
