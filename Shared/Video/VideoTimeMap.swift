/// The speed at which the parts of a video are shown.
public struct VideoTimeMap: Sendable, Hashable {
    /// A part of the video, shown as fast as its rate.
    public struct Part: Sendable, Hashable {
        /// Microseconds of the video.
        public var start: Int64
        public var duration: Int64
        /// Times as fast.
        public var rate: Double

        public init(start: Int64, duration: Int64, rate: Double) {
            self.start = start
            self.duration = duration
            self.rate = rate
        }

        /// The microseconds that it is shown.
        public var shown: Int64 { Int64((Double(duration) / rate).rounded()) }
    }

    /// One after the other, without gaps.
    public var parts: [Part]

    public init(parts: [Part]) { self.parts = parts }

    /// The frame rate from which a video is slow motion, and the one at which it is shown.
    public static let slowMotion = 100.0
    public static let shownRate = 30.0
    /// The longest video in slow motion, in microseconds: a day.
    private static let longest: Int64 = 86_400_000_000

    /// Creates the default map of a video in slow motion: the first and the last fifth as fast as they were recorded,
    /// and the part between them at 30 frames per second. Nil for other videos, and for those that declare to be shown
    /// at their full rate.
    public init?(slowMotion info: VideoInfo) {
        let intent = info.tags["com.apple.quicktime.full-frame-rate-playback-intent"]
        guard (Self.slowMotion...10_000).contains(info.frameRate), (5...Self.longest).contains(info.duration),
            intent != "1"
        else { return nil }
        let edge = info.duration / 5
        parts = [
            Part(start: 0, duration: edge, rate: 1),
            Part(start: edge, duration: info.duration - 2 * edge, rate: Self.shownRate / info.frameRate),
            Part(start: info.duration - edge, duration: edge, rate: 1),
        ]
    }

    /// The expression of libavfilter that maps seconds of the video (T) to seconds that are shown.
    var expression: String {
        var text = ""
        var shown = 0.0
        for (index, part) in parts.enumerated() {
            let (start, length) = (Double(part.start) / 1e6, Double(part.duration) / 1e6)
            let mapped = "\(shown)+(T-\(start))/\(part.rate)"
            text += index == parts.count - 1 ? mapped : "if(lt(T,\(start + length)),\(mapped),"
            shown += length / part.rate
        }
        return text + String(repeating: ")", count: max(0, parts.count - 1))
    }

    /// The filters that do the same with sound, from "in" to "joined".
    var soundFilters: String {
        let names = parts.indices.map { "[s\($0)]" }.joined()
        // Parts are joined end to end, so parts without sound are filled with silence.
        var text = "[in]aresample=async=1:first_pts=0,asplit=\(parts.count)\(names);"
        for (index, part) in parts.enumerated() {
            let (start, end) = (Double(part.start) / 1e6, Double(part.start + part.duration) / 1e6)
            // The last part extends to the end.
            let until = index == parts.count - 1 ? "" : ":end=\(end)"
            text += "[s\(index)]atrim=start=\(start)\(until),asetpts=PTS-STARTPTS\(Self.tempo(part.rate))[t\(index)];"
        }
        let ends = parts.indices.map { "[t\($0)]" }.joined()
        return text + "\(ends)concat=n=\(parts.count):v=0:a=1[joined]"
    }

    /// The filters that change the speed of sound but not its pitch, each behind a comma. One filter does at least half
    /// the speed.
    static func tempo(_ rate: Double) -> String {
        var (text, rest) = ("", rate)
        while rest < 0.5 {
            text += ",atempo=0.5"
            rest /= 0.5
        }
        return rest == 1 ? text : text + ",atempo=\(rest)"
    }
}
