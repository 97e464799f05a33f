import Metadata
import TestSupport
import Testing

/// Films inside the files of photos.
struct MotionPhotoTests {
    @Test(.spec("T-47"), arguments: TestMotionPhotos.Kind.allCases)
    func `the film of a motion photo is found`(_ kind: TestMotionPhotos.Kind) throws {
        let film = TestVideos.video(brand: "mp42", width: 1920, height: 1080, duration: 2900, padding: 1000)
        let photo = TestMotionPhotos.jpeg(kind, film: film)
        try MetadataReader.requireWhole(photo.bytes)
        let facts = try MetadataReader.facts(of: photo.bytes)
        let found = try #require(facts.film)
        #expect(found.offset == Int64(photo.range.lowerBound) && found.size == Int64(film.count))
        #expect((found.pixelWidth, found.pixelHeight, found.duration) == (1920, 1080, 2_900_000))
        #expect(found.contentType == "public.mpeg-4" && !facts.isVideo && facts.contentType == "public.jpeg")
        // The result of a worker is read again.
        #expect(try PhotoMetadata(json: facts.json).film == found)
    }

    @Test(.spec("T-47"), arguments: TestMotionPhotos.Kind.allCases)
    func `a photo whose film is missing, cut or no film is a photo`(_ kind: TestMotionPhotos.Kind) throws {
        let film = TestVideos.video(brand: "mp42")
        let photo = TestMotionPhotos.jpeg(kind, film: film)
        // Without the film the position leads into the image.
        let gone = photo.bytes.prefix(photo.range.lowerBound)
        #expect(try MetadataReader.facts(of: Array(gone)).film == nil)
        #expect(try MetadataReader.facts(of: TestMotionPhotos.jpeg(kind, film: film.dropLast(8)).bytes).film == nil)
        let other = TestMotionPhotos.jpeg(kind, film: [UInt8](repeating: 0x20, count: 4000))
        #expect(try MetadataReader.facts(of: other.bytes).film == nil)
        #expect(try MetadataReader.facts(of: TestMotionPhotos.jpeg(kind, film: []).bytes).film == nil)
    }

    /// Motion Photo version 2 in photographs of Apple's and other cameras.
    @Test(.spec("T-47"), arguments: TestMotionPhotos.BoxLength.allCases)
    func `the film in the box of a HEIC is found`(_ length: TestMotionPhotos.BoxLength) throws {
        let film = TestVideos.video(brand: "mp42", width: 1920, height: 1080, duration: 2900, padding: 1000)
        for file in try Needed.photographs(["heic", "heif"], below: "exif-samples/heic") {
            let still = SharedPhotos.bytes(file)
            #expect(try MetadataReader.facts(of: still).film == nil, "\(SharedPhotos.name(file))")
            let photo = TestMotionPhotos.boxed(still, film: film, length)
            let facts = try MetadataReader.facts(of: photo.bytes)
            let found = try #require(facts.film, "\(SharedPhotos.name(file))")
            #expect(found.offset == Int64(photo.range.lowerBound) && found.size == Int64(film.count))
            #expect((found.pixelWidth, found.pixelHeight, found.duration) == (1920, 1080, 2_900_000))
            #expect(!facts.isVideo)
            // A film that is cut off, and a box with something else, leave a photo.
            let cut = TestMotionPhotos.boxed(still, film: film.dropLast(8), length)
            #expect(try MetadataReader.facts(of: cut.bytes).film == nil)
            #expect(try MetadataReader.facts(of: Array(photo.bytes.dropLast(8))).film == nil)
            let other = TestMotionPhotos.boxed(still, film: [UInt8](repeating: 0x20, count: 4000), length)
            #expect(try MetadataReader.facts(of: other.bytes).film == nil)
        }
    }

    @Test(.timeLimit(.minutes(2)), arguments: TestMotionPhotos.Kind.allCases)
    func `damaged positions lead nowhere outside the file`(_ kind: TestMotionPhotos.Kind) throws {
        var random = SeededRandom(named: "motion photos \(kind)")
        let photo = TestMotionPhotos.jpeg(kind, film: TestVideos.video(brand: "mp42"), width: 48, height: 32)
        for _ in 0..<500 {
            var bytes = photo.bytes
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                // Near the table that says where the film is, or anywhere.
                let at = random.one(in: 2) ? bytes.count - 60..<bytes.count : 0..<bytes.count
                bytes[Int.random(in: at, using: &random)] = .random(in: 0...255, using: &random)
            }
            guard let film = try? MetadataReader.facts(of: bytes).film else { continue }
            #expect(film.offset >= 0 && film.offset + film.size <= Int64(bytes.count))
        }
    }
}
