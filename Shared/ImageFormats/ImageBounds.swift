/// The limits of images that are opened. An image beyond them is stored, but it is not shown.
public enum ImageBounds {
    /// The maximum number of pixels of a JPEG, which can be decoded at a fraction of its size.
    public static let jpegPixels = 250_000_000
    /// The maximum number of pixels of any other format.
    public static let pixels = 100_000_000
    /// The maximum side in pixels, which is also the limit of JPEG.
    public static let side = 65_500
    /// The maximum number of frames of an animation.
    public static let frames = 1000

    /// Returns the reason why an image is not shown; nil if it is within the bounds.
    public static func problem(_ kind: ImageFormat, width: Int, height: Int, frames: Int = 1) -> String? {
        let limit = kind == .jpeg ? jpegPixels : pixels
        let (count, overflowed) = width.multipliedReportingOverflow(by: height)
        let reason: String? =
            if width > side || height > side {
                "\(width) by \(height) pixels, at most \(side) a side are opened"
            } else if overflowed || count > limit {
                "\(width) by \(height) pixels, at most \(limit / 1_000_000) megapixels of \(kind.rawValue) are opened"
            } else if frames > Self.frames {
                "\(frames) frames, at most \(Self.frames) are opened"
            } else {
                nil
            }
        return reason.map { "too large to be shown: " + $0 }
    }
}
