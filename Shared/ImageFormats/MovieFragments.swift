/// Finds the duration of a fragmented video (ISO/IEC 14496-12, 8.8). Its header does not have the duration, or has that
/// of the samples before the fragments; each fragment has the durations of its samples.
struct MovieFragments {
    private struct Track {
        /// Units in a second.
        let scale: Double
        /// The duration of a sample for which no fragment has one, in units (`default_sample_duration`).
        var defaultDuration = 0.0
        /// The beginning of the first sample and the end of the last one, in units.
        var start: Double?
        var end = 0.0
    }

    private var tracks: [Int: Track] = [:]

    /// The maximum number of tracks, and of bytes that are read in the headers of all fragments together.
    private static let maxTracks = 64
    private static let maxBytes = 64 << 20
    private var bytes = 0

    /// - Parameters:
    ///   - moov: the content of the video's header; its box `mvex` indicates fragments
    ///   - hasSamples: true if samples come before the fragments
    init?(_ moov: ByteReader, hasSamples: Bool) {
        let parts = MovieHeader.boxes(moov)
        guard let extends = parts.first(where: { $0.name == "mvex" })?.content else { return nil }
        for part in parts where part.name == "trak" && tracks.count < Self.maxTracks {
            let inside = MovieHeader.boxes(part.content)
            guard let header = inside.first(where: { $0.name == "tkhd" })?.content,
                let id = header.big32(header.byte(0) == 1 ? 20 : 12),
                let media = inside.first(where: { $0.name == "mdia" })?.content,
                let times = MovieHeader.boxes(media).first(where: { $0.name == "mdhd" })?.content,
                let scale = times.big32(times.byte(0) == 1 ? 20 : 12), scale > 0
            else { continue }
            var track = Track(scale: Double(scale))
            let length = times.byte(0) == 1 ? times.big(24, 8) : times.big32(16)
            if hasSamples, let length { (track.start, track.end) = (0, Double(length)) }
            tracks[id] = track
        }
        for part in MovieHeader.boxes(extends) where part.name == "trex" {
            guard let id = part.content.big32(4), let defaultDuration = part.content.big32(12) else { continue }
            tracks[id]?.defaultDuration = Double(defaultDuration)
        }
    }

    /// Counts the bytes of a fragment's header; returns false if they exceed the limit of all headers together.
    mutating func reserve(_ count: Int) -> Bool {
        guard count <= Self.maxBytes - bytes else { return false }
        bytes += count
        return true
    }

    /// Adds the samples of a fragment.
    ///
    /// - Parameter moof: the content of its header
    mutating func add(_ moof: ByteReader) {
        for part in MovieHeader.boxes(moof) where part.name == "traf" {
            let boxes = MovieHeader.boxes(part.content)
            guard let header = boxes.first(where: { $0.name == "tfhd" })?.content, let flags = header.big32(0),
                let id = header.big32(4), var track = tracks[id]
            else { continue }
            // An offset of eight bytes and an index of four may come first.
            let durationOffset = 8 + (flags & 1 != 0 ? 8 : 0) + (flags & 2 != 0 ? 4 : 0)
            let ownDefault = flags & 8 != 0 ? header.big32(durationOffset) : nil
            let defaultDuration = ownDefault.map { Double($0) } ?? track.defaultDuration
            let time = boxes.first { $0.name == "tfdt" }?.content
            let begin = time.flatMap { $0.byte(0) == 1 ? $0.big(4, 8) : $0.big32(4) }.map { Double($0) } ?? track.end
            let runs = boxes.filter { $0.name == "trun" }
            track.start = track.start ?? begin
            track.end = max(track.end, begin + runs.reduce(0) { $0 + Self.duration($1.content, defaultDuration) })
            tracks[id] = track
        }
    }

    private static func duration(_ run: ByteReader, _ defaultDuration: Double) -> Double {
        guard let flags = run.big32(0), let count = run.big32(4) else { return 0 }
        // Without a duration of their own, all samples have the default.
        guard flags & 0x100 != 0 else { return Double(count) * defaultDuration }
        let size = 4 * [0x100, 0x200, 0x400, 0x800].filter { flags & $0 != 0 }.count
        let start = 8 + (flags & 1 != 0 ? 4 : 0) + (flags & 4 != 0 ? 4 : 0)
        var sum = 0.0
        for index in 0..<count {
            guard let duration = run.big32(start + index * size) else { break }
            sum += Double(duration)
        }
        return sum
    }

    /// The duration of the longest track in microseconds; 0 if there are no fragments.
    var duration: Int64 {
        let seconds = tracks.values.map { ($0.end - ($0.start ?? $0.end)) / $0.scale }.max() ?? 0
        return seconds < 10_000_000 ? Int64(max(0, seconds) * 1_000_000) : 0
    }
}
