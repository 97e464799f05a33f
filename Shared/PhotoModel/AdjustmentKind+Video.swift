// The definitions of the operations on the time and the sound of videos.

extension AdjustmentKind {
    /// The maximum duration of a video in seconds; an end at or after the end of the video is that of the video.
    public static let maxVideoDuration = 86_400.0

    var declaredVideo: Declared {
        switch self {
        case .timeRange:
            (
                "Keeps the part of a video from start to end; times are those of the video as imported.",
                [
                    Self.slider(0...Self.maxVideoDuration, "seconds", name: "start"),
                    Self.slider(
                        0...Self.maxVideoDuration,
                        "seconds",
                        name: "end",
                        default: Self.maxVideoDuration,
                        neutral: Self.maxVideoDuration
                    ),
                ]
            )
        case .speed:
            (
                "Plays a video faster (above 1) or slower; the pitch of the sound stays.",
                [Self.slider(0.1...16, "times", default: 1, neutral: 1)]
            )
        default:
            (
                "Multiplies the sound of a video; 0 removes its sound track.",
                [Self.slider(0...4, "times", default: 1, neutral: 1)]
            )
        }
    }
}
