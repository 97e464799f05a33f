import Foundation
import ImageFormats
import JSONValue
import Metadata
import TestSupport
import Testing

/// Tests of videos in fragments, whose header has no duration.
@Suite(.timeLimit(.minutes(2)))
struct FragmentedVideoTests {
    private static func number(_ value: Int, _ count: Int = 4) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * (count - 1 - $0))) }
    }

    private static func box(_ name: String, _ content: [UInt8]) -> [UInt8] {
        number(content.count + 8) + Array(name.utf8) + content
    }

    /// Returns a file of one track with a time scale of 1000.
    private static func video(_ fragments: [[UInt8]]) -> [UInt8] {
        let zeros = [UInt8](repeating: 0, count: 80)
        let size = number(64 << 16) + number(48 << 16)
        let header = box("tkhd", number(0) + zeros.prefix(8) + number(7) + zeros.prefix(60) + size)
        let media =
            box("mdhd", number(0) + zeros.prefix(8) + number(1000) + zeros.prefix(8))
            + box("hdlr", zeros.prefix(8) + Array("vide".utf8) + zeros.prefix(13))
        let moov =
            box("mvhd", number(0) + zeros.prefix(8) + number(600) + zeros)
            + box("trak", header + box("mdia", media))
            + box("mvex", box("trex", number(0) + number(7) + number(1) + number(40) + number(0) + number(0)))
        let start = box("ftyp", Array("isom".utf8) + number(0)) + box("moov", moov)
        return start + fragments.flatMap { $0 + box("mdat", [1, 2, 3]) }
    }

    /// Returns a fragment.
    ///
    /// - Parameters:
    ///   - start: the time at which the fragment begins; nil to omit it
    ///   - sampleDuration: the duration of samples in the header of the fragment; nil for the duration in the track
    private static func fragment(start: Int?, sampleDuration: Int?, _ run: [UInt8]) -> [UInt8] {
        let header = box(
            "tfhd",
            number(sampleDuration == nil ? 0 : 8) + number(7) + (sampleDuration.map { number($0) } ?? [])
        )
        let time = start.map { box("tfdt", number(1 << 24) + number($0, 8)) } ?? []
        return box("moof", box("mfhd", number(0) + number(1)) + box("traf", header + time + box("trun", run)))
    }

    private static func duration(_ video: [UInt8]) throws -> Int64? {
        try MetadataReader.video(size: video.count) { offset, count in Array(video.dropFirst(offset).prefix(count)) }?
            .duration
    }

    @Test func `the durations of samples are added up, by run, by fragment and by track`() throws {
        let single = Self.number(0x100) + Self.number(2) + Self.number(30) + Self.number(50)
        let many = Self.number(0) + Self.number(25)
        let parts = [
            Self.fragment(start: 0, sampleDuration: nil, many), Self.fragment(start: 1000, sampleDuration: 20, many),
            Self.fragment(start: 1500, sampleDuration: nil, single),
            Self.fragment(start: nil, sampleDuration: 10, many),
        ]
        #expect(try Self.duration(Self.video(parts)) == 1_830_000)
        #expect(try Self.duration(Self.video([])) == 0)
        // The first fragment begins late.
        #expect(try Self.duration(Self.video([Self.fragment(start: 90_000, sampleDuration: nil, many)])) == 1_000_000)
    }

    @Test func `extreme numbers cause neither an error nor a negative duration`() throws {
        let longest = Self.number(0) + Self.number(0xFFFF_FFFF)
        for start in [0, Int.max, 0xFFFF_FFFF] {
            let video = Self.video(
                [[UInt8]](repeating: Self.fragment(start: start, sampleDuration: 0xFFFF_FFFF, longest), count: 9)
            )
            #expect(try #require(try Self.duration(video)) >= 0)
        }
        let cut = Self.number(0xF00) + Self.number(1000) + Self.number(5)
        #expect(try Self.duration(Self.video([Self.fragment(start: 0, sampleDuration: nil, cut)])) != nil)
    }

    @Test(arguments: ["+frag_keyframe+empty_moov", "+frag_keyframe"])
    func `a fragmented video of FFmpeg has its complete duration`(_ flags: String) throws {
        let folder = try TemporaryFolder("fragments")
        let path = folder.file("a.mp4")
        try FFmpegVideos.make(path, size: "160x120", rate: 10, seconds: 20, ["-movflags", flags, "-g", "20"])
        let video = [UInt8](try Data(contentsOf: URL(filePath: path)))
        let found = try #require(try Self.duration(video))
        let probe = try JSON(parsing: try FFmpegVideos.probe(path))
        let seconds = try #require(probe["format"]?["duration"]?.stringValue.flatMap { Double($0) })
        #expect(abs(Double(found) / 1_000_000 - seconds) < 0.05, "\(found) \(seconds)")
    }
}
