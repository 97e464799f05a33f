import ImageFormats

/// The decoded pixels from which the renditions of a file are rendered: images reduced from the rows of a JPEG, or the
/// whole image for other files.
struct RenditionSource: ~Copyable {
    private enum Pixels: ~Copyable {
        /// One image per geometry; nil if it is scaled down from a larger rendition.
        case reduced([ReducedImage?])
        case whole(Wand)
    }

    private final class ReducedImage {
        let wand: Wand

        init(_ wand: consuming Wand) { self.wand = wand }
    }

    private let pixels: Pixels

    /// Decodes the file once for all geometries.
    ///
    /// - Parameter isNeeded: false for a geometry whose image will not be requested
    init(
        _ bytes: [UInt8],
        _ header: ImageHeader,
        _ geometries: [RenditionGeometry],
        isNeeded: [Bool],
        limits: PixelLimits
    ) throws(ImagingError) {
        let eighths = geometries.map(\.eighths).max() ?? DecodeScale.full
        if let images = try Self.reduced(bytes, header, geometries, isNeeded, eighths: eighths, limits: limits) {
            pixels = .reduced(images)
        } else {
            let scale = geometries.map(\.scale).max() ?? 1
            pixels = .whole(try Decoder.decode(bytes, header, eighths: eighths, scale: scale, limits: limits))
        }
    }

    /// Returns the region of a geometry, scaled but not cropped to the centre.
    func resized(_ geometry: RenditionGeometry, _ index: Int) throws(ImagingError) -> Wand {
        switch pixels {
        case .reduced(let images):
            guard let image = images[index] else { throw .undecodable(reason: "a rendition is missing") }
            return try image.wand.copy()
        case .whole(let whole):
            let (rect, size) = geometry.part(of: whole.width, whole.height)
            let wand = try whole.copy()
            try wand.crop(rect)
            try wand.resize(size.width, size.height)
            return wand
        }
    }

    /// Reduces the rows of a JPEG if every geometry needs fewer pixels than are decoded; nil for any other image.
    private static func reduced(
        _ bytes: [UInt8],
        _ header: ImageHeader,
        _ geometries: [RenditionGeometry],
        _ isNeeded: [Bool],
        eighths: Int,
        limits: PixelLimits
    ) throws(ImagingError) -> [ReducedImage?]? {
        guard header.kind == .jpeg else { return nil }
        guard header.isComplete else { throw .truncated }
        let width = DecodeScale.side(header.storedWidth, eighths)
        let height = DecodeScale.side(header.storedHeight, eighths)
        let swapsSides = header.orientation >= 5
        let regions = geometries.map { $0.part(of: swapsSides ? height : width, swapsSides ? width : height) }
        let isSmaller = regions.allSatisfy { region in
            region.size.width <= region.rect.width && region.size.height <= region.rect.height
                && region.size != (region.rect.width, region.rect.height)
        }
        // Images of only a few pixels are not scaled by the decoder. An image that is too large is refused when the
        // whole image is decoded.
        guard isSmaller, min(width, height) >= 16, width * height <= limits.decodedPixels else { return nil }
        return try bytes.withUnsafeBufferPointer { (bytes) throws(ImagingError) -> [ReducedImage?]? in
            guard let reader = JPEGReader(bytes), reader.isPlain, let decoded = reader.begin(eighths: eighths),
                (width...width + 1).contains(decoded.width), (height...height + 1).contains(decoded.height)
            else { return nil }
            var images: [ReducedImage?] = []
            var reductions: [RowReduction] = []
            for (region, isNeeded) in zip(regions, isNeeded) {
                guard isNeeded else {
                    images.append(nil)
                    continue
                }
                let size = swapsSides ? (region.size.height, region.size.width) : region.size
                let image = ReducedImage(try Wand.blank(size.0, size.1))
                let stored = OrientationMapping.region(region.rect, header.orientation, width, height)
                reductions.append(RowReduction(stored, to: size, .wide(try image.wand.writablePixels())))
                images.append(image)
            }
            try reader.reduce(rowBytes: 3 * decoded.width, height: decoded.height, into: &reductions)
            let profile = reader.profile
            for case .some(let image) in images {
                try image.wand.syncPixels()
                image.wand.setDepth(8)
                image.wand.setProfile(profile)
                try image.wand.apply(orientation: header.orientation)
            }
            return images
        }
    }
}
