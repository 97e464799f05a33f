import CVideo

/// Limits on untrusted videos.
public struct VideoLimits: Sendable, Hashable {
    /// The longest side in pixels.
    public var side = 16_384
    /// The most pixels of a frame. Default 40 million, which is more than 8K.
    public var pixels = 40_000_000
    /// The most tracks of a file.
    public var tracks = 64
    /// The most packets read to find one frame.
    public var packets = 200_000
    /// The most bytes read to find one frame.
    public var bytes = 2 << 30
    /// The most seconds spent on opening a file, and on finding each frame.
    public var seconds = 20.0
    /// The time limit from opening a file to the last read, in seconds.
    public var totalSeconds = 60.0

    public init() {}

    var system: safelight_video_limits {
        safelight_video_limits(
            side: Int32(clamping: side),
            pixels: Int64(pixels),
            streams: Int32(clamping: tracks),
            packets: Int64(packets),
            bytes: Int64(bytes),
            seconds: seconds,
            total: totalSeconds
        )
    }
}
