import Contracts
import Imaging
import JSONValue
import PhotoModel

/// The type, orientation and size of a file, as read by a worker.
struct ImageFileInfo: Sendable, JSONTabled {
    var contentType: String
    var mimeType: String
    /// EXIF orientation 1...8; 1 if the decoder already applies it.
    var orientation: Int
    var pixelWidth: Int
    var pixelHeight: Int

    /// The maximum length of a side that `image.data` describes, in pixels.
    static let maxSide = 1_000_000

    static let table = JSONTable(
        "ImageFileInfo",
        "The type, orientation and size of a file.",
        unknown: .ignored,
        blank: ImageFileInfo(contentType: "", mimeType: "", orientation: 1, pixelWidth: 0, pixelHeight: 0),
        [
            .required("contentType", \.contentType, .text(maxBytes: 128), "Uniform type identifier."),
            .required("mimeType", \.mimeType, .text(maxBytes: 64), "Media type."),
            .required("orientation", \.orientation, .count(1...8), "EXIF orientation."),
            .required("pixelWidth", \.pixelWidth, .count(1...maxSide), "Pixels as displayed."),
            .required("pixelHeight", \.pixelHeight, .count(1...maxSide), "Pixels as displayed."),
        ]
    )
}
