// The definitions of the operations that read neighbouring pixels or depend on the frame.

extension AdjustmentKind {
    var declaredDetail: Declared {
        switch self {
        case .noiseReduction:
            (
                "Smooths noise and keeps edges: a mean over 5 by 5 pixels, weighted by distance and by similarity of "
                    + "brightness (luminance) and of colour (colour), on encoded values. A preview at less than half "
                    + "size skips it because scaling removes the noise.",
                [Self.slider(0...1, name: "luminance"), Self.slider(0...1, name: "colour")]
            )
        case .clarity:
            (
                "Contrast of the middle tones against their surroundings, which reach over a fiftieth of the longer "
                    + "side: v becomes v + value (Y - blurred Y) 4 Y (1 - Y), on encoded values; the blur is three box "
                    + "means in a row.",
                [Self.slider()]
            )
        case .sharpen:
            (
                "Unsharp mask on brightness: v becomes v + amount (Y - blurred Y) where that difference is at least "
                    + "the threshold, on encoded values; the blur is a Gaussian cut at three times its radius.",
                [
                    Self.slider(0...3, name: "amount"), Self.modifier("radius", 0.3...5, "pixels of the result", 1),
                    Self.modifier("threshold", 0...0.2, "encoded value", 0),
                ]
            )
        case .vignette:
            (
                "Darkens (negative) or brightens the corners: light is multiplied by 2^(2 value s), where s rises "
                    + "smoothly (t^2 (3 - 2 t)) over feather, centred on midpoint; both in half diagonals from the "
                    + "centre.",
                [
                    Self.slider(), Self.modifier("midpoint", 0...1, "half diagonals", 0.7),
                    Self.modifier("feather", 0.01...1, "half diagonals", 0.6),
                ]
            )
        case .grain:
            (
                "Adds the same grey noise to every channel: value / 5 times smooth noise in -1...1, whose cells "
                    + "have the given size; the same seed gives the same grain.",
                [
                    Self.slider(0...1), Self.modifier("size", 0.0002...0.02, "longer sides", 0.001),
                    AdjustmentParameter(
                        "seed",
                        .whole(0...65_535),
                        "number",
                        default: .whole(0),
                        isModifier: true
                    ),
                ]
            )
        case .textWatermark:
            (
                "Draws a line of text over the image, as wide as \"size\" and at most as high as the image.",
                [
                    AdjustmentParameter(
                        "text",
                        .text(maxBytes: 200),
                        "characters of the installed fonts; others are refused by name",
                        default: .text(""),
                        neutral: .text("")
                    ),
                    AdjustmentParameter("colour", .colour, "sRGB", default: .text("#ffffff"), isModifier: true),
                ] + Self.placement
            )
        default:
            (
                "Draws an image with transparency over the image, as wide as \"size\".",
                [
                    AdjustmentParameter(
                        "picture",
                        .picture(maxCharacters: 262_144),
                        "PNG or JPEG in Base64",
                        default: .text(""),
                        neutral: .text("")
                    )
                ] + Self.placement
            )
        }
    }

    private static let placement: [AdjustmentParameter] = [
        AdjustmentParameter(
            "position",
            .choice(
                [
                    "topLeft", "top", "topRight", "left", "centre", "right", "bottomLeft", "bottom", "bottomRight",
                ].map { .text($0) }
            ),
            "position in the image",
            default: .text("bottomRight"),
            isModifier: true
        ),
        modifier("size", 0.01...1, "widths of the result", 0.2),
        modifier("margin", 0...0.4, "shorter sides of the result", 0.02),
        modifier("opacity", 0...1, "strength", 0.7),
    ]
}
