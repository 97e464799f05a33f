import CMagickWand
import ImageFormats

/// Renders images from a frame that another module decodes at the required size.
public struct FrameRendition {
    private let header: ImageHeader
    private let options: [RenditionOptions]
    private let geometries: [RenditionGeometry]
    /// The size at which the frame has to be decoded, before rotation.
    public let decodedWidth: Int
    public let decodedHeight: Int

    /// - Parameters:
    ///   - width: the width of the frame in displayed pixels, before rotation
    ///   - height: the height of the frame in displayed pixels, before rotation
    ///   - orientation: the EXIF orientation 1...8 of the frame
    ///   - options: one for each image
    public init(
        width: Int,
        height: Int,
        orientation: Int,
        _ options: [RenditionOptions],
        limits: PixelLimits = PixelLimits()
    ) throws(ImagingError) {
        // This format has the limits of images other than JPEG, and is never decoded at a fraction.
        var header = ImageHeader(kind: .pnm, storedWidth: width, storedHeight: height)
        header.orientation = orientation
        try limits.check(header)
        var geometries: [RenditionGeometry] = []
        for options in options {
            let geometry = try RenditionGeometry(options, for: header)
            try RenditionCost.check(geometry, options.format, seconds: limits.seconds)
            geometries.append(geometry)
        }
        let scale = min(1, geometries.map(\.scale).max() ?? 1)
        decodedWidth = min(width, max(1, Int((Double(width) * scale).rounded(.up))))
        decodedHeight = min(height, max(1, Int((Double(height) * scale).rounded(.up))))
        self.header = header
        self.options = options
        self.geometries = geometries
    }

    /// Renders the images, in the order of the options.
    ///
    /// - Parameter pixels: rows of red, green and blue in sRGB, a byte each, at the decoded size
    public func render(_ pixels: UnsafeRawPointer) throws(ImagingError) -> [RenderedImage] {
        ImagingLibrary.enter(.working)
        let wand = try Wand()
        try wand.constitute(pixels, width: decodedWidth, height: decodedHeight)
        try wand.apply(orientation: header.orientation)
        var images: [RenderedImage] = []
        for (geometry, options) in zip(geometries, options) {
            let (rect, size) = geometry.part(of: wand.width, wand.height)
            let part = try wand.copy()
            try part.crop(rect)
            try part.resize(size.width, size.height)
            images.append(try RenditionRenderer.cropAndEncode(part, geometry, options))
        }
        return images
    }
}
