/// The properties of a video, as its container and its codecs declare them.
public struct VideoInfo: Sendable, Hashable {
    /// The kind of a track.
    public enum TrackKind: String, Sendable, Hashable, CaseIterable {
        case video, audio, text, other
    }

    /// A track of the file.
    public struct Track: Sendable, Hashable {
        /// The identifier in the container.
        public var id: Int
        public var kind: TrackKind
        /// FFmpeg's name, for example "h264" or "aac".
        public var codec: String
        /// The profile of the codec, for example "High"; nil if unknown.
        public var profile: String?
        /// The codec's FourCC in the container; nil if it has none.
        public var tag: String?
        /// True for a still image, such as a cover.
        public var isPicture: Bool
        /// Bits per second; 0 if unknown.
        public var bitRate: Int64
        /// Microseconds.
        public var start: Int64
        public var duration: Int64
        /// Pixels as stored; 0 if not video.
        public var pixelWidth: Int
        public var pixelHeight: Int
        /// Bits per sample; 0 if unknown.
        public var bitDepth: Int
        /// Samples per second; 0 if not audio.
        public var sampleRate: Int
        public var channels: Int
        /// Frames per second; 0 if unknown.
        public var frameRate: Double
        /// The number of frames or packets in the container's index; 0 if unknown.
        public var frameCount: Int64
        /// ISO 639 code; nil if unknown.
        public var language: String?
    }

    /// The uniform type identifier of the container.
    public var contentType: String
    /// The media type of the container.
    public var mimeType: String
    /// Microseconds.
    public var duration: Int64
    /// Pixels as displayed: with the sample aspect ratio, upright.
    public var pixelWidth: Int
    public var pixelHeight: Int
    /// Degrees clockwise by which the stored frames are rotated to be upright.
    public var rotation: Double
    /// The EXIF orientation 1...8 of the stored frames.
    public var orientation: Int
    /// Frames per second; 0 if unknown.
    public var frameRate: Double
    /// FFmpeg's names of primaries, transfer function, matrix and range; "unknown" if the file does not declare them.
    public var primaries: String
    public var transfer: String
    public var matrix: String
    public var range: String
    /// True for high dynamic range: the transfer function is PQ or HLG.
    public var isHDR: Bool
    /// The profile of Dolby Vision; 0 if the file has none.
    public var dolbyVision: Int
    /// The index of the displayed video track.
    public var shownTrack: Int
    public var tracks: [Track]
    /// The tags of the container and of the displayed video track, with lower-case names.
    public var tags: [String: String]
}
