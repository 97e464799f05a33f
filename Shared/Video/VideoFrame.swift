import CVideo

/// The position of a frame in a video.
public enum FramePosition: Sendable, Hashable {
    /// The first frame within ``automaticRange`` that is not almost a single colour, or the one with the highest
    /// contrast if each of them is.
    case automatic
    /// The first frame at or after a time in microseconds; the last one if there is none. A key frame up to `tolerance`
    /// microseconds before the time is used instead, because it takes less time to decode.
    case at(Int64, tolerance: Int64)

    /// Microseconds from the start of the video.
    public static let automaticRange: Int64 = 3_000_000
}

/// A decoded frame in sRGB, not rotated.
public struct VideoFrame: ~Copyable {
    private let pixels: UnsafeMutablePointer<UInt8>
    public let width: Int
    public let height: Int
    /// Microseconds from the start of the video.
    public let time: Int64

    init(_ frame: safelight_video_frame, width: Int, height: Int) {
        pixels = frame.pixels
        self.width = width
        self.height = height
        time = max(0, frame.time)
    }

    deinit { safelight_video_free(pixels) }

    /// Calls `body` with the pixels: rows of red, green and blue, a byte each.
    public borrowing func withPixels<Value, Failure: Error>(
        _ body: (UnsafeRawPointer) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        try body(UnsafeRawPointer(pixels))
    }
}
