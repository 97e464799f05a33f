/// The settings of an export.
public struct VideoExportSettings: Sendable, Hashable {
    /// The box into which landscape frames must fit. For portrait frames its sides are swapped.
    public struct Box: Sendable, Hashable {
        public let width: Int
        public let height: Int

        public init(_ width: Int, _ height: Int) { (self.width, self.height) = (width, height) }
    }

    /// Nil to keep the size of the frames.
    public var box: Box?
    /// True to copy the tracks without encoding them again.
    public var isCopied = false
    public var isHEVC = false
    /// True for QuickTime, false for MPEG-4.
    public var isQuickTime = false
    /// The encoder's constant rate factor. A lower value means better quality and a larger file.
    public var quality = 21
    /// The encoder's preset, a compromise between time and size.
    public var encoderPreset = "veryfast"
    /// The time limit of the export, in seconds.
    public var seconds = 3600.0
    /// The maximum size of the file in bytes.
    public var maxBytes: Int64 = 4 << 30
    public var threads = 1

    public init() {}

    /// Returns the size of the upright exported frames: even, and not larger than those of the video.
    func size(of info: VideoInfo) -> (width: Int, height: Int) {
        var (width, height) = (Double(info.pixelWidth), Double(info.pixelHeight))
        if let box {
            let (boxWidth, boxHeight) = height > width ? (box.height, box.width) : (box.width, box.height)
            let scale = min(1, Double(boxWidth) / width, Double(boxHeight) / height)
            (width, height) = (width * scale, height * scale)
        }
        func even(_ side: Double, atMost limit: Int) -> Int { max(2, min(Int((side / 2).rounded()) * 2, limit & ~1)) }
        return (even(width, atMost: info.pixelWidth), even(height, atMost: info.pixelHeight))
    }
}

/// The result of an export.
public struct VideoExportResult: Sendable, Hashable {
    /// Bytes.
    public let size: Int64
    /// Pixels of the upright frames.
    public let pixelWidth: Int
    public let pixelHeight: Int
}
