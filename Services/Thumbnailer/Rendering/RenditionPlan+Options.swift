import ImageFormats
import Contracts
import Imaging
import JSONValue
import PhotoModel

extension RenditionPlan {
    /// The plan's options as Imaging takes them.
    var options: RenditionOptions {
        get throws(ImagingError) {
            guard let format = ImageFormat(rawValue: format.rawValue) else {
                throw .invalidOptions("\(format.rawValue) cannot be encoded")
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
            var options = RenditionOptions(
                target: target,
                contentMode: contentMode == .aspectFit ? .aspectFit : .aspectFill,
                resizeMode: resize,
                crop: crop,
                format: format,
                quality: max(1, quality)
            )
            options.dynamicRange = headroom.map { .init(headroom: $0 < 1 ? nil : $0) }
            return options
        }
    }
}

/// Images to render from one file.
struct RenditionBatch: Sendable, JSONTabled {
    var plans: [RenditionPlan]

    static let table = JSONTable(
        "RenditionPlans",
        "Images to render from one file.",
        unknown: .refused,
        blank: RenditionBatch(plans: []),
        [
            .required(
                "plans",
                \.plans,
                .list(of: .object(RenditionPlan.self), limit: RenditionProvider.batch),
                "One plan for each image."
            )
        ]
    )
}

extension StoredRendition {
    /// Describes a rendered image, without its bytes.
    ///
    /// - Parameter frameTime: of a video, the time of the frame in microseconds
    init(_ image: RenderedImage, frameTime: Int64? = nil) {
        self.init(
            bytes: [],
            mimeType: image.format.mimeType,
            pixelWidth: image.pixelWidth,
            pixelHeight: image.pixelHeight,
            isUpscaled: image.isUpscaled,
            frameTime: frameTime,
            headroom: image.headroom
        )
    }
}
