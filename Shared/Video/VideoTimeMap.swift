/// The playback speed of each part of a video.
public struct VideoTimeMap: Sendable, Hashable {
    /// A part of the video with one playback speed.
    public struct Part: Sendable, Hashable {
        /// Microseconds of the video.
        public var start: Int64
        public var duration: Int64
        /// The playback speed, as a factor.
        public var rate: Double

        public init(start: Int64, duration: Int64, rate: Double) {
            self.start = start
            self.duration = duration
            self.rate = rate
        }

        /// The time that its playback takes, in microseconds.
        public var playbackDuration: Int64 { Int64((Double(duration) / rate).rounded()) }
    }

    /// The parts in order, without gaps.
    public var parts: [Part]

    public init(parts: [Part]) { self.parts = parts }

    /// The frame rate from which a video counts as slow motion, and the frame rate at which it is played.
    public static let minSlowMotionRate = 100.0
    public static let playbackRate = 30.0
    /// The maximum duration of a slow-motion video, in microseconds: a day.
    private static let maxDuration: Int64 = 86_400_000_000

    /// Creates the default map of a slow-motion video: the first and the last fifth are played at the recorded speed,
    /// the part between them at 30 frames per second. Nil for other videos, and for those that request playback at the
    /// full frame rate.
    public init?(slowMotion info: VideoInfo) {
        let intent = info.tags["com.apple.quicktime.full-frame-rate-playback-intent"]
        guard (Self.minSlowMotionRate...10_000).contains(info.frameRate),
            (5...Self.maxDuration).contains(info.duration), intent != "1"
        else { return nil }
        let edge = info.duration / 5
        parts = [
            Part(start: 0, duration: edge, rate: 1),
            Part(start: edge, duration: info.duration - 2 * edge, rate: Self.playbackRate / info.frameRate),
            Part(start: info.duration - edge, duration: edge, rate: 1),
        ]
    }

    /// The expression of libavfilter that maps seconds of the video (T) to seconds of playback.
    var expression: String {
        var text = ""
        var played = 0.0
        for (index, part) in parts.enumerated() {
            let (start, length) = (Double(part.start) / 1e6, Double(part.duration) / 1e6)
            let mapped = "\(played)+(T-\(start))/\(part.rate)"
            text += index == parts.count - 1 ? mapped : "if(lt(T,\(start + length)),\(mapped),"
            played += length / part.rate
        }
        return text + String(repeating: ")", count: max(0, parts.count - 1))
    }

    /// The filters that apply the map to audio, from "in" to "joined".
    var audioFilters: String {
        let names = parts.indices.map { "[s\($0)]" }.joined()
        // Parts are concatenated, so parts without audio are filled with silence.
        var text = "[in]aresample=async=1:first_pts=0,asplit=\(parts.count)\(names);"
        for (index, part) in parts.enumerated() {
            let (start, end) = (Double(part.start) / 1e6, Double(part.start + part.duration) / 1e6)
            // The last part extends to the end.
            let until = index == parts.count - 1 ? "" : ":end=\(end)"
            text += "[s\(index)]atrim=start=\(start)\(until),asetpts=PTS-STARTPTS"
            text += "\(Self.tempoFilters(part.rate))[t\(index)];"
        }
        let ends = parts.indices.map { "[t\($0)]" }.joined()
        return text + "\(ends)concat=n=\(parts.count):v=0:a=1[joined]"
    }

    /// Returns the filters that change the speed of audio but not its pitch, each after a comma. One filter can reduce
    /// the speed to a half.
    static func tempoFilters(_ rate: Double) -> String {
        var (text, rest) = ("", rate)
        while rest < 0.5 {
            text += ",atempo=0.5"
            rest /= 0.5
        }
        return rest == 1 ? text : text + ",atempo=\(rest)"
    }
}
