/// The reason why a video, or a frame of it, cannot be shown.
public enum VideoError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The bytes are no supported container.
    case unsupportedFormat(found: String, supported: [String])
    /// The codec of the video track is not decoded; nil if the container does not name it.
    case unsupportedCodec(String?)
    /// The codec of the video track has no place in the container of an export; nil if it has no name.
    case notCopied(String?)
    /// The container is damaged or incomplete.
    case unreadable
    /// There is no video track.
    case noVideo
    /// The video track contains no frame that can be decoded.
    case noFrame
    /// No frame begins in the part that an export keeps.
    case emptyPart
    case tooLarge(limit: Int)
    /// More packets, bytes or time than the limits allow.
    case tooMuchWork
    case outOfMemory
    /// FFmpeg's libraries cannot be loaded.
    case librariesMissing
    /// The encoder is missing, or refuses the video.
    case notEncoded
    /// The receiver of an exported file asked to stop.
    case stopped
    case outputTooLarge(limit: Int64)

    /// The name of the error on the wire.
    public var name: String {
        switch self {
        case .unsupportedFormat, .unsupportedCodec, .notCopied, .notEncoded: "unsupported_format"
        case .unreadable, .noVideo, .noFrame: "invalid_resource"
        case .emptyPart: "invalid_params"
        case .tooLarge, .tooMuchWork, .outputTooLarge: "limit_exceeded"
        case .outOfMemory, .librariesMissing: "internal_error"
        case .stopped: "user_cancelled"
        }
    }

    /// The problem and its remedy. Contains nothing of the file's content.
    public var message: String {
        switch self {
        case .unsupportedFormat(let found, let supported):
            "the file is \(found); give one of \(supported.joined(separator: ", "))"
        case .unsupportedCodec(let codec):
            "the video track is encoded as \(codec ?? "an unknown codec"), which is not decoded; convert the file to H.264"
        case .notCopied(let codec):
            "the video track is encoded as \(codec ?? "an unknown codec"), which cannot be copied into an MPEG-4 file; "
                + "request a preset that encodes it"
        case .unreadable: "the video file is damaged or truncated; copy it again from its source"
        case .noVideo: "the file has no video track"
        case .noFrame: "no frame of the video can be decoded; copy the file again from its source"
        case .emptyPart: "no frame of the video begins in the part that is kept; give a longer timeRange"
        case .tooLarge(let limit): "the frames of the video exceed the limit of \(limit) pixels; give a smaller one"
        case .tooMuchWork: "the video takes more time to read than a request may; request an earlier frame"
        case .librariesMissing:
            "FFmpeg's libraries cannot be loaded; install those that the program was built with (libavformat, libavfilter)"
        case .outOfMemory: "there is not enough memory to decode the video"
        case .notEncoded: "the video cannot be encoded; request another preset"
        case .stopped: "the export was stopped"
        case .outputTooLarge(let limit):
            "the exported file would exceed the limit of \(limit) bytes; request a smaller preset"
        }
    }

    public var description: String { message }
}
