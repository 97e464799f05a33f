import Contracts
import Imaging
import JSONValue
import PhotoModel

extension RenditionPlan {
    /// The same, in the words of the room Imaging.
    var options: RenditionOptions {
        get throws(ImagingError) {
            guard let format = ImageFormat(rawValue: format.rawValue) else {
                throw .invalidOptions("\(format.rawValue) cannot be written")
            }
            let target: RenditionOptions.Target =
                switch targetSize {
                case .maximum: .maximum
                case .size(let width, let height): .size(width: width, height: height)
                }
            let resize: RenditionOptions.ResizeMode =
                switch resizeMode {
                case .none: .none
                case .fast: .fast
                case .exact: .exact
                }
            return RenditionOptions(
                target: target,
                contentMode: contentMode == .aspectFit ? .aspectFit : .aspectFill,
                resizeMode: resize,
                crop: crop,
                format: format,
                quality: max(1, quality)
            )
        }
    }
}

/// Pictures to be made from one file.
struct RenditionPlans: Sendable, JSONTabled {
    var plans: [RenditionPlan]

    static let table = JSONTable(
        "RenditionPlans",
        "Pictures to be made from one file.",
        unknown: .refused,
        blank: RenditionPlans(plans: []),
        [
            .required(
                "plans",
                \.plans,
                .list(of: .object(RenditionPlan.self), limit: PictureDesk.batch),
                "One for each picture."
            )
        ]
    )
}

/// What a file is, as a worker sees it.
struct PictureFacts: Sendable, JSONTabled {
    var contentType: String
    var mimeType: String
    /// EXIF 1...8; 1 where decoders obey it by themselves.
    var orientation: Int
    var pixelWidth: Int
    var pixelHeight: Int

    static let table = JSONTable(
        "PictureFacts",
        "What a file is.",
        unknown: .ignored,
        blank: PictureFacts(contentType: "", mimeType: "", orientation: 1, pixelWidth: 0, pixelHeight: 0),
        [
            .required("contentType", \.contentType, .text(maxBytes: 128), "Uniform type identifier."),
            .required("mimeType", \.mimeType, .text(maxBytes: 64), "Media type."),
            .required("orientation", \.orientation, .count(1...8), "EXIF orientation."),
            .required("pixelWidth", \.pixelWidth, .count(1...1_000_000), "Pixels as displayed."),
            .required("pixelHeight", \.pixelHeight, .count(1...1_000_000), "Pixels as displayed."),
        ]
    )
}

extension StoredRendition {
    /// The facts of a picture that was made, without its bytes.
    init(_ image: RenderedImage) {
        self.init(
            bytes: [],
            mimeType: image.format.mimeType,
            pixelWidth: image.pixelWidth,
            pixelHeight: image.pixelHeight,
            isUpscaled: image.isUpscaled
        )
    }
}
