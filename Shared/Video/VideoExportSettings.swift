/// The settings of an export.
public struct VideoExportSettings: Sendable, Hashable {
    /// The box into which wide frames must fit; it is turned for upright ones. Nil for the size that they have.
    public struct Box: Sendable, Hashable {
        public let width: Int
        public let height: Int

        public init(_ width: Int, _ height: Int) { (self.width, self.height) = (width, height) }
    }

    public var box: Box?
    /// True to copy the tracks as they are.
    public var isCopied = false
    public var isHEVC = false
    /// True for a QuickTime file instead of MPEG-4.
    public var isQuickTime = false
    /// The encoder's constant rate factor: lower is better and larger.
    public var quality = 21
    /// The encoder's preset, a compromise between time and size.
    public var speed = "veryfast"
    /// The time limit of the work, in seconds.
    public var seconds = 3600.0
    /// The most bytes of the file.
    public var maxBytes: Int64 = 4 << 30
    public var threads = 1

    public init() {}

    /// Returns the size of the frames as shown: even, and not larger than those of the video.
    func size(of info: VideoInfo) -> (width: Int, height: Int) {
        var (width, height) = (Double(info.pixelWidth), Double(info.pixelHeight))
        if let box {
            let (across, up) = height > width ? (box.height, box.width) : (box.width, box.height)
            let scale = min(1, Double(across) / width, Double(up) / height)
            (width, height) = (width * scale, height * scale)
        }
        func even(_ side: Double, atMost most: Int) -> Int { max(2, min(Int((side / 2).rounded()) * 2, most & ~1)) }
        return (even(width, atMost: info.pixelWidth), even(height, atMost: info.pixelHeight))
    }
}

/// The result of an export.
public struct VideoExportResult: Sendable, Hashable {
    public let size: Int64
    /// Pixels as shown.
    public let pixelWidth: Int
    public let pixelHeight: Int
}
