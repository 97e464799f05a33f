#if canImport(Glibc)
    import Glibc
#endif

/// The meaning of a gain map's values: by how much each pixel of the base image, which is in standard range, is
/// brightened.
///
/// With a value `v` in 0...1 of the map and a linear value `base` of the image, 1 being white in standard range, the
/// pixel is `(base + baseOffset) * 2^(w * gain(v)) - alternateOffset`. The weight `w` is 1 on a display with the whole
/// headroom and 0 without one (ISO 21496-1, section 6; Ultra HDR Image Format 1.1). Apple's maps have a formula of
/// their own and no offsets.
public struct GainMapMetadata: Sendable, Hashable {
    /// The parameters of one colour channel.
    public struct Channel: Sendable, Hashable {
        /// The gain of the map's values 0 and 1, as logarithms to base 2, -16...16.
        public var minimum = 0.0
        public var maximum = 0.0
        /// The exponent with which the map is encoded, 1/64...64.
        public var gamma = 1.0
        /// Added to linear values before the gain, and subtracted after it; -16...16.
        public var baseOffset = 1.0 / 64
        public var alternateOffset = 1.0 / 64

        public init(minimum: Double = 0, maximum: Double = 0) {
            self.minimum = minimum
            self.maximum = maximum
        }

        var isValid: Bool {
            [minimum, maximum, baseOffset, alternateOffset].allSatisfy { (-16...16).contains($0) }
                && (1.0 / 64...64).contains(gamma) && minimum <= maximum
        }
    }

    /// One channel for all colours, or red, green and blue.
    public var channels: [Channel]
    /// The headroom of a display that shows the base image alone, and of one that shows the whole gain, as logarithms
    /// to base 2. A headroom is the luminance of the brightest white over that of white in standard range.
    public var baseHeadroom = 0.0
    public var alternateHeadroom: Double
    /// True if values are encoded as by Apple's cameras: a fraction of the headroom, with the curve of BT.709.
    public var isApple = false

    /// Creates metadata of the logarithmic form.
    ///
    /// - Returns: nil unless every number is in its range and the base image is the one in standard range.
    public init?(channels: [Channel], baseHeadroom: Double, alternateHeadroom: Double) {
        guard [1, 3].contains(channels.count), channels.allSatisfy(\.isValid), (0...16).contains(baseHeadroom),
            (0...16).contains(alternateHeadroom), baseHeadroom < alternateHeadroom
        else { return nil }
        self.channels = channels
        self.baseHeadroom = baseHeadroom
        self.alternateHeadroom = alternateHeadroom
    }

    /// Creates the metadata of one of Apple's maps.
    ///
    /// - Parameter appleHeadroom: above 1, at most 65,536; else the result is nil
    public init?(appleHeadroom: Double) {
        guard appleHeadroom > 1 else { return nil }
        var channel = Channel(maximum: log2(appleHeadroom))
        (channel.baseOffset, channel.alternateOffset) = (0, 0)
        self.init(channels: [channel], baseHeadroom: 0, alternateHeadroom: channel.maximum)
        isApple = true
    }

    /// Reads the attributes of a map's XMP packet, in the namespace `http://ns.adobe.com/hdr-gain-map/1.0/`.
    init?(_ packet: XMPText) {
        guard packet.value(":BaseRenditionIsHDR")?.lowercased() != "true",
            let maximum = packet.numbers(":GainMapMax"), let alternate = packet.numbers(":HDRCapacityMax")?.first
        else { return nil }
        let lists = [
            packet.numbers(":GainMapMin") ?? [0], maximum, packet.numbers(":Gamma") ?? [1],
            packet.numbers(":OffsetSDR") ?? [1.0 / 64], packet.numbers(":OffsetHDR") ?? [1.0 / 64],
        ]
        guard lists.allSatisfy({ [1, 3].contains($0.count) }) else { return nil }
        let channels = (0..<(lists.map(\.count).max() ?? 1)).map { index in
            let values = lists.map { $0.count == 1 ? $0[0] : $0[index] }
            var channel = Channel(minimum: values[0], maximum: values[1])
            (channel.gamma, channel.baseOffset, channel.alternateOffset) = (values[2], values[3], values[4])
            return channel
        }
        let base = packet.numbers(":HDRCapacityMin")?.first ?? 0
        self.init(channels: channels, baseHeadroom: base, alternateHeadroom: alternate)
    }

