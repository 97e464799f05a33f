import CMagickWand
import ImageFormats

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
