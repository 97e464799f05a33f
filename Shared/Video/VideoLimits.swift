import CVideo

/// Limits on untrusted videos.
public struct VideoLimits: Sendable, Hashable {
    /// The maximum length of a side in pixels.
    public var side = 16_384
    /// The maximum number of pixels of a frame; by default 40 million, which is more than 8K.
    public var pixels = 40_000_000
    /// The maximum number of tracks of a file.
    public var tracks = 64
    /// The maximum number of packets that are read to find one frame.
    public var packets = 200_000
    /// The maximum number of bytes that are read to find one frame.
    public var bytes = 2 << 30
    /// The time limit for opening a file, and for finding each frame, in seconds.
    public var seconds = 20.0
    /// The time limit from opening a file to the last read, in seconds.
    public var totalSeconds = 60.0

    public init() {}

    var cLimits: safelight_video_limits {
        safelight_video_limits(
            side: Int32(clamping: side),
            pixels: Int64(pixels),
            streams: Int32(clamping: tracks),
            packets: Int64(packets),
            bytes: Int64(bytes),
            seconds: seconds,
            total_seconds: totalSeconds
        )
    }
}
