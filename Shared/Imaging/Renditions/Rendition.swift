import CMagickWand
import ImageFormats

/// Renders derived images: upright, sRGB, without metadata, at the requested size.
///
/// The same bytes and options give the same bytes. In a batch the sizes are the same as for a single rendition, but the
/// pixels may come from a larger decode.
public enum Rendition {
    /// Renders one image.
    public static func render(
        _ bytes: [UInt8],
        _ options: RenditionOptions,
        limits: PixelLimits = PixelLimits()
    ) throws(ImagingError) -> RenderedImage {
        let images = try renderAll(bytes, [options], limits: limits)
        guard let image = images.first else { throw .invalidOptions("no options") }
        return image
    }

    /// Renders several images from a single decode, in the order of the options.
    public static func renderAll(
        _ bytes: [UInt8],
        _ options: [RenditionOptions],
        limits: PixelLimits = PixelLimits()
    ) throws(ImagingError) -> [RenderedImage] {
        ImagingLibrary.enter(.reading)
        let header = try ImageProbe.header(of: bytes, limits: limits)
        var plans: [RenditionGeometry] = []
        for options in options {
            let plan = try RenditionGeometry(options, for: header)
            try RenditionCost.check(plan, options.format, seconds: limits.seconds)
            plans.append(plan)
        }
        // The largest comes first; much smaller ones are made of it instead of from all pixels.
        let order = plans.indices.sorted { plans[$0].area > plans[$1].area }
        let step = order.first { plans[$0].isWhole && !plans[$0].isUpscaled }
        let isOfStep = zip(plans, options).map { plan, options in
            guard let step, plan.isWhole, options.dynamicRange == nil else { return false }
            return plans[step].resized.width >= stepRatio * plan.resized.width
                && plans[step].resized.height >= stepRatio * plan.resized.height
        }
        let source = try RenditionSource(bytes, header, plans, isNeeded: isOfStep.map { !$0 }, limits: limits)
        let isHDR = options.contains { $0.dynamicRange != nil && $0.format.holdsHDR }
        let map = isHDR ? GainMap.read(bytes, header, limits: limits) : nil
        ImagingLibrary.enter(.working)
        var images = [RenderedImage?](repeating: nil, count: plans.count)
        var larger: OpaquePointer?
        defer { if let larger { DestroyMagickWand(larger) } }
        for index in order {
            let (plan, options) = (plans[index], options[index])
            if isOfStep[index], let larger {
                let wand = try Wand(copying: larger)
                try wand.resize(plan.resized.width, plan.resized.height)
                images[index] = try finished(wand, plan, options)
                continue
            }
            let wand = try source.part(plan, index)
            if index == step, isOfStep.contains(true) { larger = CloneMagickWand(wand.pointer) }
            if let range = options.dynamicRange, options.format.holdsHDR, let map {
                images[index] = try HDRRendering.image(wand, map, plan, options, range)
            } else {
                images[index] = try cut(wand, plan, options)
            }
        }
        return images.compactMap { $0 }
    }

    /// Cuts out the centre that a plan shows, and encodes it.
    static func cut(
        _ wand: borrowing Wand,
        _ plan: RenditionGeometry,
        _ options: RenditionOptions
    ) throws(ImagingError) -> RenderedImage {
        try wand.cropCentre(plan.output)
        return try finished(wand, plan, options)
    }

    private static func finished(
        _ wand: borrowing Wand,
        _ plan: RenditionGeometry,
        _ options: RenditionOptions
    ) throws(ImagingError) -> RenderedImage {
        try ColourProfile.convertToSRGB(wand)
        return RenderedImage(
            bytes: try Encoder.encode(wand, format: options.format, quality: options.quality),
            format: options.format,
            pixelWidth: wand.width,
            pixelHeight: wand.height,
            isUpscaled: plan.isUpscaled
        )
    }

    /// The minimum ratio of sizes at which a rendition is made from a larger one, so that no difference is visible.
    private static let stepRatio = 3
}
