import Foundation
import Metadata
import PhotoModel
import TestSupport
import Testing

/// Tests of the metadata in videos that exiftool and ffmpeg wrote.
@Suite(.timeLimit(.minutes(2)))
struct VideoTagTests {
    private func facts(_ name: String, ffmpeg: [String] = [], exiftool: [String] = []) throws -> PhotoMetadata {
        let folder = try TemporaryFolder("tags")
        let path = folder.file(name)
        try FFmpegVideos.make(path, size: "176x144", seconds: 0.2, ffmpeg + ["-c:v", "mpeg4", "-c:a", "aac"])
        if !exiftool.isEmpty {
            let run = try RunningProgram.run(
                Needed.program("exiftool"),
                ["-q", "-overwrite_original", "-api", "QuickTimeUTC"] + exiftool + [path]
            )
            try #require(run.status == 0, "\(run.errors)")
        }
        let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
        return try #require(
            try MetadataReader.video(size: bytes.count) { offset, count in
                Array(bytes.dropFirst(offset).prefix(count))
            }
        )
    }

    @Test func `locations are read from user data, from keys and from 3GPP's box`() throws {
        for (name, tags) in [
            ("a.mp4", ["-UserData:GPSCoordinates=48.1372, 11.5756, 519"]),
            ("b.mov", ["-Keys:GPSCoordinates=48.1372, 11.5756, 519"]),
        ] {
            let location = try #require(try facts(name, exiftool: tags).location, "\(name)")
            #expect(abs(location.latitude - 48.1372) < 0.0001 && abs(location.longitude - 11.5756) < 0.0001)
            #expect(location.altitude == 519)
        }
        let location = try facts("c.3gp", ffmpeg: ["-metadata", "location=-33.8688+151.2093+20/"]).location
        #expect(location.map { abs($0.latitude + 33.8688) < 0.001 && abs($0.longitude - 151.2093) < 0.001 } == true)
    }

    @Test func `keywords, rating and caption are read from XMP`() throws {
        for name in ["a.mp4", "b.mov"] {
            let facts = try facts(
                name,
                exiftool: [
                    "-XMP-dc:Subject=sea", "-XMP-dc:Subject=sun", "-XMP-xmp:Rating=4", "-XMP-dc:Description=Waves",
                    "-XMP-photoshop:City=Oslo",
                ]
            )
            #expect((facts.keywords, facts.rating, facts.caption) == (["sea", "sun"], 4, "Waves"), "\(name)")
            #expect(facts.metadata?.city == "Oslo")
        }
    }

    @Test func `the date with an offset is used before the header's, and texts are read from each list`() throws {
        let facts = try facts(
            "a.mov",
            ffmpeg: ["-metadata", "creation_time=2020-01-01T00:00:00Z"],
            exiftool: [
                "-Keys:CreationDate=2024:06:01 12:30:00+02:00", "-Keys:Make=Apple", "-Keys:Model=iPhone 15",
                "-ItemList:Title=Sea", "-ItemList:Comment=Waves", "-ItemList:Keyword=salt, sand",
            ]
        )
        #expect((facts.captureDate, facts.captureOffset) == (1_717_237_800_000_000, 7200))
        #expect((facts.cameraMake, facts.cameraModel) == ("Apple", "iPhone 15"))
        #expect((facts.metadata?.title, facts.caption, facts.keywords) == ("Sea", "Waves", ["salt", "sand"]))
        let plain = try self.facts("b.mp4", ffmpeg: ["-metadata", "creation_time=2020-01-01T00:00:00Z"])
        #expect(plain.captureDate == 1_577_836_800_000_000)
    }

    @Test func `the rate of the recording distinguishes slow motion from time lapses`() throws {
        func subtypes(_ rate: Float) throws -> Int {
            var value = rate.bitPattern.bigEndian
            let bytes = withUnsafeBytes(of: &value) { Array($0) }
            let video = TestVideos.video(duration: 2000, captureRate: bytes, frameRate: 30)
            return try #require(
                try MetadataReader.video(size: video.count) { Array(video.dropFirst($0).prefix($1)) }?.mediaSubtypes
            )
        }
        #expect(try subtypes(240) == PhotoMetadata.Subtype.highFrameRate)
        #expect(try subtypes(2) == PhotoMetadata.Subtype.timelapse)
        #expect(try subtypes(30) == 0)
    }
}