    /// Reads the binary form (ISO 21496-1, annex C): two version numbers, flags, and fractions of 32-bit numbers.
    init?(iso block: ByteReader) {
        guard block.big16(0) == 0, let flags = block.byte(4) else { return nil }
        var offset = 5
        func number() -> UInt32? {
            guard let value = block.big32(offset) else { return nil }
            offset += 4
            return UInt32(value)
        }
        let hasCommonDenominator = flags & 0x08 != 0
        let common = hasCommonDenominator ? number() : nil
        func fraction(isSigned: Bool = false) -> Double? {
            guard let numerator = number(), let denominator = hasCommonDenominator ? common : number(), denominator > 0
            else { return nil }
            let value = isSigned ? Double(Int32(bitPattern: numerator)) : Double(numerator)
            return value / Double(denominator)
        }
        guard let base = fraction(), let alternate = fraction() else { return nil }
        var channels: [Channel] = []
        for _ in 0..<(flags & 0x80 == 0 ? 1 : 3) {
            guard let minimum = fraction(isSigned: true), let maximum = fraction(isSigned: true),
                let gamma = fraction(), let before = fraction(isSigned: true), let after = fraction(isSigned: true)
            else { return nil }
            var channel = Channel(minimum: minimum, maximum: maximum)
            (channel.gamma, channel.baseOffset, channel.alternateOffset) = (gamma, before, after)
            channels.append(channel)
        }
        self.init(channels: channels, baseHeadroom: base, alternateHeadroom: alternate)
    }

    // MARK: Values

    /// The largest headroom for which the map has a gain, at least 1.
    public var headroom: Double { exp2(alternateHeadroom) }

    /// Returns the gain that a value of the map stands for on a display with the whole headroom, as a logarithm to base
    /// 2.
    ///
    /// - Parameters:
    ///   - value: 0...1
    ///   - channel: 0...2; a map with one channel has the same gain for all
    public func gain(_ value: Double, channel: Int) -> Double {
        let channel = channels[min(channel, channels.count - 1)]
        guard isApple else {
            return channel.minimum + (channel.maximum - channel.minimum) * pow(value, 1 / channel.gamma)
        }
        // The inverse of the transfer function of ITU-R BT.709.
        let linear = value < 0.081 ? value / 4.5 : pow((value + 0.099) / 1.099, 1 / 0.45)
        return log2(1 + (headroom - 1) * linear)
    }

    /// Returns the fraction of the gain that a display shows, 0...1.
    ///
    /// - Parameter display: its headroom, at least 1
    public func weight(display: Double) -> Double {
        min(max((log2(display) - baseHeadroom) / (alternateHeadroom - baseHeadroom), 0), 1)
    }

    // MARK: Writing

    /// The same gains in the logarithmic form that ISO 21496-1 and XMP have. The values of one of Apple's maps have to
    /// be replaced by ``logarithmicValue(_:)``.
    var logarithmic: GainMapMetadata {
        var result = self
        result.isApple = false
        return result
    }

    /// Returns the value of the map that stands for the same gain in ``logarithmic``.
    public func logarithmicValue(_ value: Double) -> Double {
        isApple ? gain(value, channel: 0) / channels[0].maximum : value
    }

    /// The binary form of ISO 21496-1.
    var isoBytes: [UInt8] {
        func big(_ value: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }
        /// Writes a number with a denominator for which every valid number fits into 32 bits.
        func fraction(_ value: Double) -> [UInt8] {
            big(UInt32(bitPattern: Int32((value * 1_000_000).rounded()))) + big(1_000_000)
        }
        let flags: UInt8 = (channels.count == 3 ? 0x80 : 0) | 0x40
        return [0, 0, 0, 0, flags] + fraction(baseHeadroom) + fraction(alternateHeadroom)
            + channels.flatMap { channel in
                [channel.minimum, channel.maximum, channel.gamma, channel.baseOffset, channel.alternateOffset]
                    .flatMap(fraction)
            }
    }

    /// The properties of the map's XMP packet.
    var xmpProperties: String {
        func property(_ name: String, _ path: (Channel) -> Double) -> String {
            let values = channels.map { "<rdf:li>\(path($0))</rdf:li>" }.joined()
            return "<hdrgm:\(name)><rdf:Seq>\(values)</rdf:Seq></hdrgm:\(name)>"
        }
        return "<hdrgm:Version>1.0</hdrgm:Version><hdrgm:BaseRenditionIsHDR>False</hdrgm:BaseRenditionIsHDR>"
            + "<hdrgm:HDRCapacityMin>\(baseHeadroom)</hdrgm:HDRCapacityMin>"
            + "<hdrgm:HDRCapacityMax>\(alternateHeadroom)</hdrgm:HDRCapacityMax>"
            + property("GainMapMin", \.minimum) + property("GainMapMax", \.maximum) + property("Gamma", \.gamma)
            + property("OffsetSDR", \.baseOffset) + property("OffsetHDR", \.alternateOffset)
    }
}
