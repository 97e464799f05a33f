/// A track of a QuickTime or MPEG-4 file, with its edit list, which players follow.
public struct MovieTrack: Sendable, Hashable {
    /// An entry of the edit list.
    public struct Edit: Sendable, Hashable {
        /// Microseconds of the presentation.
        public var duration: Int64
        /// The microseconds of the track's media at which it begins; nil for a gap.
        public var mediaStart: Int64?
        /// The speed of the media: 1 is the normal one, and 0 holds one frame.
        public var rate: Double
    }

    /// The identifier in the file, from 1.
    public var id: Int
    /// Four characters: `vide`, `soun`, `meta`, …
    public var handler: String
    public var isEnabled: Bool
    /// Units of the media in a second.
    public var timeScale: Int
    /// Microseconds of the media.
    public var mediaDuration: Int64
    /// Empty without an edit list: all of the media is shown. Ends before the first entry that is damaged.
    public var edits: [Edit]
    /// True for the track with the time of a Live Photo's still.
    public var hasStillTime: Bool

    /// The maximum number of tracks that are read, and of entries of an edit list.
    private static let maxTracks = 64
    private static let maxEdits = 1024

    /// Finds and parses the tracks of a file; empty for other containers, damaged files, and ones in fragments.
    ///
    /// - Parameter read: returns the bytes of a range; fewer at the end of the file
    public static func all(size: Int, read: (_ offset: Int, _ count: Int) -> [UInt8]) -> [MovieTrack] {
        var offset = 0
        for _ in 0..<4096 where offset < size {
            let head = ByteReader(read(offset, 16))
            guard var length = head.big32(0), let name = head.text(4, 4) else { return [] }
            let start = length == 1 ? 16 : 8
            if length == 1 { length = head.big(8, 8) ?? 0 } else if length == 0 { length = size - offset }
            guard length >= start, length <= size - offset else { return [] }
            if name == "moov" {
                guard length <= MovieHeader.maxIndexBytes else { return [] }
                return tracks(ByteReader(read(offset + start, length - start)))
            }
            offset += length
        }
        return []
    }

    /// Returns the microseconds of the video at which a Live Photo's still was taken, by Apple's track for it; nil
    /// without one.
    public static func stillTime(_ tracks: [MovieTrack]) -> Int64? {
        guard let track = tracks.first(where: \.hasStillTime) else { return nil }
        var time: Int64 = 0
        for edit in track.edits {
            guard edit.mediaStart == nil else { return time }
            time += edit.duration
        }
        return track.edits.isEmpty ? 0 : nil
    }

    private static func tracks(_ moov: ByteReader) -> [MovieTrack] {
        let parts = MovieHeader.boxes(moov)
        let header = parts.first { $0.name == "mvhd" }?.content
        guard let scale = header.flatMap({ $0.big32($0.byte(0) == 1 ? 20 : 12) }), scale > 0 else { return [] }
        return parts.filter { $0.name == "trak" }.prefix(maxTracks).compactMap { track($0.content, scale) }
    }

    private static func track(_ box: ByteReader, _ movieScale: Int) -> MovieTrack? {
        let parts = MovieHeader.boxes(box)
        guard let header = parts.first(where: { $0.name == "tkhd" })?.content, let flags = header.big32(0),
            let id = header.big32(header.byte(0) == 1 ? 20 : 12),
            let media = parts.first(where: { $0.name == "mdia" })?.content
        else { return nil }
        let inside = MovieHeader.boxes(media)
        guard let times = inside.first(where: { $0.name == "mdhd" })?.content,
            let scale = times.big32(times.byte(0) == 1 ? 20 : 12), scale > 0
        else { return nil }
        let length = times.byte(0) == 1 ? times.big(24, 8) : times.big32(16)
        let list = parts.first { $0.name == "edts" }.flatMap { edts in
            MovieHeader.boxes(edts.content).first { $0.name == "elst" }?.content
        }
        let handler = inside.first { $0.name == "hdlr" }?.content.text(8, 4) ?? ""
        return MovieTrack(
            id: id,
            handler: handler,
            isEnabled: flags & 1 == 1,
            timeScale: scale,
            mediaDuration: microseconds(length ?? 0, scale) ?? 0,
            edits: list.map { edits($0, movieScale, scale) } ?? [],
            hasStillTime: handler == "meta" && describesStill(inside)
        )
    }

    private static func edits(_ list: ByteReader, _ movieScale: Int, _ mediaScale: Int) -> [Edit] {
        let isLong = list.byte(0) == 1
        let width = isLong ? 8 : 4
        var edits: [Edit] = []
        for index in 0..<min(maxEdits, list.big32(4) ?? 0) {
            let at = 8 + index * (2 * width + 4)
            guard let raw = list.slice(at + width, width), let rate = list.big32(at + 2 * width),
                let duration = list.big(at, width).flatMap({ microseconds($0, movieScale) })
            else { break }
            let speed = Double(Int32(truncatingIfNeeded: rate)) / 65_536
            // A time of -1, all bits set, is a gap. Other negative times and those after 30 years are damage: as a gap
            // or a late time, they would move what follows.
            if raw.allSatisfy({ $0 == 0xFF }) {
                edits.append(Edit(duration: duration, mediaStart: nil, rate: speed))
                continue
            }
            guard raw.first.map({ $0 < 0x80 }) == true,
                let start = list.big(at + width, width).flatMap({ microseconds($0, mediaScale) })
            else { break }
            edits.append(Edit(duration: duration, mediaStart: start, rate: speed))
        }
        return edits
    }

    /// Returns true if the sample description names Apple's key for the time of the still.
    private static func describesStill(_ media: [MovieHeader.Box]) -> Bool {
        guard let information = media.first(where: { $0.name == "minf" })?.content,
            let table = MovieHeader.boxes(information).first(where: { $0.name == "stbl" })?.content,
            let samples = MovieHeader.boxes(table).first(where: { $0.name == "stsd" })?.content,
            samples.count < 65_536
        else { return false }
        return String(decoding: samples.bytes, as: UTF8.self).contains("com.apple.quicktime.still-image-time")
    }

    /// Returns a time in microseconds; nil above 30 years, so that sums of times do not overflow.
    private static func microseconds(_ value: Int, _ scale: Int) -> Int64? {
        let seconds = Double(value) / Double(scale)
        return seconds < 1e9 ? Int64((seconds * 1e6).rounded()) : nil
    }
}
