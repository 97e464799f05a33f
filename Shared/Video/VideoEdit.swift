/// The changes that an export makes to a video.
public struct VideoEdit {
    /// Changes colours in place. Each is red, green and blue, 16 bits each, in sRGB.
    public typealias Recolouring = (inout [UInt16]) -> Void

    /// The part of the upright frame that the exported frames show, and its orientation.
    public enum Geometry {
        /// A rectangle of whole pixels, to which an EXIF orientation is applied.
        case part(x: Int, y: Int, width: Int, height: Int, orientation: Int)
        /// The points that become the top left, top right, bottom left and bottom right corner, in pixels.
        case corners([(x: Double, y: Double)])
    }

    /// An image that is drawn over each frame: rows of red, green, blue and alpha, a byte each.
    public struct Overlay {
        public var x: Int
        public var y: Int
        public var width: Int
        public var height: Int
        public var pixels: [UInt8]

        public init(x: Int, y: Int, width: Int, height: Int, pixels: [UInt8]) {
            (self.x, self.y, self.width, self.height, self.pixels) = (x, y, width, height, pixels)
        }
    }

    /// The changes of all frames.
    public struct FrameChanges {
        public var geometry: Geometry
        /// The size of the exported frames in pixels. Both numbers are even.
        public var width: Int
        public var height: Int
        public var recolour: Recolouring?
        public var overlay: Overlay?

        public init(geometry: Geometry, width: Int, height: Int) {
            (self.geometry, self.width, self.height) = (geometry, width, height)
        }
    }

    /// The playback speeds, as factors. A product outside of the range is clamped.
    public static let speeds = 0.01...100.0
    /// The volumes, as factors.
    public static let volumes = 0...1000.0

    /// Nil if the frames do not change.
    public var frameChanges: FrameChanges?
    /// The exported part, in microseconds; a nil end is the end of the video.
    public var start: Int64 = 0
    public var end: Int64?
    /// The playback speed, as a factor.
    public var speed = 1.0
    /// The speed of each part of the video, instead of `start`, `end` and `speed`; nil for one speed.
    public var timeMap: VideoTimeMap?
    /// The volume, as a factor; 0 leaves out the audio.
    public var volume = 1.0

    public init() {}

    /// True if the video track cannot be copied.
    var changesFrames: Bool { frameChanges != nil || changesTime }
    private var changesTime: Bool { start > 0 || end != nil || speed != 1 || timeMap != nil }

    /// The audio filters; nil to copy the audio.
    var audioFilters: String? {
        guard volume != 0, volume != 1 || changesTime else { return nil }
        var filters: [String] = []
        if volume != 1 { filters.append("volume=\(volume)") }
        filters.append(
            "aformat=sample_fmts=fltp:sample_rates=48000|44100|32000|24000|22050|16000:channel_layouts=stereo|mono|5.1"
        )
        let last = filters.joined(separator: ",")
        guard let timeMap else {
            let tempo = VideoTimeMap.tempoFilters(speed).dropFirst()
            // atempo does not change the first timestamp, which is not 0 if the audio begins after the video.
            return tempo.isEmpty ? last : "\(tempo),asetpts=PTS-STARTPTS+STARTPTS/\(speed),\(last)"
        }
        return "\(timeMap.audioFilters);[joined]\(last)[out]"
    }

    /// Returns the filters that convert the stored frames to the exported frames of a size.
    func filters(_ info: VideoInfo, _ size: (width: Int, height: Int), _ tone: VideoTone) -> String {
        var text = "[in]"
        let swapsSides = info.orientation >= 5
        let (width, height) =
            swapsSides ? (info.pixelHeight, info.pixelWidth) : (info.pixelWidth, info.pixelHeight)
        let flags = "flags=bicubic+accurate_rnd"
        let matrix = tone.isMapped ? "" : ":\(tone.sameMatrix)"
        // Pixels are made square first, because the geometry is in square pixels. This filter is needed even if the
        // size does not change: only "scale" adapts to the size and format of each frame, which may change within a
        // video. The other filters would read beyond a smaller frame.
        text += "scale=\(width):\(height):\(flags)\(matrix),setsar=1" + VideoFile.orientationFilters(info.orientation)
        var current = (width: info.pixelWidth, height: info.pixelHeight)
        switch frameChanges?.geometry {
        case .part(let x, let y, let width, let height, let orientation):
            if (x, y) != (0, 0) || (width, height) != current {
                text += ",crop=\(width):\(height):\(x):\(y):exact=1"
            }
            text += VideoFile.orientationFilters(orientation)
            current = orientation >= 5 ? (height, width) : (width, height)
        case .corners(let points):
            let names = points.enumerated().map { "x\($0)=\($1.x):y\($0)=\($1.y)" }.joined(separator: ":")
            text += ",perspective=\(names):interpolation=cubic:sense=source"
        case nil: break
        }
        if current != size || tone.isMapped {
            text += ",scale=\(size.width):\(size.height):\(flags)\(matrix)"
            if tone.isMapped { text += "+full_chroma_int+full_chroma_inp:in_color_matrix=\(tone.sourceMatrix)" }
        }
        if let timeMap {
            text += ",setpts='(\(timeMap.expression))/TB',fps=\(VideoTimeMap.playbackRate)"
        } else if speed != 1 {
            text += ",setpts=PTS/\(speed)"
            if speed > 1, info.frameRate > 0 { text += ",fps=\(info.frameRate)" }
        }
        guard tone.isMapped else { return text + ",scale=out_range=tv:\(flags)\(matrix),format=\(tone.format)[out]" }
        return text + ",format=rgb48le[a];[a][table]haldclut=interp=tetrahedral,scale=\(flags):"
            + "out_color_matrix=\(tone.matrix):out_range=tv,format=\(tone.format)[out]"
    }
}
