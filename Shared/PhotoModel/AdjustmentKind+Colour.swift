// The definitions of the tone and colour operations.
//
// In the formulas v is each of the three channels, sRGB-encoded, in 0...1; Y is 0.2126 R + 0.7152 G + 0.0722 B; "light"
// is linear light with sRGB primaries. Operations on light do not clip; all others clip their input to 0...1.

extension AdjustmentKind {
    typealias Declared = (String, [AdjustmentParameter])

    static func slider(
        _ range: ClosedRange<Double> = -1...1,
        _ unit: String = "strength",
        name: String = "value",
        default defaultValue: Double = 0,
        neutral: Double = 0
    ) -> AdjustmentParameter {
        AdjustmentParameter(
            name,
            .number(range),
            unit,
            default: .number(defaultValue),
            neutral: .number(neutral)
        )
    }

    /// Returns a member that changes how the operation works, but not whether it is neutral.
    static func modifier(
        _ name: String,
        _ range: ClosedRange<Double>,
        _ unit: String,
        _ defaultValue: Double
    ) -> AdjustmentParameter {
        AdjustmentParameter(name, .number(range), unit, default: .number(defaultValue), isModifier: true)
    }

    var declaredTone: Declared {
        switch self {
        case .exposure: ("Multiplies light by 2 to the power of the value (stops).", [Self.slider(-5...5, "stops")])
        case .brightness:
            (
                "Brightens (positive) or darkens the middle tones, black and white unchanged: v becomes v^(2^-value).",
                [Self.slider()]
            )
        case .contrast:
            (
                "An S-curve about middle grey on sRGB-encoded values, black and white unchanged: v < 1/2 becomes "
                    + "(2v)^g / 2, the upper half mirrors it, g = 2^value. The opposite value undoes it.",
                [Self.slider()]
            )
        case .highlights:
            ("Brightens or darkens the bright tones: v becomes v + value v^2 (1 - v).", [Self.slider()])
        case .shadows: ("Brightens or darkens the dark tones: v becomes v + value v (1 - v)^2.", [Self.slider()])
        case .whites: ("Moves the white end: v becomes v + value v^3 / 4, clipped.", [Self.slider()])
        case .blacks: ("Moves the black end: v becomes v + value (1 - v)^3 / 4, clipped.", [Self.slider()])
        case .levels:
            (
                "Stretches the tones from black to white over the whole range, bends the middle and moves the ends: "
                    + "t = (v - black) / (white - black) clipped to 0...1, v becomes outputBlack + "
                    + "(outputWhite - outputBlack) t^(1 / gamma).",
                [
                    Self.slider(0...0.99, "encoded value", name: "black"),
                    Self.slider(0.01...1, "encoded value", name: "white", default: 1, neutral: 1),
                    Self.slider(0.1...10, "exponent", name: "gamma", default: 1, neutral: 1),
                    Self.slider(0...1, "encoded value", name: "outputBlack"),
                    Self.slider(0...1, "encoded value", name: "outputWhite", default: 1, neutral: 1),
                ]
            )
        default:
            (
                "Curves through points on encoded values: first \"master\" on every channel, then each channel's own. "
                    + "Between points runs a monotone cubic (Fritsch and Carlson, harmonic mean slopes), beyond the "
                    + "ends the curve is level.",
                ["master", "red", "green", "blue"].map { name in
                    AdjustmentParameter(
                        name,
                        .points,
                        "encoded values",
                        default: .points(CurvePoint.straight),
                        neutral: .points(CurvePoint.straight)
                    )
                }
            )
        }
    }

    /// The maximum number of characters of the table of a `lut`: about 1.4 MB, so that the list fits into adjustment
    /// data.
    public static let maxTableCharacters = 1_900_000

