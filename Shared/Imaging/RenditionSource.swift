import CMagickWand
import PictureFormats

/// What renditions are made of: the rows of a JPEG, or, for everything else, what ImageMagick holds.
struct RenditionSource: ~Copyable {
    private enum Pixels: ~Copyable {
        case rows(Raster, orientation: Int, profile: [UInt8])
        case wand(Wand)
    }

    private let pixels: Pixels
    /// Of the upright picture.
    private let width: Int
    private let height: Int

    /// Decodes once for all plans.
    init(
        _ bytes: [UInt8],
        _ header: PictureHeader,
        _ plans: [RenditionPlan],
        limits: PixelLimits
    ) throws(ImagingError) {
        let eighths = plans.map(\.eighths).max() ?? DecodeScale.full
        if let (raster, profile) = try Self.rows(bytes, header, plans, eighths: eighths, limits: limits) {
            let isTurned = header.orientation >= 5
            width = isTurned ? raster.height : raster.width
            height = isTurned ? raster.width : raster.height
            pixels = .rows(raster, orientation: header.orientation, profile: profile)
        } else {
            let scale = plans.map(\.scale).max() ?? 1
            let wand = try Decoder.decode(bytes, header, eighths: eighths, scale: scale, limits: limits)
            width = wand.width
            height = wand.height
            pixels = .wand(wand)
        }
    }

    /// The part that a plan shows, at the size that it has before its centre is cut out.
    func part(_ plan: RenditionPlan) throws(ImagingError) -> Wand {
        let (rect, size) = plan.part(of: width, height)
        switch pixels {
        case .rows(let raster, let orientation, let profile):
            let stored = Walk.region(rect, orientation, raster.width, raster.height)
            let wand = try raster.reduced(stored, to: orientation >= 5 ? (size.height, size.width) : size)
            if !profile.isEmpty { MagickSetImageProfile(wand.pointer, "icc", profile, profile.count) }
            try wand.obey(orientation: orientation)
            return wand
        case .wand(let whole):
            let wand = try whole.copy()
            try wand.crop(rect)
            try wand.resize(size.width, size.height)
            return wand
        }
    }

    /// A JPEG of which every plan wants fewer pixels than are decoded; nil for any other.
    private static func rows(
        _ bytes: [UInt8],
        _ header: PictureHeader,
        _ plans: [RenditionPlan],
        eighths: Int,
        limits: PixelLimits
    ) throws(ImagingError) -> (Raster, profile: [UInt8])? {
        guard header.kind == .jpeg else { return nil }
        guard header.isComplete else { throw .truncated }
        let width = DecodeScale.side(header.storedWidth, eighths)
        let height = DecodeScale.side(header.storedHeight, eighths)
        let upright = header.orientation >= 5 ? (height, width) : (width, height)
        let isSmaller = plans.allSatisfy { plan in
            let (rect, size) = plan.part(of: upright.0, upright.1)
            return size.width <= rect.width && size.height <= rect.height && size != (rect.width, rect.height)
        }
        // A strip of a few pixels has no eighths; what is too large is refused by the other way.
        guard isSmaller, min(width, height) >= 16, width * height <= limits.decodedPixels else { return nil }
        return try bytes.withUnsafeBufferPointer { (bytes) throws(ImagingError) -> (Raster, profile: [UInt8])? in
            guard let reader = JPEGReader(bytes), reader.isPlain, let decoded = reader.begin(eighths: eighths),
                (width...width + 1).contains(decoded.width), (height...height + 1).contains(decoded.height)
            else { return nil }
            let region = PixelRect(x: 0, y: 0, width: width, height: height)
            return (try reader.raster(rowBytes: 3 * decoded.width, region), reader.profile)
        }
    }
}
