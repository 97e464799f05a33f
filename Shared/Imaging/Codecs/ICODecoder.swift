import ImageFormats

/// Decodes the largest image of a Windows icon.
enum ICODecoder {
    /// - Parameter decodePNG: decodes an image that is a PNG file
    static func decode(
        _ bytes: [UInt8],
        limits: PixelLimits,
        decodePNG: ([UInt8]) throws(ImagingError) -> Wand
    ) throws(ImagingError) -> Wand {
        let icon: ICOStructure
        do throws(ImageHeader.Failure) { icon = try ICOStructure(ByteReader(bytes)) } catch {
            throw ImagingError(error)
        }
        try DecodedSamples.check(width: icon.width, height: icon.height, limits)
        let content = Array(bytes[icon.content])
        return icon.isPNG ? try decodePNG(content) : try bitmap(content, icon).makeWand()
    }

    /// Decodes a bitmap, whose rows are stored from the bottom up, followed by a mask of one bit per pixel.
    private static func bitmap(_ bytes: [UInt8], _ icon: ICOStructure) throws(ImagingError) -> DecodedSamples {
        let reader = ByteReader(bytes)
        let (width, height, depth) = (icon.width, icon.height, icon.depth)
        guard let header = reader.little32(0), let used = reader.little32(32) else { throw .truncated }
        let colours = depth > 8 ? 0 : used == 0 ? 1 << depth : used
        guard colours <= 256 else { throw .undecodable(reason: "a palette of \(colours) colours") }
        let start = header + 4 * colours
        let (rowBytes, maskBytes) = ((width * depth + 31) / 32 * 4, (width + 31) / 32 * 4)
        let mask = start + rowBytes * height
        guard mask <= bytes.count else { throw .truncated }
        let hasMask = mask + maskBytes * height <= bytes.count
        var samples: [UInt8] = []
        samples.reserveCapacity(4 * width * height)
        var isTransparent = depth == 32
        for y in (0..<height).reversed() {
            for x in 0..<width {
                let offset = start + y * rowBytes + x * depth / 8
                let isMasked = hasMask && bytes[mask + y * maskBytes + x / 8] >> (7 - x % 8) & 1 == 1
                var alpha: UInt8 = isMasked ? 0 : 255
                var colour = offset
                switch depth {
                case 32:
                    alpha = bytes[offset + 3]
                    if alpha != 0 { isTransparent = false }
                case 24: break
                case 16:
                    let word = Int(bytes[offset]) | Int(bytes[offset + 1]) << 8
                    samples += [10, 5, 0].map { UInt8((word >> $0 & 31) * 255 / 31) } + [alpha]
                    continue
                default:
                    let shift = 8 - depth - x * depth % 8
                    let number = Int(bytes[offset] >> shift) & ((1 << depth) - 1)
                    guard number < colours else { throw .undecodable(reason: "a pixel has no colour of the palette") }
                    colour = header + 4 * number
                }
                samples += [bytes[colour + 2], bytes[colour + 1], bytes[colour], alpha]
            }
        }
        // Old 32-bit icons have a mask instead of opacity.
        if isTransparent {
            for y in 0..<height {
                for x in 0..<width {
                    let row = height - 1 - y
                    let isMasked = hasMask && bytes[mask + row * maskBytes + x / 8] >> (7 - x % 8) & 1 == 1
                    samples[4 * (y * width + x) + 3] = isMasked ? 0 : 255
                }
            }
        }
        return DecodedSamples(width: width, height: height, channels: .rgba, samples: .bytes(samples))
    }
}
