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
        // The largest rendition is rendered first. Much smaller ones are scaled down from it instead of from all
        // pixels.
        let order = geometries.indices.sorted { geometries[$0].area > geometries[$1].area }
        let largest = order.first { geometries[$0].isWhole && !geometries[$0].isUpscaled }
        let isFromLargest = zip(geometries, options).map { geometry, options in
            guard let largest, geometry.isWhole, options.dynamicRange == nil else { return false }
            return geometries[largest].resized.width >= reuseRatio * geometry.resized.width
                && geometries[largest].resized.height >= reuseRatio * geometry.resized.height
        }
        let source = try RenditionSource(
            bytes,
            header,
            geometries,
            isNeeded: isFromLargest.map { !$0 },
            limits: limits
        )
        let isHDR = options.contains { $0.dynamicRange != nil && $0.format.supportsHDR }
        let map = isHDR ? GainMap.read(bytes, header, limits: limits) : nil
        ImagingLibrary.enter(.working)
        var images = [RenderedImage?](repeating: nil, count: geometries.count)
        var largestWand: OpaquePointer?
        defer { if let largestWand { DestroyMagickWand(largestWand) } }
        for index in order {
            let (geometry, options) = (geometries[index], options[index])
            if isFromLargest[index], let largestWand {
                let wand = try Wand(copying: largestWand)
                try wand.resize(geometry.resized.width, geometry.resized.height)
                images[index] = try encode(wand, geometry, options)
                continue
            }
            let wand = try source.resized(geometry, index)
            if index == largest, isFromLargest.contains(true) { largestWand = CloneMagickWand(wand.pointer) }
            if let range = options.dynamicRange, options.format.supportsHDR, let map {
                images[index] = try HDRRendering.image(wand, map, geometry, options, range)
            } else {
                images[index] = try cropAndEncode(wand, geometry, options)
            }
        }
        return images.compactMap { $0 }
    }

    /// Crops an image to the centre as its geometry requires, and encodes it.
    static func cropAndEncode(
        _ wand: borrowing Wand,
        _ geometry: RenditionGeometry,
        _ options: RenditionOptions
    ) throws(ImagingError) -> RenderedImage {
        try wand.cropCentre(geometry.output)
        return try encode(wand, geometry, options)
    }

    /// Encodes an image in sRGB.
    private static func encode(
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

    /// The minimum ratio of sizes at which a rendition is scaled down from the largest one without a visible
    /// difference.
    private static let reuseRatio = 3
}
