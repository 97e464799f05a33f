import ImageFormats
import Testing

/// Tests of tracks with extreme numbers.
@Suite(.timeLimit(.minutes(1)))
struct MovieTrackTests {
    private static func bytes(_ value: UInt64, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: value >> UInt64(8 * (count - 1 - $0))) }
    }

    private static func box(_ name: String, _ content: [UInt8]) -> [UInt8] {
        bytes(UInt64(content.count + 8), 4) + Array(name.utf8) + content
    }

    /// Returns a file of one track.
    ///
    /// - Parameter edits: the fields of each entry: duration, media time and rate
    private static func file(
        isLong: Bool = false,
        movieScale: UInt64 = 1000,
        mediaScale: UInt64 = 1000,
        mediaDuration: UInt64 = 1000,
        count: UInt64? = nil,
        edits: [(UInt64, UInt64, UInt64)]
    ) -> [UInt8] {
        let width = isLong ? 8 : 4
        let version: [UInt8] = [isLong ? 1 : 0, 0, 0, 1]
        func header(_ scale: UInt64, _ duration: UInt64) -> [UInt8] {
            version + [UInt8](repeating: 0, count: 2 * width) + bytes(scale, 4) + bytes(duration, width)
        }
        let list = edits.flatMap { bytes($0.0, width) + bytes($0.1, width) + bytes($0.2, 4) }
        let track =
            box("tkhd", version + [UInt8](repeating: 0, count: 2 * width) + bytes(1, 4))
            + box("edts", box("elst", version + bytes(count ?? UInt64(edits.count), 4) + list))
            + box("mdia", box("mdhd", header(mediaScale, mediaDuration)))
        return box("moov", box("mvhd", header(movieScale, 1000)) + box("trak", track))
    }

    private static func tracks(_ file: [UInt8]) -> [MovieTrack] {
        MovieTrack.all(size: file.count) { offset, count in Array(file.dropFirst(offset).prefix(count)) }
    }

    @Test(arguments: [false, true])
    func `an edit before the beginning of the media ends the list, and is neither a gap nor a later time`(
        _ isLong: Bool
    ) throws {
        let before: UInt64 = isLong ? 0xFFFF_FFFF_FFFF_FFFE : 0xFFFF_FFFE
        let gap: UInt64 = isLong ? .max : 0xFFFF_FFFF
        let file = Self.file(isLong: isLong, edits: [(500, gap, 65_536), (500, before, 65_536), (500, 0, 65_536)])
        let edits = try #require(Self.tracks(file).first).edits
        #expect(edits.map(\.duration) == [500_000] && edits.first?.mediaStart == nil, "\(edits)")
    }

    @Test func `a media time after thirty years ends the list, and is not a gap`() throws {
        let file = Self.file(isLong: true, edits: [(500, 0, 65_536), (500, 1 << 62, 65_536)])
        #expect(try #require(Self.tracks(file).first).edits.map(\.mediaStart) == [0])
    }

    @Test func `extreme numbers give no tracks, or tracks whose times can be added`() {
        let extremes: [UInt64] = [0, 1, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 0x7FFF_FFFF_FFFF_FFFF, 1 << 63, .max]
        for isLong in [false, true] {
            for number in extremes {
                for scale in extremes.prefix(5) {
                    let entries = [(UInt64, UInt64, UInt64)](repeating: (number, number, number), count: 2000)
                    let file = Self.file(
                        isLong: isLong,
                        movieScale: scale,
                        mediaScale: scale,
                        mediaDuration: number,
                        count: number,
                        edits: entries
                    )
                    let tracks = Self.tracks(file)
                    #expect(tracks.isEmpty == (scale == 0))
                    for track in tracks {
                        #expect(track.edits.count <= 1024)
                        #expect((0...1_000_000_000_000_000).contains(track.mediaDuration))
                        #expect(track.edits.reduce(0) { $0 + $1.duration } >= 0)
                        #expect(track.edits.allSatisfy { ($0.mediaStart ?? 0) >= 0 && $0.rate.isFinite })
                    }
                }
            }
        }
    }

    @Test func `deeply nested boxes give no tracks`() {
        var nested: [UInt8] = []
        for _ in 0..<10_000 { nested = Self.box("trak", nested) }
        #expect(Self.tracks(Self.box("moov", nested)).isEmpty)
    }
}
