import JSONValue
import ImageFormats

/// The reason why metadata could not be read or written.
public enum MetadataError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The bytes are not a supported image format.
    case unsupported(found: String, supported: [String])
    /// The file ends inside its header.
    case truncated
    /// The file's structure is broken, not only its metadata.
    case invalid(String)
    /// A sidecar that is not XMP, or cannot be parsed.
    case invalidSidecar(isEmpty: Bool)
    /// JSON that is not valid `PhotoMetadata`.
    case invalidFacts(String)

    /// The name of the error on the wire.
    public var name: String {
        switch self {
        case .unsupported: "unsupported_format"
        case .truncated, .invalid, .invalidSidecar: "invalid_resource"
        case .invalidFacts: "internal_error"
        }
    }

    /// The error and its remedy.
    public var message: String {
        switch self {
        case .unsupported(let found, let supported):
            "the file is \(found); give one of \(supported.joined(separator: ", "))"
        case .truncated: "the file is truncated; copy it again from its source"
        case .invalid(let reason): "the file is damaged: \(reason)"
        case .invalidSidecar(let isEmpty):
            isEmpty
                ? "the sidecar is empty; export it again or remove it"
                : "the sidecar is not XMP that can be parsed; export it again or remove it"
        case .invalidFacts(let reason): reason
        }
    }

    public var description: String { message }
}
