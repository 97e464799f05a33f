/// The facts about samples in the sequence header of an AV1 image (AV1 bitstream specification, 5.5).
struct AV1SequenceHeader {
    /// True if the image has brightness only.
    let isMonochrome: Bool
    /// True if samples use the full range of values; false if eight bits use 16...235.
    let isFullRange: Bool

    /// Parses the header in an `av1C` box; nil if it is not the header of a still picture.
    init?(configuration: ByteReader) {
        // Four bytes of configuration, then the type of the unit, of which 1 is a sequence header, and its size.
        guard let unit = configuration.byte(4), unit >> 3 & 15 == 1, unit & 2 != 0, let size = configuration.byte(5),
            size < 128, let content = configuration.slice(6 + (unit >> 2 & 1), size)
        else { return nil }
        var bits = Bits(reader: ByteReader(content))
        let profile = bits.next(3)
        // `still_picture`, `reduced_still_picture_header`, then the level.
        guard bits.next(1) == 1, bits.next(1) == 1 else { return nil }
        bits.skip(5)
        let (width, height) = (bits.next(4) + 1, bits.next(4) + 1)
        // The width, the height, and six flags of coding tools.
        bits.skip(width + height + 6)
        let isDeep = bits.next(1) == 1
        if profile == 2, isDeep { bits.skip(1) }
        isMonochrome = profile != 1 && bits.next(1) == 1
        let hasNumbers = bits.next(1) == 1
        if hasNumbers { bits.skip(24) }
        isFullRange = bits.next(1) == 1
        guard !bits.isBehindEnd else { return nil }
    }

    private struct Bits {
        let reader: ByteReader
        private var position = 0
        private(set) var isBehindEnd = false

        init(reader: ByteReader) { self.reader = reader }

        mutating func next(_ count: Int) -> Int {
            var value = 0
            for _ in 0..<count {
                guard let byte = reader.byte(position / 8) else {
                    isBehindEnd = true
                    return 0
                }
                value = value << 1 | byte >> (7 - position % 8) & 1
                position += 1
            }
            return value
        }

        mutating func skip(_ count: Int) { position += count }
    }
}
