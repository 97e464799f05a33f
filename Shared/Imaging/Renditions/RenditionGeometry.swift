import ImageFormats
import PhotoModel

/// The sizes of one rendition, computed before decoding.
struct RenditionGeometry {
    /// The region to show, as fractions of the upright image.
    let crop: UnitRect
    /// The size of the region in full-size pixels.
    let region: (width: Int, height: Int)
    /// The size of the region after resizing.
    let resized: (width: Int, height: Int)
    /// The size after cropping to the centre; smaller than `resized` only for aspect fill.
    let output: (width: Int, height: Int)
    /// The fraction at which a JPEG is decoded, in eighths.
    let eighths: Int

    var area: Int { output.width * output.height }
    /// True if it shows the whole image.
    var isWhole: Bool { crop == .full && output == resized }
    var isUpscaled: Bool { resized.width > region.width || resized.height > region.height }
    /// The minimum fraction of the image's size from which the rendition can be rendered. An embedded preview must have
    /// twice the requested size, because phones compress previews strongly.
    ///
    /// The preview of a raw file is the camera's own image and hardly compressed.
    var scale: Double { isRaw ? targetScale : 2 * targetScale }
    /// The requested fraction of the image's size; above 1 if it is enlarged.
    private var targetScale: Double {
        max(Double(resized.width) / Double(region.width), Double(resized.height) / Double(region.height))
    }
    private let isRaw: Bool
    /// True if most of the region is cropped before resizing. To fill the target, a narrow strip would otherwise be
    /// enlarged to many times the target and then cropped.
    private var isCroppedFirst: Bool { resized.width > 4 * output.width || resized.height > 4 * output.height }

    init(_ options: RenditionOptions, for header: ImageHeader) throws(ImagingError) {
        try options.validate()
        crop = options.crop ?? .full
        let cut = Self.pixels(of: crop, width: header.pixelWidth, height: header.pixelHeight)
        region = (cut.width, cut.height)
        let isJPEG = header.kind == .jpeg
        isRaw = header.kind == .raw
        switch (options.target, options.resizeMode) {
        case (.maximum, _), (_, .none):
            resized = region
            output = region
            eighths = DecodeScale.full
        case (.size(let width, let height), .exact):
            let fits = options.contentMode == .aspectFit
            resized = fits ? Self.fitted(region, width, height) : Self.covering(region, width, height)
            output = fits ? resized : (width, height)
            eighths = Self.eighths(region, resized, isJPEG: isJPEG)
        case (.size(let width, let height), .fast):
            let fits = options.contentMode == .aspectFit
            let isReduced =
                fits ? width < region.width || height < region.height : width < region.width && height < region.height
            if isReduced {
                resized = fits ? Self.fitted(region, width, height) : Self.covering(region, width, height)
            } else {
                resized = region
            }
            output = resized
            eighths = Self.eighths(region, resized, isJPEG: isJPEG)
        }
        guard output.width <= options.format.maxSide, output.height <= options.format.maxSide else {
            throw .invalidOptions(
                "\(options.format.rawValue) supports at most \(options.format.maxSide) pixels a side"
            )
        }
        let enlarged = isCroppedFirst ? output : resized
        guard !isUpscaled || enlarged.width * enlarged.height <= RenditionOptions.maxArea else {
            throw .invalidOptions("an enlarged image may have at most \(RenditionOptions.maxArea) pixels")
        }
    }

    /// Returns the fraction at which a JPEG is decoded. It is the same for both resize modes: pixels that libjpeg
    /// scales to the requested size differ visibly (by a PSNR of 22 dB) from those of a good filter.
    private static func eighths(
        _ region: (width: Int, height: Int),
        _ resized: (width: Int, height: Int),
        isJPEG: Bool
    ) -> Int {
        guard isJPEG else { return DecodeScale.full }
        return DecodeScale.eighths(
            ratio: min(
                Double(region.width) / Double(resized.width),
                Double(region.height) / Double(resized.height)
            )
        )
    }

    /// Returns the region to crop from an image that was decoded to this size, and the size to scale it to, before it
    /// is cropped to the centre.
    func part(of width: Int, _ height: Int) -> (rect: PixelRect, size: (width: Int, height: Int)) {
        let rect = Self.pixels(of: crop, width: width, height: height)
        guard isCroppedFirst else { return (rect, resized) }
        let across = min(rect.width, max(1, rect.width * output.width / resized.width))
        let down = min(rect.height, max(1, rect.height * output.height / resized.height))
        let centre = PixelRect(
            x: rect.x + (rect.width - across) / 2,
            y: rect.y + (rect.height - down) / 2,
            width: across,
            height: down
        )
        return (centre, output)
    }

