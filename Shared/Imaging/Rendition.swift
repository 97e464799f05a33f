import CMagickWand
import PictureFormats

/// Makes derived pictures: upright, sRGB, without metadata, at the size that was asked for.
///
/// The same bytes and options give the same bytes. In a batch, sizes are the same as alone, but the pixels may come
/// from a larger decode.
public enum Rendition {
    /// Makes one rendition.
    public static func render(
        _ bytes: [UInt8],
        _ options: RenditionOptions,
        limits: PixelLimits = PixelLimits()
    ) throws(ImagingError) -> RenderedImage {
        let images = try renderAll(bytes, [options], limits: limits)
        guard let image = images.first else { throw .invalidOptions("no options") }
        return image
    }

    /// Makes several renditions of one picture from a single decode, in the order of the options.
    public static func renderAll(
        _ bytes: [UInt8],
        _ options: [RenditionOptions],
        limits: PixelLimits = PixelLimits()
    ) throws(ImagingError) -> [RenderedImage] {
        let header = try Picture.header(of: bytes, limits: limits)
        var plans: [RenditionPlan] = []
        for options in options { plans.append(try RenditionPlan(options, for: header)) }
        guard let eighths = plans.map(\.eighths).max(), let scale = plans.map(\.scale).max() else { return [] }
        let source = try Decoder.decode(bytes, header, eighths: eighths, scale: scale, limits: limits)
        var images = [RenderedImage?](repeating: nil, count: plans.count)
        // The largest comes first; much smaller ones are made of it instead of from all pixels.
        var step: (wand: OpaquePointer, width: Int, height: Int)?
        defer { if let step { DestroyMagickWand(step.wand) } }
        for index in plans.indices.sorted(by: { plans[$0].area > plans[$1].area }) {
            let (plan, options) = (plans[index], options[index])
            let origin = step.flatMap { step in
                plan.isWhole && step.width >= stepRatio * plan.resized.width
                    && step.height >= stepRatio * plan.resized.height ? step.wand : nil
            }
            let wand = try Wand(copying: origin ?? source.pointer)
            try shape(wand, plan)
            if plans.count > 1, step == nil, plan.isWhole, !plan.isUpscaled, let kept = CloneMagickWand(wand.pointer) {
                step = (kept, wand.width, wand.height)
            }
            try ColourProfile.convertToSRGB(wand)
            let bytes = try Encoder.encode(wand, format: options.format, quality: options.quality)
            images[index] = RenderedImage(
                bytes: bytes,
                format: options.format,
                pixelWidth: wand.width,
                pixelHeight: wand.height,
                isUpscaled: plan.isUpscaled
            )
        }
        return images.compactMap { $0 }
    }

    /// How much larger a picture must be that another is made of, so that nobody sees a difference.
    private static let stepRatio = 3

    /// Crops, resizes and cuts the centre out.
    private static func shape(_ wand: borrowing Wand, _ plan: RenditionPlan) throws(ImagingError) {
        try wand.crop(RenditionPlan.pixels(of: plan.crop, width: wand.width, height: wand.height))
        let (across, down) = plan.resized
        let (width, height) = plan.output
        // A strip that is filled would grow to many times the target before its centre is cut: cut most of it first.
        if across > 4 * width || down > 4 * height {
            let keptWidth = min(wand.width, max(1, wand.width * width / across))
            let keptHeight = min(wand.height, max(1, wand.height * height / down))
            try wand.crop(
                PixelRect(
                    x: (wand.width - keptWidth) / 2,
                    y: (wand.height - keptHeight) / 2,
                    width: keptWidth,
                    height: keptHeight
                )
            )
            try wand.resize(width, height)
            return
        }
        try wand.resize(across, down)
        try wand.crop(PixelRect(x: (across - width) / 2, y: (down - height) / 2, width: width, height: height))
    }
}
