import CMagickWand
import ImageFormats

/// Renders derived images: upright, sRGB, without metadata, at the requested size.
///
/// The same bytes and options give the same bytes. In a batch the sizes are the same as for a single rendition, but the
/// pixels may come from a larger decode.
public enum RenditionRenderer {
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
        var geometries: [RenditionGeometry] = []
        for options in options {
            let geometry = try RenditionGeometry(options, for: header)
            try RenditionCost.check(geometry, options.format, seconds: limits.seconds)
            geometries.append(geometry)
        }
        // The largest comes first; much smaller ones are made of it instead of from all pixels.
        let order = geometries.indices.sorted { geometries[$0].area > geometries[$1].area }
        let step = order.first { geometries[$0].isWhole && !geometries[$0].isUpscaled }
        let isOfStep = zip(geometries, options).map { geometry, options in
            guard let step, geometry.isWhole, options.dynamicRange == nil else { return false }
            return geometries[step].resized.width >= stepRatio * geometry.resized.width
                && geometries[step].resized.height >= stepRatio * geometry.resized.height
        }
        let source = try RenditionSource(bytes, header, geometries, isNeeded: isOfStep.map { !$0 }, limits: limits)
        let isHDR = options.contains { $0.dynamicRange != nil && $0.format.holdsHDR }
        let map = isHDR ? GainMap.read(bytes, header, limits: limits) : nil
        ImagingLibrary.enter(.working)
        var images = [RenderedImage?](repeating: nil, count: geometries.count)
        var larger: OpaquePointer?
        defer { if let larger { DestroyMagickWand(larger) } }
        for index in order {
            let (geometry, options) = (geometries[index], options[index])
            if isOfStep[index], let larger {
                let wand = try Wand(copying: larger)
                try wand.resize(geometry.resized.width, geometry.resized.height)
                images[index] = try finished(wand, geometry, options)
                continue
            }
            let wand = try source.part(geometry, index)
            if index == step, isOfStep.contains(true) { larger = CloneMagickWand(wand.pointer) }
            if let range = options.dynamicRange, options.format.holdsHDR, let map {
                images[index] = try HDRRendering.image(wand, map, geometry, options, range)
            } else {
                images[index] = try cropAndEncode(wand, geometry, options)
            }
        }
        return images.compactMap { $0 }
    }

    /// Crops an image to the centre that its geometry shows, and encodes it.
    static func cropAndEncode(
        _ wand: borrowing Wand,
        _ geometry: RenditionGeometry,
        _ options: RenditionOptions
    ) throws(ImagingError) -> RenderedImage {
        try wand.cropCentre(geometry.output)
        return try finished(wand, geometry, options)
    }

    private static func finished(
        _ wand: borrowing Wand,
        _ geometry: RenditionGeometry,
        _ options: RenditionOptions
    ) throws(ImagingError) -> RenderedImage {
        try ColourProfile.convertToSRGB(wand)
        return RenderedImage(
            bytes: try Encoder.encode(wand, format: options.format, quality: options.quality),
            format: options.format,
            pixelWidth: wand.width,
            pixelHeight: wand.height,
            isUpscaled: geometry.isUpscaled
        )
    }

    /// The minimum ratio of sizes at which a rendition is made from a larger one, so that no difference is visible.
    private static let stepRatio = 3
}
