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
        guard !plans.isEmpty else { return [] }
        let source = try RenditionSource(bytes, header, plans, limits: limits)
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
            let wand: Wand
            if let origin {
                wand = try Wand(copying: origin)
                try wand.resize(plan.resized.width, plan.resized.height)
            } else {
                wand = try source.part(plan)
                let (width, height) = plan.output
                let centre = (x: (wand.width - width) / 2, y: (wand.height - height) / 2)
                try wand.crop(PixelRect(x: centre.x, y: centre.y, width: width, height: height))
            }
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
}
