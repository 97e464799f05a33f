import CMagickWand
import ImageFormats
import PhotoModel

/// Renders low-quality images quickly.
public enum Preview {
    /// Returns the preview that is embedded in the file, fitted to the options as far as its pixels allow: oriented,
    /// cropped and scaled down, but never enlarged. Nil if there is none that shows the whole image.
    public static func embedded(
        in bytes: [UInt8],
        _ options: RenditionOptions,
        limits: PixelLimits = PixelLimits()
    ) throws(ImagingError) -> RenderedImage? {
        try options.validate()
        ImagingLibrary.enter(.reading)
        let header = try ImageProbe.header(of: bytes, limits: limits)
        guard let wand = try embedded(in: bytes, header, limits),
            let region = shownRegion(wand.width, wand.height, like: header.pixelWidth, header.pixelHeight)
        else { return nil }
        try wand.crop(region)
        ImagingLibrary.enter(.working)
        return try finish(wand, options)
    }

    /// Returns an image from a decode that takes a small part of the time of a full decode; nil if the format has no
    /// such decode.
    ///
    /// A JPEG is decoded at no more than half its size. The image has at least a quarter of the requested size in both
    /// directions. For other formats only the embedded preview is quick.
    public static func quick(
        _ bytes: [UInt8],
        _ options: RenditionOptions,
        limits: PixelLimits = PixelLimits()
    ) throws(ImagingError) -> RenderedImage? {
        try options.validate()
        ImagingLibrary.enter(.reading)
        let header = try ImageProbe.header(of: bytes, limits: limits)
        let area = header.pixelWidth * header.pixelHeight
        guard header.kind == .jpeg, area >= 64 * 64 else { return nil }
        let eighths = DecodeScale.eighthsOfQuickDecode(try RenditionGeometry(options, for: header))
        let wand = try Decoder.decode(bytes, header, eighths: eighths, scale: 0, limits: limits)
        ImagingLibrary.enter(.working)
        return try finish(wand, options)
    }

    private static func embedded(
        in bytes: [UInt8],
        _ header: ImageHeader,
        _ limits: PixelLimits
    ) throws(ImagingError) -> Wand? {
        if header.kind == .heic || header.kind == .avif {
            return try HeifDecoder.preview(bytes, limits: limits)
        }
        if header.kind == .raw { return try RawDecoder.preview(bytes, header, limits: limits) }
        guard let exif = header.exif, let range = TIFFStructure.preview(ByteReader(bytes[exif])) else { return nil }
        let preview = Array(bytes[range])
        let inner = try ImageProbe.header(of: preview, limits: limits)
        guard inner.kind == .jpeg else { return nil }
        // A preview has the orientation of the main image, regardless of its own metadata.
        return try Decoder.decode(
            preview,
            inner,
            eighths: DecodeScale.full,
            scale: 1,
            limits: limits,
            orientation: header.orientation
        )
    }

    /// Returns the part of a preview without the black bars that cameras add for other aspect ratios. Nil if the
    /// aspect ratios differ too much to be of the same image.
    static func shownRegion(_ width: Int, _ height: Int, like imageWidth: Int, _ imageHeight: Int) -> PixelRect? {
        let ratio = Double(width) * Double(imageHeight) / (Double(height) * Double(imageWidth))
        guard width > 0, height > 0, (0.5...2).contains(ratio) else { return nil }
        if abs(ratio - 1) < 0.02 { return PixelRect(x: 0, y: 0, width: width, height: height) }
        if ratio > 1 {
            let side = max(1, Int((Double(width) / ratio).rounded(.down)))
            return PixelRect(x: (width - side) / 2, y: 0, width: side, height: height)
        }
        let side = max(1, Int((Double(height) * ratio).rounded(.down)))
        return PixelRect(x: 0, y: (height - side) / 2, width: width, height: side)
    }

    /// Crops the image, also to the target's aspect ratio if it is filled exactly, scales it down and encodes it.
    private static func finish(
        _ wand: borrowing Wand,
        _ options: RenditionOptions
    ) throws(ImagingError) -> RenderedImage {
        try wand.crop(RenditionGeometry.pixels(of: options.crop ?? .full, width: wand.width, height: wand.height))
        if case .size(let width, let height) = options.target, options.resizeMode != .none {
            let region = (width: wand.width, height: wand.height)
            let isFilled = options.contentMode == .aspectFill
            if isFilled, options.resizeMode == .exact {
                let cut = RenditionGeometry.fitted((width, height), region.width, region.height)
                try wand.crop(
                    PixelRect(
                        x: (region.width - cut.width) / 2,
                        y: (region.height - cut.height) / 2,
                        width: cut.width,
                        height: cut.height
                    )
                )
            }
            let current = (width: wand.width, height: wand.height)
            let target =
                isFilled
                ? RenditionGeometry.covering(current, width, height) : RenditionGeometry.fitted(current, width, height)
            if target.width <= current.width, target.height <= current.height {
                try wand.resize(target.width, target.height)
            }
        }
        try ColourProfile.convertToSRGB(wand)
        let bytes = try Encoder.encode(wand, format: options.format, quality: min(options.quality, 80))
        return RenderedImage(
            bytes: bytes,
            format: options.format,
            pixelWidth: wand.width,
            pixelHeight: wand.height,
            isUpscaled: false
        )
    }
}