    /// Returns a rectangle in whole pixels, with sides of at least one pixel.
    static func pixels(of rect: UnitRect, width: Int, height: Int) -> PixelRect {
        func span(_ start: Double, _ length: Double, _ side: Int) -> (Int, Int) {
            let first = min(max(Int((start * Double(side)).rounded()), 0), side - 1)
            let last = min(max(Int(((start + length) * Double(side)).rounded()), first + 1), side)
            return (first, last - first)
        }
        let (x, pixelWidth) = span(rect.x, rect.width, width)
        let (y, pixelHeight) = span(rect.y, rect.height, height)
        return PixelRect(x: x, y: y, width: pixelWidth, height: pixelHeight)
    }

    /// Returns the largest size with the region's aspect ratio inside the target; one side equals the target's.
    static func fitted(_ region: (width: Int, height: Int), _ width: Int, _ height: Int) -> (width: Int, height: Int) {
        if width * region.height <= height * region.width {
            return (width, min(height, max(1, rounded(region.height * width, by: region.width))))
        }
        return (min(width, max(1, rounded(region.width * height, by: region.height))), height)
    }

    /// Returns the smallest size with the region's aspect ratio around the target; one side equals the target's.
    static func covering(_ region: (width: Int, height: Int), _ width: Int, _ height: Int) -> (width: Int, height: Int)
    {
        if width * region.height >= height * region.width {
            return (width, max(height, rounded(region.height * width, by: region.width)))
        }
        return (max(width, rounded(region.width * height, by: region.height)), height)
    }

    private static func rounded(_ number: Int, by divisor: Int) -> Int { (2 * number + divisor) / (2 * divisor) }
}

// MARK: - The decode of a JPEG

/// The fractions at which a JPEG can be decoded, in eighths. ImageMagick asks libjpeg for 1/n with whole n, and libjpeg
/// uses the next larger M/8.
///
/// For a good resize, the smallest fraction is used that leaves at least twice the requested size. For a preview that
/// would otherwise need full size, 3/8 or 1/2 is used if it leaves 1.4 times the size: the measured PSNR stays above 43
/// dB, and it takes a third of the time; with 1.3 times it was 37 dB. libjpeg rounds sizes up, so `Decoder` trims a
/// column or row that represents less than half a pixel; otherwise the whole image would be shifted.
enum DecodeScale {
    static let full = 8
    private static let scales = [1, 2, 3, 4, 8]

    /// Returns the fraction for a good resize; `ratio` is source pixels per requested pixel.
    static func eighths(ratio: Double) -> Int { scales.first { Double($0) / 8 * ratio >= 2 } ?? full }

    /// Returns the fraction for a preview.
    static func eighthsOfPreview(ratio: Double) -> Int {
        let best = eighths(ratio: ratio)
        guard best == full else { return best }
        return [3, 4].first { Double($0) / 8 * ratio >= 1.4 } ?? full
    }

    /// The maximum number of pixels of a quick decode, unless a quarter of the requested size has more.
    private static let quickPixels = 2_000_000

    /// Returns the fraction for a quick decode: the smallest that reaches the requested size, if that takes little
    /// time, else a quarter of the requested size or more.
    static func eighthsOfQuickDecode(_ geometry: RenditionGeometry) -> Int {
        let (region, resized) = (geometry.region, geometry.resized)
        func reaches(_ eighths: Int, times: Int) -> Bool {
            times * side(region.width, eighths) >= min(resized.width, region.width)
                && times * side(region.height, eighths) >= min(resized.height, region.height)
        }
        let minimum = scales.first { reaches($0, times: 4) } ?? full
        let requested = [1, 2, 4].first { reaches($0, times: 1) } ?? 4
        let affordable = [4, 2].first { region.width * region.height * $0 * $0 / 64 <= quickPixels } ?? 1
        return max(minimum, min(requested, affordable))
    }

    /// Returns the length of a side at a fraction, trimmed.
    static func side(_ length: Int, _ eighths: Int) -> Int { max(1, (length * eighths + 4) / 8) }

    /// Returns the divisor to pass to ImageMagick for a fraction.
    static func divisor(_ eighths: Int) -> Int {
        switch eighths {
        case 1: 8
        case 2: 4
        case 3: 3
        case 4: 2
        default: 1
        }
    }
}
