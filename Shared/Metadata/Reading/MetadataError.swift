import JSONValue
import ImageFormats

/// The reason that metadata could not be read or written.
public enum MetadataError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The bytes are not a supported image format.
    case unsupported(found: String, supported: [String])
    /// The file ends inside its header.
    case truncated
    /// The file's structure is broken beyond its metadata.
    case invalid(String)
    /// JSON that is not valid `PhotoMetadata`.
    case invalidFacts(String)

    /// The name of the error on the wire.
    public var name: String {
        switch self {
        case .unsupported: "unsupported_format"
        case .truncated, .invalid: "invalid_resource"
        case .invalidFacts: "internal_error"
        }
    }

    /// The error and its remedy.
    public var message: String {
        switch self {
        case .unsupported(let found, let supported):
            "the file is \(found); give one of \(supported.joined(separator: ", "))"
        case .truncated: "the image file is truncated; copy it again from its source"
        case .invalid(let reason): "the image file is damaged: \(reason)"
        case .invalidFacts(let reason): reason
        }
    }

    public var description: String { message }
}
