import CVideo
import Glibc
public import ImageFormats

/// A video file that is opened for reading through a descriptor.
///
/// For worker processes only: the bytes are untrusted. Only the descriptor is read, and only the containers and codecs
/// on the lists of this module and of `CVideo` are accepted.
public struct VideoFile: ~Copyable {
    let pointer: OpaquePointer
    private let limits: VideoLimits
    public let type: VideoFileType
    /// Pixels as stored, with the sample aspect ratio.
    public let storedWidth: Int
    public let storedHeight: Int

    /// Opens a video.
    ///
    /// - Parameters:
    ///   - descriptor: must stay open as long as this value is used
    ///   - range: the bytes of the video in the file
    ///   - isThorough: true to examine frames until the properties of all tracks are known; false if only frames of the
    ///     video track are decoded
    public init(
        descriptor: Int32,
        range: Range<Int64>,
        limits: VideoLimits = VideoLimits(),
        isThorough: Bool = false
    ) throws(VideoError) {
        let head = Self.head(descriptor, range)
        guard let type = VideoFileType.sniff(head) else {
            throw .unsupportedFormat(
                found: ImageFormat.describe(head),
                supported: VideoFileType.supportedNames
            )
        }
        var cLimits = limits.cLimits
        var status = SAFELIGHT_VIDEO_OK
        guard
            let pointer = safelight_video_open(
                descriptor,
                range.lowerBound,
                range.upperBound - range.lowerBound,
                Self.demuxer(type.structure),
                &cLimits,
                isThorough ? 1 : 0,
                &status
            )
        else { throw Self.error(status, limits, codec: nil) }
        self.pointer = pointer
        self.type = type
        self.limits = limits
        let info = safelight_video_get_info(pointer).pointee
        storedWidth = Int(info.display_width)
        storedHeight = Int(info.display_height)
    }

    deinit { safelight_video_close(pointer) }

    private static func head(_ descriptor: Int32, _ range: Range<Int64>) -> [UInt8] {
        let count = min(VideoFileType.sniffedBytes, Int(range.upperBound - range.lowerBound))
        return [UInt8](unsafeUninitializedCapacity: max(0, count)) { buffer, used in
            used = max(0, pread(descriptor, buffer.baseAddress, max(0, count), off_t(range.lowerBound)))
        }
    }

    private static func demuxer(_ structure: VideoFileType.Structure) -> String {
        switch structure {
        case .isoMedia: "mov"
        case .matroska: "matroska"
        case .avi: "avi"
        case .transportStream: "mpegts"
        case .programStream: "mpeg"
        }
    }

    private static func error(
        _ status: safelight_video_status,
        _ limits: VideoLimits,
        codec: String?
    ) -> VideoError {
        switch status {
        case SAFELIGHT_VIDEO_NO_VIDEO_TRACK: .noVideo
        case SAFELIGHT_VIDEO_CODEC: .unsupportedCodec(codec)
        case SAFELIGHT_VIDEO_TOO_LARGE: .tooLarge(limit: limits.pixels)
        case SAFELIGHT_VIDEO_TOO_MUCH_WORK: .tooMuchWork
        case SAFELIGHT_VIDEO_NO_FRAME: .noFrame
        case SAFELIGHT_VIDEO_EMPTY_PART: .emptyPart
        case SAFELIGHT_VIDEO_NO_MEMORY: .outOfMemory
        case SAFELIGHT_VIDEO_NO_ENCODER: .notEncoded
        case SAFELIGHT_VIDEO_STOPPED: .stopped
        case SAFELIGHT_VIDEO_NO_LIBRARY: .librariesMissing
        default: .unreadable
        }
    }

    /// The versions of FFmpeg's libraries, that of libavformat first; "not installed" without them.
    public static var versions: String { String(cString: safelight_video_versions()) }

    // MARK: Properties

    /// The EXIF orientation 1...8 of the stored frames.
    public var orientation: Int { Int(safelight_video_get_info(pointer).pointee.orientation) }