    var declaredColour: Declared {
        switch self {
        case .temperature:
            (
                "Warmer (positive) or cooler light: in linear light red is multiplied by 2^(value/2) and blue by "
                    + "2^(-value/2), and all three are divided by the luminance of the changed white: grey keeps its "
                    + "luminance.",
                [Self.slider()]
            )
        case .tint:
            (
                "Towards magenta (positive) or green: in linear light green is multiplied by 2^(-value/2), and all "
                    + "three are divided by the luminance of the changed white.",
                [Self.slider()]
            )
        case .saturation:
            (
                "Moves colours away from (positive) or towards (negative) the grey of the same luminance, in linear "
                    + "light; -1 is grey.",
                [Self.slider()]
            )
        case .vibrance:
            (
                "Saturation that affects already colourful pixels less: v becomes Y + (v - Y) (1 + value (1 - c)), "
                    + "c = max(R, G, B) - min(R, G, B).",
                [Self.slider()]
            )
        case .hsl:
            (
                "Hue, saturation and luminance by band of colour. A pixel's hue lies between two of the centres "
                    + "\(ColourBand.text); the two are weighted by nearness (sum 1). With c = max - min and "
                    + "l = (max + min) / 2 the hue moves by 30 degrees times Hue, c becomes c (1 + Saturation), and l "
                    + "becomes l + c Luminance / 2. Grey stays as it is.",
                ColourBand.allCases.flatMap { band in
                    ["Hue", "Saturation", "Luminance"].map { Self.slider(name: band.rawValue + $0) }
                }
            )
        case .modulate:
            (
                "Multiplies lightness (first) and saturation of the double cone of hue, saturation and lightness (HSL), and "
                    + "turns the hue, on encoded values: ImageMagick's -modulate. The result is clipped.",
                [
                    Self.slider(0...3, "factor", name: "brightness", default: 1, neutral: 1),
                    Self.slider(0...4, "factor", name: "saturation", default: 1, neutral: 1),
                    Self.slider(-180...180, "degrees", name: "hue"),
                ]
            )
        case .blackAndWhite:
            (
                "Mixes with the grey of the same luminance in linear light; 1 is black and white.",
                [Self.slider(0...1, default: 1)]
            )
        case .blackAndWhiteMix:
            (
                "Mixes with a grey in which each band of colour is brighter or darker: grey = Y + c b / 2, where c is "
                    + "max - min and b the values of the bands weighted as in \"hsl\".",
                [Self.slider(0...1, default: 1)]
                    + ColourBand.allCases.map { Self.modifier($0.rawValue, -1...1, "strength", 0) }
            )
        case .sepia:
            (
                "Mixes with brown: R = 0.393 r + 0.769 g + 0.189 b, G = 0.349 r + 0.686 g + 0.168 b, "
                    + "B = 0.272 r + 0.534 g + 0.131 b, each clipped to 1.",
                [Self.slider(0...1, default: 1)]
            )
        case .toning:
            (
                "Mixes with a monochrome image: Y + 2 Y (1 - Y) t, where t is the pure colour of the hue less "
                    + "its own Y, so that the tone keeps its brightness.",
                [Self.slider(0...1, default: 1), Self.modifier("hue", 0...360, "degrees", 35)]
            )
        case .lut:
            (
                "Looks colours up in a table (a film look): each colour is mixed with the table's, on encoded values. "
                    + "Between the points of the table values are linear in each direction. Without a table nothing changes.",
                [
                    Self.slider(0...1, default: 1),
                    AdjustmentParameter(
                        "table",
                        .table(maxCharacters: Self.maxTableCharacters),
                        "a PNG or a .cube file in Base64: the PNG a HALD CLUT, or any PNG whose pixels, row by row, are "
                            + "the points of a cube, red changing fastest; one row is a curve for each channel",
                        default: .text(""),
                        isModifier: true
                    ),
                ]
            )
        default:
            (
                "Colours dark and bright tones separately: v + 2 Y (1 - Y) ((1 - w) s t(shadows) + w s t(highlights)), "
                    + "w = Y + balance / 2 clipped to 0...1, s the saturations and t as in \"toning\".",
                [
                    Self.slider(0...1, name: "shadowSaturation"), Self.slider(0...1, name: "highlightSaturation"),
                    Self.modifier("shadowHue", 0...360, "degrees", 220),
                    Self.modifier("highlightHue", 0...360, "degrees", 45),
                    Self.modifier("balance", -1...1, "towards the highlights", 0),
                ]
            )
        }
    }
}

/// The colour bands of `hsl` and `blackAndWhiteMix`.
public enum ColourBand: String, Sendable, Hashable, CaseIterable {
    case red, orange, yellow, green, aqua, blue, purple, magenta

    /// The hue at the centre of the band, in degrees of the colour hexagon.
    public var centre: Double {
        switch self {
        case .red: 0
        case .orange: 30
        case .yellow: 60
        case .green: 120
        case .aqua: 180
        case .blue: 240
        case .purple: 270
        case .magenta: 300
        }
    }

    static let text = allCases.map { "\($0.rawValue) \(Int($0.centre))" }.joined(separator: ", ")
}
