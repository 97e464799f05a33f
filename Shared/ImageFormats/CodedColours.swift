/// A colour space that a file specifies by numbers instead of a profile: those of ITU-T H.273 in PNG, HEIC, AVIF and
/// JPEG XL, or `gAMA` and `cHRM` of a PNG.
public struct CodedColours: Sendable, Hashable {
    /// A colour without its brightness: x and y of CIE 1931.
    public struct Chromaticity: Sendable, Hashable {
        public var x: Double
        public var y: Double

        public init(_ x: Double, _ y: Double) {
            self.x = x
            self.y = y
        }
    }

    /// The colours of the three components of a pixel, and that of white.
    public struct Primaries: Sendable, Hashable {
        public var red: Chromaticity
        public var green: Chromaticity
        public var blue: Chromaticity
        public var white: Chromaticity

        public init(red: Chromaticity, green: Chromaticity, blue: Chromaticity, white: Chromaticity = .d65) {
            self.red = red
            self.green = green
            self.blue = blue
            self.white = white
        }
    }

    /// The transfer function, which converts a component to linear light.
    public enum Transfer: Sendable, Hashable {
        case sRGB
        /// Linear light is the component to this power, which is more than 0.
        case power(Double)
        /// PQ (SMPTE ST 2084): high dynamic range.
        case perceptualQuantizer
        /// HLG (ARIB STD-B67): high dynamic range.
        case hybridLogGamma
    }

    public var primaries: Primaries
    public var transfer: Transfer

    public static let sRGB = CodedColours(primaries: .bt709, transfer: .sRGB)
    public static let displayP3 = CodedColours(primaries: .p3, transfer: .sRGB)

    /// True if the brightest value is brighter than white.
    public var isHighDynamicRange: Bool { transfer == .perceptualQuantizer || transfer == .hybridLogGamma }

    public init(primaries: Primaries, transfer: Transfer) {
        self.primaries = primaries
        self.transfer = transfer
    }

    /// Creates the colours for numbers of ITU-T H.273, tables 2 and 3; nil for unknown numbers.
    ///
    /// The curves of standard-range television are treated as that of sRGB, because they are displayed so. Unspecified
    /// numbers (2) are those of sRGB.
    public init?(primaries: Int, transfer: Int) {
        guard let primaries = Primaries(code: primaries), let transfer = Transfer(code: transfer) else { return nil }
        self.init(primaries: primaries, transfer: transfer)
    }
}

extension CodedColours.Chromaticity {
    public static let d65 = Self(0.3127, 0.329)
    static let illuminantC = Self(0.31, 0.316)
}

extension CodedColours.Primaries {
    public static let bt709 = Self(red: .init(0.64, 0.33), green: .init(0.3, 0.6), blue: .init(0.15, 0.06))
    public static let bt2020 = Self(red: .init(0.708, 0.292), green: .init(0.17, 0.797), blue: .init(0.131, 0.046))
    /// P3 with the white of daylight, as in Display P3.
    public static let p3 = Self(red: .init(0.68, 0.32), green: .init(0.265, 0.69), blue: .init(0.15, 0.06))

    fileprivate init?(code: Int) {
        switch code {
        case 1, 2: self = .bt709
        case 4:
            self = .init(red: .init(0.67, 0.33), green: .init(0.21, 0.71), blue: .init(0.14, 0.08), white: .illuminantC)
        case 5: self = .init(red: .init(0.64, 0.33), green: .init(0.29, 0.6), blue: .init(0.15, 0.06))
        case 6, 7: self = .init(red: .init(0.63, 0.34), green: .init(0.31, 0.595), blue: .init(0.155, 0.07))
        case 9: self = .bt2020
        case 11:
            self = .p3
            white = .init(0.314, 0.351)
        case 12: self = .p3
        case 22: self = .init(red: .init(0.63, 0.34), green: .init(0.295, 0.605), blue: .init(0.155, 0.077))
        default: return nil
        }
    }
}

extension CodedColours.Transfer {
    fileprivate init?(code: Int) {
        switch code {
        case 1, 2, 6, 7, 11, 12, 13, 14, 15: self = .sRGB
        case 4: self = .power(2.2)
        case 5: self = .power(2.8)
        case 8: self = .power(1)
        case 16: self = .perceptualQuantizer
        case 18: self = .hybridLogGamma
        default: return nil
        }
    }
}
