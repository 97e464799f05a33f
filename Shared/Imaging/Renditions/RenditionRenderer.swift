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
        // The largest comes first; much smaller ones are made from it instead of from all pixels.
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

// MARK: - The pixels, decoded once

/// The source of renditions: images reduced from the rows of a JPEG, or, for everything else, the whole decoded image.
struct RenditionSource: ~Copyable {
    private enum Pixels: ~Copyable {
        /// One image per geometry; nil if it is made from a larger rendition.
        case made([Made?])
        case whole(Wand)
    }

    private final class Made {
        let wand: Wand

        init(_ wand: consuming Wand) { self.wand = wand }
    }

    private let pixels: Pixels

    /// Decodes once for all geometries.
    ///
    /// - Parameter isNeeded: false for geometries whose part will not be requested
    init(
        _ bytes: [UInt8],
        _ header: ImageHeader,
        _ geometries: [RenditionGeometry],
        isNeeded: [Bool],
        limits: PixelLimits
    ) throws(ImagingError) {
        let eighths = geometries.map(\.eighths).max() ?? DecodeScale.full
        if let made = try Self.rows(bytes, header, geometries, isNeeded, eighths: eighths, limits: limits) {
            pixels = .made(made)
        } else {
            let scale = geometries.map(\.scale).max() ?? 1
            pixels = .whole(try Decoder.decode(bytes, header, eighths: eighths, scale: scale, limits: limits))
        }
    }

    /// Returns the region of a geometry at the size that it has before its centre is cut out. Called once per geometry.
    func part(_ geometry: RenditionGeometry, _ index: Int) throws(ImagingError) -> Wand {
        switch pixels {
        case .made(let made):
            guard let made = made[index] else { throw .undecodable(reason: "a rendition is missing") }
            return try made.wand.copy()
        case .whole(let whole):
            let (rect, size) = geometry.part(of: whole.width, whole.height)
            let wand = try whole.copy()
            try wand.crop(rect)
            try wand.resize(size.width, size.height)
            return wand
        }
    }

    /// Reduces the rows of a JPEG if every geometry needs fewer pixels than are decoded; nil for any other image.
    private static func rows(
        _ bytes: [UInt8],
        _ header: ImageHeader,
        _ geometries: [RenditionGeometry],
        _ isNeeded: [Bool],
        eighths: Int,
        limits: PixelLimits
    ) throws(ImagingError) -> [Made?]? {
        guard header.kind == .jpeg else { return nil }
        guard header.isComplete else { throw .truncated }
        let width = DecodeScale.side(header.storedWidth, eighths)
        let height = DecodeScale.side(header.storedHeight, eighths)
        let isTurned = header.orientation >= 5
        let parts = geometries.map { $0.part(of: isTurned ? height : width, isTurned ? width : height) }
        let isSmaller = parts.allSatisfy { part in
            part.size.width <= part.rect.width && part.size.height <= part.rect.height
                && part.size != (part.rect.width, part.rect.height)
        }
        // Images of only a few pixels are not scaled by the decoder; one that is too large is refused by the other
        // path.
        guard isSmaller, min(width, height) >= 16, width * height <= limits.decodedPixels else { return nil }
        return try bytes.withUnsafeBufferPointer { (bytes) throws(ImagingError) -> [Made?]? in
            guard let reader = JPEGReader(bytes), reader.isPlain, let decoded = reader.begin(eighths: eighths),
                (width...width + 1).contains(decoded.width), (height...height + 1).contains(decoded.height)
            else { return nil }
            var made: [Made?] = []
            var reductions: [RowReduction] = []
            for (part, isNeeded) in zip(parts, isNeeded) {
                guard isNeeded else {
                    made.append(nil)
                    continue
                }
                let size = isTurned ? (part.size.height, part.size.width) : part.size
                let one = Made(try Wand.blank(size.0, size.1))
                let region = OrientationMapping.region(part.rect, header.orientation, width, height)
                reductions.append(RowReduction(region, to: size, .wide(try one.wand.writablePixels())))
                made.append(one)
            }
            try reader.reduce(rowBytes: 3 * decoded.width, height: decoded.height, into: &reductions)
            let profile = reader.profile
            for case .some(let one) in made {
                try one.wand.keepPixels()
                one.wand.noteDepth(8)
                one.wand.setProfile(profile)
                try one.wand.apply(orientation: header.orientation)
            }
            return made
        }
    }
}
