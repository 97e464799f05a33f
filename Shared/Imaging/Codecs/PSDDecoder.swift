import ImageFormats

/// Decodes the flattened image of a Photoshop file; layers are not read.
enum PSDDecoder {
    static func decode(_ bytes: [UInt8], limits: PixelLimits) throws(ImagingError) -> Wand {
        let file: PSDStructure
        do throws(ImageHeader.Failure) { file = try PSDStructure(ByteReader(bytes)) } catch {
            throw ImagingError(error)
        }
        try DecodedSamples.check(width: file.width, height: file.height, limits)
        let planes = try planes(bytes, file)
        let profile = [.rgb, .cmyk, .grey, .indexed].contains(file.mode) ? file.profile.map { Array(bytes[$0]) } : nil
        let isDeep = file.depth == 16
        let palette = file.palette.map { Array(bytes[$0]) }
        var wide: [UInt16] = []
        var narrow: [UInt8] = []
        let count = file.width * file.height
        let channels: DecodedSamples.Channels = file.mode == .cmyk ? .cmyk : file.hasAlpha ? .rgba : .rgb
        if isDeep {
            wide.reserveCapacity(count * channels.count)
        } else {
            narrow.reserveCapacity(count * channels.count)
        }
        let (full, alpha) = (isDeep ? 65_535 : 255, file.hasAlpha && file.mode != .cmyk ? file.mode.channels : nil)
        func sample(_ plane: Int, _ row: Int, _ x: Int) -> Int {
            let start = row * file.rowBytes
            switch file.depth {
            case 1: return planes[plane][start + x / 8] >> (7 - x % 8) & 1 == 1 ? 0 : 255
            case 16: return Int(planes[plane][start + 2 * x]) << 8 | Int(planes[plane][start + 2 * x + 1])
            default: return Int(planes[plane][start + x])
            }
        }
        func append(_ value: Int) {
            if isDeep { wide.append(UInt16(value)) } else { narrow.append(UInt8(value)) }
        }
        for row in 0..<file.height {
            for x in 0..<file.width {
                if let palette {
                    let number = sample(0, row, x)
                    for channel in 0..<3 { append(Int(palette[256 * channel + number])) }
                    continue
                }
                if file.mode == .cmyk {
                    // In Photoshop's CMYK the maximum value means no ink.
                    for channel in 0..<4 { append(full - sample(channel, row, x)) }
                    continue
                }
                let opacity = alpha.map { sample($0, row, x) }
                for channel in 0..<3 {
                    var value = sample(file.mode == .rgb ? channel : 0, row, x)
                    // The flattened image is composed over white.
                    if let opacity, opacity > 0 {
                        value = min(full, max(0, (value - (full - opacity)) * full / opacity))
                    }
                    append(value)
                }
                if let opacity { append(opacity) }
            }
        }
        return try DecodedSamples(
            width: file.width,
            height: file.height,
            channels: channels,
            samples: isDeep ? .words(wide) : .bytes(narrow),
            profile: profile
        ).makeWand()
    }

    /// Returns the uncompressed rows of each channel that is used.
    private static func planes(_ bytes: [UInt8], _ file: PSDStructure) throws(ImagingError) -> [[UInt8]] {
        let channelCount = file.mode.channels + (file.hasAlpha && file.mode != .cmyk ? 1 : 0)
        let planeBytes = file.rowBytes * file.height
        guard file.isCompressed else {
            guard bytes.count - file.start >= channelCount * planeBytes else { throw .truncated }
            return (0..<channelCount).map {
                Array(bytes[(file.start + $0 * planeBytes)..<(file.start + ($0 + 1) * planeBytes)])
            }
        }
        guard let lengths = file.rowLengths(ByteReader(bytes)) else { throw .truncated }
        var offset = file.start + lengths.count * (file.isLarge ? 4 : 2)
        var planes: [[UInt8]] = []
        for plane in 0..<channelCount {
            var rows: [UInt8] = []
            rows.reserveCapacity(planeBytes)
            for row in 0..<file.height {
                let length = lengths[plane * file.height + row]
                guard bytes.count - offset >= length else { throw .truncated }
                try unpack(bytes[offset..<(offset + length)], file.rowBytes, into: &rows)
                offset += length
            }
            planes.append(rows)
        }
        return planes
    }

    /// Appends a row that is compressed with PackBits.
    private static func unpack(
        _ packed: ArraySlice<UInt8>,
        _ count: Int,
        into rows: inout [UInt8]
    ) throws(ImagingError) {
        let end = rows.count + count
        var offset = packed.startIndex
        while rows.count < end, offset < packed.endIndex {
            let code = Int(Int8(bitPattern: packed[offset]))
            offset += 1
            if code >= 0 {
                let length = min(code + 1, packed.endIndex - offset, end - rows.count)
                rows.append(contentsOf: packed[offset..<(offset + length)])
                offset += code + 1
            } else if code != -128, offset < packed.endIndex {
                rows.append(contentsOf: repeatElement(packed[offset], count: min(1 - code, end - rows.count)))
                offset += 1
            }
        }
        guard rows.count == end else { throw .undecodable(reason: "a compressed row is too short") }
    }
}
