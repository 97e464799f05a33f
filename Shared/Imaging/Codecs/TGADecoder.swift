import ImageFormats

/// Decodes Truevision TGA.
enum TGADecoder {
    static func decode(_ bytes: [UInt8], limits: PixelLimits) throws(ImagingError) -> Wand {
        guard let image = TGAStructure(ByteReader(bytes)) else { throw .undecodable(reason: "no TGA header") }
        let (width, height) = (image.width, image.height)
        try DecodedSamples.check(width: width, height: height, limits)
        guard image.start <= bytes.count else { throw .truncated }
        let stored = try pixels(bytes, image)
        let palette = image.pixels == .palette ? colours(bytes, image) : []
        let hasAlpha = image.pixels == .palette ? image.paletteDepth == 32 : image.alphaBits > 0
        let step = image.pixelBytes
        var samples: [UInt8] = []
        samples.reserveCapacity(width * height * (hasAlpha ? 4 : 3))
        for row in 0..<height {
            let y = image.isTopDown ? row : height - 1 - row
            for column in 0..<width {
                let x = image.isMirrored ? width - 1 - column : column
                let offset = (y * width + x) * step
                let colour: Colour
                switch image.pixels {
                case .palette:
                    let number = Int(stored[offset]) | (step == 2 ? Int(stored[offset + 1]) << 8 : 0)
                    let index = number - image.paletteFirst
                    guard palette.indices.contains(index) else {
                        throw .undecodable(reason: "a pixel has no colour of the palette")
                    }
                    colour = palette[index]
                case .grey:
                    let grey = stored[offset]
                    colour = Colour(grey, grey, grey, step == 2 ? stored[offset + 1] : 255)
                case .colour: colour = Colour(stored[offset..<(offset + step)])
                }
                samples.append(colour.red)
                samples.append(colour.green)
                samples.append(colour.blue)
                if hasAlpha { samples.append(colour.alpha) }
            }
        }
        return try DecodedSamples(
            width: width,
            height: height,
            channels: hasAlpha ? .rgba : .rgb,
            samples: .bytes(samples)
        ).makeWand()
    }

    private struct Colour {
        let red, green, blue, alpha: UInt8

        init(_ red: UInt8, _ green: UInt8, _ blue: UInt8, _ alpha: UInt8) {
            (self.red, self.green, self.blue, self.alpha) = (red, green, blue, alpha)
        }

        /// Reads a stored colour of two to four bytes, in the order blue, green, red, opacity.
        init(_ bytes: ArraySlice<UInt8>) {
            let start = bytes.startIndex
            guard bytes.count == 2 else {
                self.init(bytes[start + 2], bytes[start + 1], bytes[start], bytes.count == 4 ? bytes[start + 3] : 255)
                return
            }
            let word = Int(bytes[start]) | Int(bytes[start + 1]) << 8
            func part(_ shift: Int) -> UInt8 { UInt8((word >> shift & 31) * 255 / 31) }
            self.init(part(10), part(5), part(0), word & 0x8000 != 0 ? 255 : 0)
        }
    }

    private static func colours(_ bytes: [UInt8], _ image: TGAStructure) -> [Colour] {
        let step = (image.paletteDepth + 7) / 8
        return stride(from: image.palette.lowerBound, to: image.palette.upperBound, by: step).map {
            Colour(bytes[$0..<($0 + step)])
        }
    }

    /// Returns the pixels as stored, without compression.
    private static func pixels(_ bytes: [UInt8], _ image: TGAStructure) throws(ImagingError) -> ArraySlice<UInt8> {
        let step = image.pixelBytes
        let count = image.width * image.height * step
        guard image.isCompressed else {
            guard bytes.count - image.start >= count else { throw .truncated }
            return rebased(bytes[image.start..<(image.start + count)])
        }
        var pixels: [UInt8] = []
        pixels.reserveCapacity(count)
        var offset = image.start
        while pixels.count < count {
            guard offset < bytes.count else { throw .truncated }
            let packet = bytes[offset]
            let repeats = Int(packet & 0x7F) + 1
            let isRun = packet & 0x80 != 0
            let length = (isRun ? 1 : repeats) * step
            guard bytes.count - offset - 1 >= length else { throw .truncated }
            let content = bytes[(offset + 1)..<(offset + 1 + length)]
            for _ in 0..<(isRun ? repeats : 1) { pixels.append(contentsOf: content) }
            offset += 1 + length
        }
        // The last run may be longer than the image.
        return pixels[..<count]
    }

    private static func rebased(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> { Array(bytes)[...] }
}
