import ImageFormats

/// Decodes portable bitmaps, graymaps, pixmaps and arbitrary maps.
enum PNMDecoder {
    static func decode(_ bytes: [UInt8], limits: PixelLimits) throws(ImagingError) -> Wand {
        let map: PNMStructure
        do throws(ImageHeader.Failure) { map = try PNMStructure(ByteReader(bytes)) } catch { throw ImagingError(error) }
        try DecodedSamples.check(width: map.width, height: map.height, limits)
        let count = map.width * map.height * map.channels
        let data = bytes[map.start...]
        let values: [UInt16] =
            if map.isText {
                try text(data, count, isBits: map.variant == 1, maximum: map.maximum)
            } else if map.variant == 4 {
                try bits(data, map.width, map.height)
            } else {
                try numbers(data, count, isWide: map.maximum > 255)
            }
        return try samples(values, map).makeWand()
    }

    /// Returns samples that are written as text. Digits of 1-bit samples need no space between them.
    private static func text(_ data: ArraySlice<UInt8>, _ count: Int, isBits: Bool, maximum: Int) throws(ImagingError)
        -> [UInt16]
    {
        var values: [UInt16] = []
        values.reserveCapacity(count)
        var number: Int?
        var isComment = false
        for byte in data {
            if isComment {
                isComment = byte != 0x0A
                continue
            }
            if (0x30...0x39).contains(byte) {
                let digit = Int(byte) - 0x30
                number = isBits ? digit : (number ?? 0) * 10 + digit
                guard let number, number <= maximum else { throw .undecodable(reason: "a sample is above the maximum") }
                guard isBits else { continue }
            } else if byte == 0x23 {
                isComment = true
            } else if byte != 0x20, !(0x09...0x0D).contains(byte) {
                throw .undecodable(reason: "a sample is not a number")
            }
            if let value = number { values.append(UInt16(value)) }
            number = nil
            if values.count == count { return values }
        }
        if let number { values.append(UInt16(number)) }
        guard values.count == count else { throw .truncated }
        return values
    }

    /// Returns 1-bit samples, which are stored in rows of whole bytes.
    private static func bits(_ data: ArraySlice<UInt8>, _ width: Int, _ height: Int) throws(ImagingError) -> [UInt16] {
        let rowBytes = (width + 7) / 8
        guard data.count >= rowBytes * height else { throw .truncated }
        var values: [UInt16] = []
        values.reserveCapacity(width * height)
        for row in 0..<height {
            let start = data.startIndex + row * rowBytes
            for x in 0..<width { values.append(UInt16(data[start + x / 8] >> (7 - x % 8) & 1)) }
        }
        return values
    }

    private static func numbers(_ data: ArraySlice<UInt8>, _ count: Int, isWide: Bool) throws(ImagingError) -> [UInt16]
    {
        guard data.count >= count * (isWide ? 2 : 1) else { throw .truncated }
        guard isWide else { return data.prefix(count).map(UInt16.init) }
        let start = data.startIndex
        return (0..<count).map { UInt16(data[start + 2 * $0]) << 8 | UInt16(data[start + 2 * $0 + 1]) }
    }

    /// Returns the samples scaled to the full range of 8 or 16 bits.
    private static func samples(_ values: [UInt16], _ map: PNMStructure) -> DecodedSamples {
        let isWide = map.maximum > 255
        let (maximum, full) = (map.maximum, isWide ? 65_535 : 255)
        func scaled(_ value: UInt16) -> UInt16 {
            let value = map.isInk ? maximum - Int(value) : min(Int(value), maximum)
            return UInt16((2 * value * full + maximum) / (2 * maximum))
        }
        let (channels, count) = (map.channels, map.width * map.height)
        let result: DecodedSamples.Channels = map.hasAlpha ? .rgba : .rgb
        var all: [UInt16] = []
        all.reserveCapacity(count * result.count)
        for pixel in 0..<count {
            let offset = pixel * channels
            for channel in 0..<3 { all.append(scaled(values[offset + (channels >= 3 ? channel : 0)])) }
            if map.hasAlpha { all.append(scaled(values[offset + channels - 1])) }
        }
        return DecodedSamples(
            width: map.width,
            height: map.height,
            channels: result,
            samples: isWide ? .words(all) : .bytes(all.map { UInt8(truncatingIfNeeded: $0) })
        )
    }
}
