import ImageFormats

/// The reason why an image could not be decoded or rendered.
public enum ImagingError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The bytes are not a supported format.
    case unsupportedFormat(found: String, supported: [String])
    /// The file is truncated.
    case truncated
    /// The decoder refused the file.
    case undecodable(reason: String)
    /// Too many pixels, a side that is too long, or too many frames; `limit` is the limit that was exceeded.
    case tooLarge(width: Int, height: Int, limit: Int)
    /// The request needs more time or memory than is available.
    case tooMuchWork(String)
    /// The request cannot be carried out.
    case invalidOptions(String)
    /// The encoder failed.
    case encodingFailed(String)

    /// The name of the error in the protocol.
    public var name: String {
        switch self {
        case .unsupportedFormat: "unsupported_format"
        case .truncated, .undecodable: "invalid_resource"
        case .tooLarge, .tooMuchWork: "limit_exceeded"
        case .invalidOptions: "invalid_options"
        case .encodingFailed: "internal_error"
        }
    }

    /// The problem and its remedy, without anything of the file's content.
    public var message: String {
        switch self {
        case .unsupportedFormat(let found, let supported):
            "the file is \(found); give one of \(supported.joined(separator: ", "))"
        case .truncated: "the image file is truncated; copy it again from its source"
        case .undecodable(let reason): "the image cannot be decoded: \(reason)"
        case .tooLarge(let width, let height, let limit):
            "the image of \(width) by \(height) pixels exceeds the limit of \(limit); give a smaller one"
        case .invalidOptions(let reason), .tooMuchWork(let reason): reason
        case .encodingFailed(let reason): "the image cannot be encoded: \(reason)"
        }
    }

    public var description: String { message }
}

extension ImagingError {
    /// Returns the error for a header that could not be read.
    init(_ failure: ImageHeader.Failure) {
        self =
            switch failure {
            case .unsupported(let found): .unsupportedFormat(found: found, supported: ImageFormat.readableNames)
            case .truncated: .truncated
            case .invalid(let reason): .undecodable(reason: reason)
            }
    }
}
