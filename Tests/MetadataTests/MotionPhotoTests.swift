import Metadata
import TestSupport
import Testing

/// Tests of videos inside the files of photos.
@Suite(.timeLimit(.minutes(2)))
struct MotionPhotoTests {
    @Test(.spec("T-47"), arguments: TestMotionPhotos.Kind.allCases)
    func `the video of a motion photo is found`(_ kind: TestMotionPhotos.Kind) throws {
        let video = TestVideos.video(brand: "mp42", width: 1920, height: 1080, duration: 2900, padding: 1000)
        let photo = TestMotionPhotos.jpeg(kind, video: video)
        try MetadataReader.requireWhole(photo.bytes)
        let facts = try MetadataReader.facts(of: photo.bytes)
        let found = try #require(facts.embeddedVideo)
        #expect(found.offset == Int64(photo.range.lowerBound) && found.size == Int64(video.count))
        #expect((found.pixelWidth, found.pixelHeight, found.duration) == (1920, 1080, 2_900_000))
        #expect(found.contentType == "public.mpeg-4" && !facts.isVideo && facts.contentType == "public.jpeg")
        // The JSON that a worker returns has the video too.
        #expect(try PhotoMetadata(json: facts.json).embeddedVideo == found)
    }

    @Test(.spec("T-47"), arguments: TestMotionPhotos.Kind.allCases)
    func `a photo whose video is missing, incomplete or invalid has no embedded video`(_ kind: TestMotionPhotos.Kind)
        throws
    {
        let video = TestVideos.video(brand: "mp42")
        let photo = TestMotionPhotos.jpeg(kind, video: video)
        // Without the video, the position is inside the image.
        let withoutVideo = photo.bytes.prefix(photo.range.lowerBound)
        #expect(try MetadataReader.facts(of: Array(withoutVideo)).embeddedVideo == nil)
        #expect(
            try MetadataReader.facts(of: TestMotionPhotos.jpeg(kind, video: video.dropLast(8)).bytes).embeddedVideo
                == nil
        )
        let other = TestMotionPhotos.jpeg(kind, video: [UInt8](repeating: 0x20, count: 4000))
        #expect(try MetadataReader.facts(of: other.bytes).embeddedVideo == nil)
        #expect(try MetadataReader.facts(of: TestMotionPhotos.jpeg(kind, video: []).bytes).embeddedVideo == nil)
    }

    /// Tests Motion Photo version 2 in photographs of Apple's and other cameras.
    @Test(.spec("T-47"), arguments: TestMotionPhotos.BoxLength.allCases)
    func `the video in the box of a HEIC is found`(_ length: TestMotionPhotos.BoxLength) throws {
        let video = TestVideos.video(brand: "mp42", width: 1920, height: 1080, duration: 2900, padding: 1000)
        for file in try Needed.photographs(["heic", "heif"], below: "exif-samples/heic") {
            let still = SharedPhotos.bytes(file)
            #expect(try MetadataReader.facts(of: still).embeddedVideo == nil, "\(SharedPhotos.name(file))")
            let photo = TestMotionPhotos.boxed(still, video: video, length)
            let facts = try MetadataReader.facts(of: photo.bytes)
            let found = try #require(facts.embeddedVideo, "\(SharedPhotos.name(file))")
            #expect(found.offset == Int64(photo.range.lowerBound) && found.size == Int64(video.count))
            #expect((found.pixelWidth, found.pixelHeight, found.duration) == (1920, 1080, 2_900_000))
            #expect(!facts.isVideo)
            // An incomplete video, and a box with other content, are ignored.
            let cut = TestMotionPhotos.boxed(still, video: video.dropLast(8), length)
            #expect(try MetadataReader.facts(of: cut.bytes).embeddedVideo == nil)
            #expect(try MetadataReader.facts(of: Array(photo.bytes.dropLast(8))).embeddedVideo == nil)
            let other = TestMotionPhotos.boxed(still, video: [UInt8](repeating: 0x20, count: 4000), length)
            #expect(try MetadataReader.facts(of: other.bytes).embeddedVideo == nil)
        }
    }

    @Test(arguments: TestMotionPhotos.Kind.allCases)
    func `damaged positions never refer to bytes outside the file`(_ kind: TestMotionPhotos.Kind) throws {
        var random = SeededRandom(named: "motion photos \(kind)")
        let photo = TestMotionPhotos.jpeg(kind, video: TestVideos.video(brand: "mp42"), width: 48, height: 32)
        for _ in 0..<500 {
            var bytes = photo.bytes
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                // Damages the table with the position of the video, or any part of the file.
                let range = random.one(in: 2) ? bytes.count - 60..<bytes.count : 0..<bytes.count
                bytes[Int.random(in: range, using: &random)] = .random(in: 0...255, using: &random)
            }
            guard let video = try? MetadataReader.facts(of: bytes).embeddedVideo else { continue }
            #expect(video.offset >= 0 && video.offset + video.size <= Int64(bytes.count))
        }
    }
}
