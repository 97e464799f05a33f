import CHeif
import CMagickWand
import ImageFormats

/// The decoded gain map of an image. It is upright and usually smaller than the image.
final class GainMap {
    let wand: Wand
    let metadata: GainMapMetadata

    private init(wand: consuming Wand, metadata: GainMapMetadata) {
        self.wand = wand
        self.metadata = metadata
    }

    /// Decodes the gain map of a file; nil if it has none that can be used. A damaged map is treated as missing,
    /// because the image can be shown without it.
    static func read(_ bytes: [UInt8], _ header: ImageHeader, limits: PixelLimits) -> GainMap? {
        guard let file = GainMapFile.find(in: bytes, header) else { return nil }
        do throws(ImagingError) {
            switch file {
            case .jpeg(let range, let metadata):
                let map = Array(bytes[range])
                let inner = try ImageProbe.header(of: map, limits: limits)
                // The map is stored in the orientation of the image, and its own metadata declares none.
                let wand = try Decoder.decode(
                    map,
                    inner,
                    eighths: DecodeScale.full,
                    scale: 1,
                    limits: limits,
                    orientation: header.orientation
                )
                return GainMap(wand: wand, metadata: metadata)
            case .item(let id, let hidingByte, let metadata):
                // libheif 1.15 returns only images that are not hidden.
                var visible = bytes
                visible[hidingByte] &= ~1
                let wand = try HeifDecoder.item(visible, id: id, limits: limits)
                return GainMap(wand: wand, metadata: metadata)
            case .auxiliary(let metadata):
                let wand = try HeifDecoder.auxiliary(bytes, type: GainMapFile.appleType, limits: limits)
                guard let found = wand.profile("xmp").flatMap(GainMapFile.appleMetadata(xmp:)) ?? metadata else {
                    return nil
                }
                return GainMap(wand: wand, metadata: found)
            }
        } catch {
            return nil
        }
    }

    /// Returns the part of the map that a rendition shows.
    ///
    /// - Parameter isEnlarged: true to scale the part to the size of the rendition, false to never enlarge it
    func part(_ geometry: RenditionGeometry, isEnlarged: Bool) throws(ImagingError) -> Wand {
        let (rect, size) = geometry.part(of: wand.width, wand.height)
        let part = try wand.copy()
        try part.crop(rect)
        let ratio = min(Double(rect.width) / Double(size.width), Double(rect.height) / Double(size.height))
        let factor = isEnlarged ? 1 : min(1, ratio)
        func scaled(_ side: Int) -> Int { max(1, Int((Double(side) * factor).rounded())) }
        try part.stretch(scaled(size.width), scaled(size.height))
        let output = (width: scaled(geometry.output.width), height: scaled(geometry.output.height))
        try part.cropCentre((min(output.width, part.width), min(output.height, part.height)))
        return part
    }

    /// Returns the map as a JPEG with logarithmic values.
    ///
    /// - Parameter part: the map, or a part of it; its values may be replaced
    func encoded(_ part: borrowing Wand) throws(ImagingError) -> [UInt8] {
        if metadata.isApple {
            let values = (0...65_535).map { value in
                UInt16(clamping: Int((metadata.logarithmicValue(Double(value) / 65_535) * 65_535).rounded()))
            }
            try part.withPixels { pixels, count in
                for index in 0..<count {
                    for channel in 0..<3 { pixels[4 * index + channel] = values[Int(pixels[4 * index + channel])] }
                }
            }
        }
        return try Encoder.encode(part, format: .jpeg, quality: Self.quality)
    }

    /// The JPEG quality of maps. At lower quality their steps are visible in the brightest parts of an image.
    private static let quality = 90
}

extension Wand {
    /// Scales to a size. A larger size is interpolated linearly, because other filters overshoot at edges.
    func stretch(_ width: Int, _ height: Int) throws(ImagingError) {
        guard width > self.width || height > self.height else { return try resize(width, height) }
        try attempt("resizing", MagickResizeImage(pointer, width, height, TriangleFilter, 1))
    }
}
