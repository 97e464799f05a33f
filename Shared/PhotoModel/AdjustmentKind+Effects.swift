// The definitions of ImageMagick's effects and of what is put around a picture.

extension AdjustmentKind {
    var declaredEffect: Declared {
        let result = "pixels of the result"
        return switch self {
        case .blur: ("A Gaussian blur.", [Self.slider(0...50, result, name: "radius", byDefault: 2)])
        case .motionBlur:
            (
                "A blur along a line, as by a camera that moved.",
                [
                    Self.slider(0...50, result, name: "radius", byDefault: 8),
                    Self.shape("angle", -180...180, "degrees", 0),
                ]
            )
        case .radialBlur:
            ("A blur around the centre, as by a camera that turned.", [Self.slider(0...90, "degrees", byDefault: 5)])
        case .adaptiveSharpen:
            ("Sharpens edges more than areas.", [Self.slider(0...5, result, name: "radius", byDefault: 1)])
        case .median:
            (
                "The median of a square that reaches this far from each pixel.",
                [Self.wholeSlider(0...5, result, name: "radius", byDefault: 1)]
            )
        case .despeckle: ("Removes single bright and dark pixels.", [Self.wholeSlider(0...4, "passes", byDefault: 1)])
        case .posterize:
            (
                "Keeps this number of values for each channel.",
                [Self.wholeSlider(2...256, "values", name: "levels", byDefault: 4, neutral: 256)]
            )
        case .solarize:
            (
                "Inverts the values above the threshold, as film that light fell on while it was developed.",
                [Self.slider(0...1, "encoded value", name: "threshold", byDefault: 0.5, neutral: 1)]
            )
        case .charcoal: ("A charcoal drawing.", [Self.slider(0...10, result, name: "radius", byDefault: 1)])
        case .oilPaint:
            (
                "An oil painting: the most frequent colour around each pixel.",
                [Self.slider(0...10, result, name: "radius", byDefault: 3)]
            )
        case .emboss: ("A relief, lit from the upper left.", [Self.slider(0...5, result, name: "radius", byDefault: 1)])
        case .edge: ("Bright edges on black.", [Self.slider(0...5, result, name: "radius", byDefault: 1)])
        case .swirl:
            (
                "Turns the picture about its centre, the less the farther from it.",
                [Self.slider(-720...720, "degrees", byDefault: 60)]
            )
        case .implode:
            ("Draws the picture to its centre (positive) or away from it.", [Self.slider(-1...1, byDefault: 0.3)])
        case .normalize:
            (
                "Mixes with the picture whose tones are stretched so that 2 % of the pixels become black and 1 % white.",
                [Self.slider(0...1, byDefault: 1)]
            )
        case .equalize:
            ("Mixes with the picture whose tones are all as frequent.", [Self.slider(0...1, byDefault: 1)])
        case .contrastStretch:
            (
                "Mixes with the picture whose tones are stretched so that the given shares of pixels become black and white.",
                [
                    Self.slider(0...1, byDefault: 1), Self.shape("black", 0...0.5, "share of the pixels", 0.01),
                    Self.shape("white", 0...0.5, "share of the pixels", 0.01),
                ]
            )
        case .colorize: ("Mixes with a colour.", [Self.slider(0...1, byDefault: 0.3), Self.paint("#704214")])
        default:
            (
                "Adds a colour to the middle tones: ImageMagick's -tint.",
                [Self.slider(0...1, byDefault: 0.5), Self.paint("#704214")]
            )
        }
    }

    var declaredFrame: Declared {
        let size = Self.slider(0...0.5, "shorter sides of the picture", name: "size", byDefault: 0.04)
        return switch self {
        case .border: ("Adds a border of one colour on all sides.", [size, Self.paint("#ffffff")])
        case .frame: ("Adds a frame with bevels on all sides.", [size, Self.paint("#bdbdbd")])
        default:
            (
                "Rounds the corners; outside them is the colour.",
                [
                    Self.slider(0...0.5, "shorter sides of the picture", name: "radius", byDefault: 0.05),
                    Self.paint("#ffffff"),
                ]
            )
        }
    }

    private static func wholeSlider(
        _ range: ClosedRange<Int>,
        _ unit: String,
        name: String = "value",
        byDefault: Int,
        neutral: Int = 0
    ) -> AdjustmentParameter {
        AdjustmentParameter(name, .whole(range), unit, byDefault: .whole(byDefault), neutral: .whole(neutral))
    }

    private static func paint(_ byDefault: String) -> AdjustmentParameter {
        AdjustmentParameter("colour", .colour, "sRGB", byDefault: .word(byDefault), isShape: true)
    }
}