    public var info: VideoInfo {
        let info = safelight_video_get_info(pointer).pointee
        let swapsSides = info.orientation >= 5
        // A loop, because a method of a noncopyable type cannot be passed as a function.
        var tracks: [VideoInfo.Track] = []
        for index in 0..<info.track_count { tracks.append(track(index)) }
        return VideoInfo(
            contentType: type.contentType,
            mimeType: type.mimeType,
            duration: max(0, info.duration),
            pixelWidth: swapsSides ? storedHeight : storedWidth,
            pixelHeight: swapsSides ? storedWidth : storedHeight,
            rotation: info.rotation,
            orientation: Int(info.orientation),
            frameRate: info.frame_rate,
            primaries: Self.text(info.primaries) ?? "unknown",
            transfer: Self.text(info.transfer) ?? "unknown",
            matrix: Self.text(info.matrix) ?? "unknown",
            range: Self.text(info.range) ?? "unknown",
            isHDR: info.is_hdr != 0,
            dolbyVision: Int(info.dolby_vision),
            shownTrack: Int(info.track),
            tracks: tracks,
            tags: tags(info.track).merging(tags(-1)) { $1 }
        )
    }

    private func track(_ index: Int32) -> VideoInfo.Track {
        var track = safelight_video_track()
        safelight_video_get_track(pointer, index, &track)
        let tag = withUnsafeBytes(of: track.tag) { bytes in
            String(validating: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        return VideoInfo.Track(
            id: Int(track.id),
            kind: [.video, .audio, .text, .other][Int(min(3, max(0, track.kind)))],
            codec: Self.text(track.codec) ?? "unknown",
            profile: Self.text(track.profile),
            tag: tag.flatMap { $0.isEmpty ? nil : $0 },
            isPicture: track.is_picture != 0,
            bitRate: max(0, track.bit_rate),
            start: track.start,
            duration: max(0, track.duration),
            pixelWidth: Int(max(0, track.width)),
            pixelHeight: Int(max(0, track.height)),
            bitDepth: Int(max(0, track.bits)),
            sampleRate: Int(max(0, track.sample_rate)),
            channels: Int(max(0, track.channels)),
            frameRate: track.frame_rate,
            frameCount: max(0, track.frames),
            language: Self.text(track.language)
        )
    }

    /// The index of the audio track that players choose; nil if there is none.
    public var audioTrack: Int? {
        let index = safelight_video_audio_track(pointer)
        return index < 0 ? nil : Int(index)
    }

    /// The maximum number of tags that are read, and the maximum size of a text in bytes.
    private static let maxTags: Int32 = 256
    private static let maxTextBytes = 4096

    private func tags(_ track: Int32) -> [String: String] {
        var tags: [String: String] = [:]
        for index in 0..<Self.maxTags {
            var value: UnsafePointer<CChar>?
            guard let key = safelight_video_tag(pointer, track, index, &value) else { break }
            guard let name = Self.text(key), let text = Self.text(value) else { continue }
            tags[name.lowercased()] = text
        }
        return tags
    }

    private static func text(_ pointer: UnsafePointer<CChar>?) -> String? {
        guard let pointer, strnlen(pointer, maxTextBytes + 1) <= maxTextBytes else { return nil }
        return String(validatingCString: pointer)
    }

    /// The maximum luminance that the file declares, in cd/m²; 0 if it declares none.
    var peak: Double { safelight_video_get_info(pointer).pointee.peak }

    /// Returns the error for a status, with the codec of the displayed video track.
    func error(_ status: safelight_video_status) -> VideoError {
        var track = safelight_video_track()
        safelight_video_get_track(pointer, safelight_video_get_info(pointer).pointee.track, &track)
        return Self.error(status, limits, codec: Self.text(track.codec))
    }

    // MARK: Frames

    /// Decodes a frame and scales it to a size, without rotating it.
    ///
    /// Frames that are requested in the order of their times are decoded in one pass over the file.
    public func frame(_ position: FramePosition, width: Int, height: Int) throws(VideoError) -> VideoFrame {
        var frame = safelight_video_frame()
        let (time, tolerance): (Int64, Int64) =
            switch position {
            case .automatic: (-1, 0)
            case .at(let time, let tolerance): (max(0, time), max(0, tolerance))
            }
        let status = safelight_video_decode(
            pointer,
            time,
            tolerance,
            FramePosition.automaticRange,
            Int32(clamping: width),
            Int32(clamping: height),
            &frame
        )
        guard status == SAFELIGHT_VIDEO_OK else { throw error(status) }
        return VideoFrame(frame, width: width, height: height)
    }
}
