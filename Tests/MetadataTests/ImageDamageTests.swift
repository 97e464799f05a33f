import Foundation
import Metadata
import TestSupport
import Testing

/// Tests of the checks for damage in the coded data of an image.
@Suite(.timeLimit(.minutes(2)))
struct ImageDamageTests {
    private static let end: [UInt8] = [0xFF, 0xD9]

    /// Returns the offset of the first byte of the coded data.
    private static func dataStart(_ jpeg: [UInt8]) -> Int {
        for position in 2..<(jpeg.count - 3) where jpeg[position] == 0xFF && jpeg[position + 1] == 0xDA {
            return position + 2 + (Int(jpeg[position + 2]) << 8 | Int(jpeg[position + 3]))
        }
        return 0
    }

    @Test func `a JPEG with a gap before its end marker is damaged, and the first damaged row is reported`() throws {
        let whole = TestImages.jpeg(width: 640, height: 480)
        #expect(MetadataReader.damage(of: whole) == nil)
        let start = Self.dataStart(whole)
        var last = -1
        for fraction in [0.1, 0.3, 0.5, 0.7, 0.9] {
            let cut = start + Int(Double(whole.count - start) * fraction)
            let damage = try #require(MetadataReader.damage(of: Array(whole[..<cut]) + Self.end), "\(fraction)")
            let row = try #require(damage.firstMatch(of: /row ([0-9]+) of 480/).flatMap { Int($0.1) }, "\(damage)")
            #expect(row >= last && row < 480, "\(fraction): \(damage)")
            last = row
        }
        #expect(last > 200)
        // A file without its end marker is refused before the damage check; here it counts as damaged too.
        #expect(MetadataReader.damage(of: Array(whole.dropLast(500))) != nil)
    }

    @Test func `data after or beside the image data is not damage`() {
        let whole = TestImages.jpeg(width: 160, height: 120, date: "2024:06:01 12:30:00", latitude: 1, longitude: 2)
        #expect(MetadataReader.damage(of: whole + Array("appended by a camera".utf8)) == nil)
        #expect(MetadataReader.damage(of: whole + whole) == nil)
        #expect(MetadataReader.damage(of: Array(TestImages.pngStart(width: 9, height: 9))) == nil)
        #expect(MetadataReader.damage(of: []) == nil)
        #expect(MetadataReader.damage(of: [0xFF, 0xD8, 0xFF, 0xD9]) != nil)
    }

    @Test func `damage is found in progressive images`() throws {
        let convert = try Needed.program("convert")
        let folder = try TemporaryFolder("progressive")
        let plain = try folder.write(TestImages.jpeg(width: 640, height: 480), to: "plain.jpg")
        let path = folder.file("progressive.jpg")
        #expect(try RunningProgram.run(convert, [plain, "-interlace", "JPEG", path]).status == 0)
        let whole = Array(try Data(contentsOf: URL(filePath: path)))
        #expect(MetadataReader.damage(of: whole) == nil)
        let damage = MetadataReader.damage(of: Array(whole[..<(whole.count / 2)]) + Self.end)
        #expect(damage?.contains("row ") == true, "\(damage ?? "")")
    }

    @Test func `a forged header with huge dimensions is checked quickly`() {
        var jpeg = TestImages.jpeg(width: 160, height: 120)
        for position in 2..<(jpeg.count - 9)
        where jpeg[position] == 0xFF && (jpeg[position + 1] == 0xC0 || jpeg[position + 1] == 0xC2) {
            for (offset, byte) in [(5, 0xFF), (6, 0xDC), (7, 0xFF), (8, 0xDC)] { jpeg[position + offset] = UInt8(byte) }
            break
        }
        let start = ContinuousClock().now
        #expect(MetadataReader.damage(of: jpeg)?.contains("65500 by 65500") == true)
        #expect(ContinuousClock().now - start < .seconds(3))
    }

    @Test func `checking random damage always returns`() {
        var random = SeededRandom(named: "picture damage")
        let whole = TestImages.jpeg(width: 320, height: 240)
        var damaged = 0
        for _ in 0..<400 {
            var bytes = whole
            for _ in 0..<Int.random(in: 1...30, using: &random) {
                bytes[Int.random(in: 2..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            if MetadataReader.damage(of: bytes) != nil { damaged += 1 }
        }
        #expect(damaged > 50)
    }

    @Test func `exactly one of the photographs is damaged`() throws {
        let files = try Needed.photographs(["jpg", "jpeg"])
        let (start, clock) = (ContinuousClock().now, ContinuousClock())
        var (found, bytes) = ([String](), 0)
        for file in files {
            let image = Array(SharedPhotos.bytes(file))
            bytes += image.count
            if MetadataReader.damage(of: image) != nil { found.append(file.lastPathComponent) }
        }
        let time = clock.now - start
        TestPaths.report("\(files.count) photographs, \(bytes >> 20) MiB, checked in \(time)")
        #expect(found == ["corrupted.jpg"])
    }

    @Test func `an image that is too large to be rendered has the reason as its damage`() throws {
        let end = TestImages.chunk("IEND", [])
        for (width, height, reason) in [
            (12_000, 9000, "12000 by 9000 pixels, at most 100 megapixels of png"),
            (70_000, 10, "70000 by 10 pixels, at most 65500 a side"),
            (2_147_483_647, 2_147_483_647, "at most 65500 a side"),
        ] {
            let bytes = TestImages.pngStart(width: width, height: height) + end
            try MetadataReader.requireWhole(bytes)
            let facts = try MetadataReader.facts(of: bytes)
            #expect(facts.damage?.contains(reason) == true, "\(facts.damage ?? "")")
            #expect(MetadataReader.damage(of: bytes) == facts.damage, "another check reports the same")
        }
        #expect(try MetadataReader.facts(of: TestImages.gif(frames: 1001)).damage?.contains("1001 frames") == true)
        for bytes in [TestImages.gif(frames: 1000), TestImages.pngStart(width: 10_000, height: 10_000) + end] {
            #expect(try MetadataReader.facts(of: bytes).damage == nil)
        }
    }
}
