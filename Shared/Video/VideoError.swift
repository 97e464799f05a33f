/// The reason why a video or a frame of it cannot be read or exported.
public enum VideoError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The container is not supported.
    case unsupportedFormat(found: String, supported: [String])
    /// The codec of the video track is not supported; nil if its name is not known.
    case unsupportedCodec(String?)
    /// The container of an export does not support the codec of the video track; nil if its name is not known.
    case notCopied(String?)
    /// The container is damaged or incomplete.
    case unreadable
    /// There is no video track.
    case noVideo
    /// The video track contains no frame that can be decoded.
    case noFrame
    /// No frame begins in the exported part.
    case emptyPart
    case tooLarge(limit: Int)
    /// A limit of packets, bytes or time was exceeded.
    case tooMuchWork
    case outOfMemory
    /// FFmpeg's libraries cannot be loaded.
    case librariesMissing
    /// The encoder is missing or refuses the video.
    case notEncoded
    /// The sink of an export requested to stop.
    case stopped
    case outputTooLarge(limit: Int64)

    /// The name of the error in the protocol.
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

    /// The problem and its remedy, without anything of the file's content.
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
