import Basics
import JSONValue
import PhotoModel

/// A finished rendition: its bytes and the properties that the response reports.
struct EncodedRendition: Sendable, Equatable {
    var bytes: Bytes
    var mimeType: String
    var pixelWidth: Int
    var pixelHeight: Int
    var isUpscaled: Bool
    /// Of a video: the time of the frame in microseconds.
    var frameTime: Int64?
    /// The headroom for which it has high dynamic range, above 1; nil for standard range.
    var headroom: Double?

    /// The approximate memory it takes, in bytes.
    var cost: Int64 { Int64(bytes.count) + 256 }
}

extension EncodedRendition: JSONTabled {
    /// Everything but the bytes: the header of a cache file, and the JSON of a worker's result.
    static let table = JSONTable(
        "EncodedRendition",
        "A finished rendition.",
        unknown: .ignored,
        blank: EncodedRendition(bytes: [], mimeType: "", pixelWidth: 0, pixelHeight: 0, isUpscaled: false),
        [
            .required("mimeType", \.mimeType, .text(maxBytes: 64), "Media type of the bytes."),
            .required("pixelWidth", \.pixelWidth, .count(1...1_000_000), "Width of the image."),
            .required("pixelHeight", \.pixelHeight, .count(1...1_000_000), "Height of the image."),
            .required("isUpscaled", \.isUpscaled, .flag, "Larger than the source."),
            .optional("frameTime", \.frameTime, .integer(0...Int64.max), "Time of a video's frame."),
            .optional("headroom", \.headroom, .number(1...65_536), "For high dynamic range."),
        ]
    )
}
