/// The changes of a video in an export.
public struct VideoEdit {
    /// Changes colours in place: red, green and blue of 16 bits in sRGB, one after the other.
    public typealias Recolouring = (inout [UInt16]) -> Void

    /// The part of the upright frame that is shown.
    public enum Geometry {
        /// Whole pixels, turned by an EXIF orientation.
        case part(x: Int, y: Int, width: Int, height: Int, orientation: Int)
        /// The points that become the top left, top right, bottom left and bottom right corner, in pixels.
        case corners([(x: Double, y: Double)])
    }

    /// A picture over each frame: rows of red, green, blue and opacity, a byte each.
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

    /// The changes of each frame.
    public struct Picture {
        public var geometry: Geometry
        /// Pixels of the result, both even.
        public var width: Int
        public var height: Int
        public var recolour: Recolouring?
        public var overlay: Overlay?

        public init(geometry: Geometry, width: Int, height: Int) {
            (self.geometry, self.width, self.height) = (geometry, width, height)
        }
    }

    /// The speeds at which videos are shown, as factors. A product beyond them becomes the nearest.
    public static let speeds = 0.01...100.0
    /// Times as loud.
    public static let volumes = 0...1000.0

    /// Nil if the frames stay as they are.
    public var picture: Picture?
    /// The part that is kept, in microseconds; a nil end is that of the video.
    public var start: Int64 = 0
    public var end: Int64?
    /// Times as fast.
    public var speed = 1.0
    /// The speed of the video's parts, instead of `start`, `end` and `speed`; nil for the same everywhere.
    public var timeMap: VideoTimeMap?
    /// Times as loud; 0 leaves the sound out.
    public var volume = 1.0

    public init() {}

    /// True if the video track cannot be copied.
    var changesFrames: Bool { picture != nil || changesTime }
    private var changesTime: Bool { start > 0 || end != nil || speed != 1 || timeMap != nil }

    /// The filters of the sound; nil to copy it.
    var soundFilters: String? {
        guard volume != 0, volume != 1 || changesTime else { return nil }
        var filters: [String] = []
        if volume != 1 { filters.append("volume=\(volume)") }
        filters.append(
            "aformat=sample_fmts=fltp:sample_rates=48000|44100|32000|24000|22050|16000:channel_layouts=stereo|mono|5.1"
        )
        let last = filters.joined(separator: ",")
        guard let timeMap else {
            let tempo = VideoTimeMap.tempo(speed).dropFirst()
            // The filter of the tempo does not change the first time stamp, also of sound that begins after the
            // picture.
            return tempo.isEmpty ? last : "\(tempo),asetpts=PTS-STARTPTS+STARTPTS/\(speed),\(last)"
        }
        return "\(timeMap.soundFilters);[joined]\(last)[out]"
    }

    /// Returns the filters that turn the stored frames into frames of the size.
    func filters(_ info: VideoInfo, _ size: (width: Int, height: Int), _ tone: VideoTone) -> String {
        var text = "[in]"
        let isTurned = info.orientation >= 5
        let (width, height) =
            isTurned ? (info.pixelHeight, info.pixelWidth) : (info.pixelWidth, info.pixelHeight)
        let flags = "flags=bicubic+accurate_rnd"
        let matrix = tone.isMapped ? "" : ":\(tone.sameMatrix)"
        // Pixels are made square first, because the geometry counts such pixels. This filter is needed also if the size
        // stays: it alone adapts to the size and format of each frame, which may change in a video. The others would
        // read beyond a smaller frame.
        text += "scale=\(width):\(height):\(flags)\(matrix),setsar=1" + VideoFile.turn(info.orientation)
        var shown = (width: info.pixelWidth, height: info.pixelHeight)
        switch picture?.geometry {
        case .part(let x, let y, let across, let down, let orientation):
            if (x, y) != (0, 0) || (across, down) != shown {
                text += ",crop=\(across):\(down):\(x):\(y):exact=1"
            }
            text += VideoFile.turn(orientation)
            shown = orientation >= 5 ? (down, across) : (across, down)
        case .corners(let points):
            let names = points.enumerated().map { "x\($0)=\($1.x):y\($0)=\($1.y)" }.joined(separator: ":")
            text += ",perspective=\(names):interpolation=cubic:sense=source"
        case nil: break
        }
        if shown != size || tone.isMapped {
            text += ",scale=\(size.width):\(size.height):\(flags)\(matrix)"
            if tone.isMapped { text += "+full_chroma_int+full_chroma_inp:in_color_matrix=\(tone.sourceMatrix)" }
        }
        if let timeMap {
            text += ",setpts='(\(timeMap.expression))/TB',fps=\(VideoTimeMap.shownRate)"
        } else if speed != 1 {
            text += ",setpts=PTS/\(speed)"
            if speed > 1, info.frameRate > 0 { text += ",fps=\(info.frameRate)" }
        }
        guard tone.isMapped else { return text + ",scale=out_range=tv:\(flags)\(matrix),format=\(tone.format)[out]" }
        return text + ",format=rgb48le[a];[a][table]haldclut=interp=tetrahedral,scale=\(flags):"
            + "out_color_matrix=\(tone.matrix):out_range=tv,format=\(tone.format)[out]"
    }
}
