import PhotoModel
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(1)))
struct FileGroupingTests {
    private typealias Group = FileGrouping.Group

    @Test func `an image, its raw file, its video and its sidecar form one group`() {
        let groups = FileGrouping.groups(["IMG_1.HEIC", "IMG_1.DNG", "IMG_1.mov", "IMG_1.xmp", "IMG_2.jpg"])
        let first = Group(main: "IMG_1.HEIC", alternate: "IMG_1.DNG", pairedVideo: "IMG_1.mov", sidecar: "IMG_1.xmp")
        #expect(groups == [first, Group(main: "IMG_2.jpg")])
    }

    @Test func `the position of the main file does not matter`() {
        #expect(FileGrouping.groups(["a.CR2", "a.JPG"]) == [Group(main: "a.JPG", alternate: "a.CR2")])
    }

    @Test func `ambiguous files are not grouped`() {
        // Two stills, two raw files, another stem, another case of the stem, no still.
        #expect(FileGrouping.groups(["a.jpg", "a.heic", "a.dng"]).map(\.main) == ["a.jpg", "a.heic", "a.dng"])
        #expect(FileGrouping.groups(["a.jpg", "a.dng", "a.cr2"]).map(\.main) == ["a.jpg", "a.dng", "a.cr2"])
        #expect(FileGrouping.groups(["a.jpg", "b.dng", "A.mov"]).map(\.main) == ["a.jpg", "b.dng", "A.mov"])
        #expect(FileGrouping.groups(["a.dng", "a.mov"]).map(\.main) == ["a.dng", "a.mov"])
        #expect(FileGrouping.groups(["a.png", "a.mov"]).map(\.main) == ["a.png", "a.mov"])
    }

    @Test func `the sidecar of the whole name takes precedence over that of the stem`() {
        let groups = FileGrouping.groups(["a.jpg", "a.png", "a.jpg.xmp", "a.xmp", "c.xmp"])
        #expect(groups == [Group(main: "a.jpg", sidecar: "a.jpg.xmp"), Group(main: "a.png", sidecar: "a.xmp")])
    }

    @Test func `the sidecar of the raw file or of the video is that of the asset, if its still has none`() {
        let names = [
            "a.jpg", "a.dng", "a.dng.xmp", "b.jpg", "b.mov", "b.mov.xmp", "c.jpg", "c.dng", "c.dng.xmp", "c.xmp",
        ]
        #expect(FileGrouping.groups(names).map(\.sidecar) == ["a.dng.xmp", "b.mov.xmp", "c.xmp"])
        let sidecars = FileGrouping.Sidecars(among: names)
        let own = ["a.jpg", "a.dng", "c.jpg", "c.dng"].map { sidecars.sidecar(of: $0) }
        #expect(own == [nil, "a.dng.xmp", "c.xmp", "c.dng.xmp"])
    }

    @Test func `a leading or missing dot makes the whole name the stem`() {
        #expect(FileGrouping.parts(".jpg") == (".jpg", ""))
        #expect(FileGrouping.parts("a.b.JPG") == ("a.b", "jpg"))
        #expect(FileGrouping.parts("plain") == ("plain", ""))
        #expect(FileGrouping.parts("a.") == ("a", ""))
    }

    @Test func `names that differ only in the normal form of a character belong to different files`() {
        let (composed, decomposed) = ("\u{E9}", "e\u{301}")
        let names = ["\(composed).jpg", "\(decomposed).jpg", "\(decomposed).mov", "\(composed).xmp"]
        let groups = FileGrouping.groups(names)
        // Texts would be equal in both forms.
        func bytes(_ name: String?) -> [UInt8]? { name.map { Array($0.utf8) } }
        #expect(groups.map { bytes($0.main) } == [bytes(names[0]), bytes(names[1])])
        #expect(groups.map { bytes($0.pairedVideo) } == [nil, bytes(names[2])])
        #expect(groups.map { bytes($0.sidecar) } == [bytes(names[3]), nil])
    }

    @Test func `every name is in exactly one group`() {
        var random = SeededRandom(named: "grouping")
        let extensions = ["jpg", "HEIC", "dng", "nef", "mov", "mp4", "png", "xmp", "jpg.xmp", ""]
        for _ in 0..<500 {
            var names: Set<String> = []
            for _ in 0..<Int.random(in: 0...12, using: &random) {
                let stem = random.pick(["a", "b", "IMG_1", "a.b"])
                names.insert(stem + "." + random.pick(extensions))
            }
            let shuffled = names.sorted().shuffled(using: &random)
            let groups = FileGrouping.groups(shuffled)
            let grouped = groups.flatMap { [$0.main, $0.alternate, $0.pairedVideo].compactMap { $0 } }
            #expect(grouped.sorted() == shuffled.filter { !$0.hasSuffix(".xmp") }.sorted(), "\(shuffled)")
        }
    }

    @Test func `pairs are confirmed by time and by identifier`() {
        #expect(FileGrouping.isSameShot(5_000_000, 6_000_000))
        #expect(!FileGrouping.isSameShot(5_000_000, 6_000_001))
        #expect(FileGrouping.isSameShot(nil, 1))
        #expect(!FileGrouping.isSameShot(.min, .max))
        #expect(FileGrouping.isLivePhoto("A", video: "A", duration: 60_000_000))
        #expect(!FileGrouping.isLivePhoto("A", video: "B", duration: 1))
        #expect(FileGrouping.isLivePhoto("A", video: nil, duration: 3_000_000))
        #expect(!FileGrouping.isLivePhoto(nil, video: nil, duration: 6_000_001))
    }
}
