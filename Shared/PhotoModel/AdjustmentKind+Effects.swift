// The definitions of ImageMagick's effects, and of the operations that add to an image on all sides.

extension AdjustmentKind {
    var declaredEffect: Declared {
        let result = "pixels of the result"
        return switch self {
        case .blur: ("A Gaussian blur.", [Self.slider(0...50, result, name: "radius", default: 2)])
        case .motionBlur:
            (
                "A blur along a line, as if the camera had moved.",
                [
                    Self.slider(0...50, result, name: "radius", default: 8),
                    Self.modifier("angle", -180...180, "degrees", 0),
                ]
            )
        case .radialBlur:
            ("A blur around the centre, as if the camera had turned.", [Self.slider(0...90, "degrees", default: 5)])
        case .adaptiveSharpen:
            ("Sharpens edges more than areas.", [Self.slider(0...5, result, name: "radius", default: 1)])
        case .median:
            (
                "Replaces each pixel by the median of the square with this radius around it.",
                [Self.wholeSlider(0...5, result, name: "radius", default: 1)]
            )
        case .despeckle: ("Removes single bright and dark pixels.", [Self.wholeSlider(0...4, "passes", default: 1)])
        case .posterize:
            (
                "Keeps this number of values for each channel.",
                [Self.wholeSlider(2...256, "values", name: "levels", default: 4, neutral: 256)]
            )
        case .solarize:
            (
                "Inverts the values above the threshold, as film exposed to light while it was developed.",
                [Self.slider(0...1, "encoded value", name: "threshold", default: 0.5, neutral: 1)]
            )
        case .charcoal: ("A charcoal drawing.", [Self.slider(0...10, result, name: "radius", default: 1)])
        case .oilPaint:
            (
                "An oil painting: the most frequent colour around each pixel.",
                [Self.slider(0...10, result, name: "radius", default: 3)]
            )
        case .emboss: ("A relief, lit from the upper left.", [Self.slider(0...5, result, name: "radius", default: 1)])
        case .edge: ("Bright edges on black.", [Self.slider(0...5, result, name: "radius", default: 1)])
        case .swirl:
            (
                "Turns the image about its centre, less at a greater distance from it.",
                [Self.slider(-720...720, "degrees", default: 60)]
            )
        case .implode:
            (
                "Pulls pixels towards the centre (positive) or pushes them away from it.",
                [Self.slider(-1...1, default: 0.3)]
            )
        case .normalize:
            (
                "Mixes with the image whose tones are stretched so that 2 % of the pixels become black and 1 % white.",
                [Self.slider(0...1, default: 1)]
            )
        case .equalize:
            ("Mixes with the image with an equalized histogram.", [Self.slider(0...1, default: 1)])
        case .contrastStretch:
            (
                "Mixes with the image whose tones are stretched so that the given shares of pixels become black and white.",
                [
                    Self.slider(0...1, default: 1), Self.modifier("black", 0...0.5, "share of the pixels", 0.01),
                    Self.modifier("white", 0...0.5, "share of the pixels", 0.01),
                ]
            )
        case .colorize: ("Mixes with a colour.", [Self.slider(0...1, default: 0.3), Self.paint("#704214")])
        case .unsharpMask, .sketch, .wave, .liquidRescale, .trim, .deskew: declaredOtherEffect
        default:
            (
                "Adds a colour to the middle tones: ImageMagick's -tint.",
                [Self.slider(0...1, default: 0.5), Self.paint("#704214")]
            )
        }
    }

    /// The other effects: sharpening, sketching, and those that change the size of the image.
    private var declaredOtherEffect: Declared {
        let result = "pixels of the result"
        return switch self {
        case .unsharpMask:
            (
                "Sharpens each channel: adds amount times the difference from a Gaussian blur where twice that difference "
                    + "is at least the threshold.",
                [
                    Self.slider(0...5, name: "amount"), Self.modifier("radius", 0.3...10, result, 1),
                    Self.modifier("threshold", 0...0.5, "encoded value", 0),
                ]
            )
        case .sketch:
            (
                "A pencil drawing with strokes in one direction; the same image gives the same strokes.",
                [
                    Self.slider(0...20, result, name: "radius", default: 8),
                    Self.modifier("angle", -180...180, "degrees", 120),
                ]
            )
        case .wave:
            (
                "Moves columns up and down along a sine; the image becomes taller by twice the amplitude.",
                [
                    Self.slider(-200...200, result, name: "amplitude", default: 10),
                    Self.modifier("wavelength", 4...10_000, result, 100), Self.paint("#ffffff"),
                ]
            )
        case .liquidRescale:
            (
                "Scales by removing or duplicating seams where the image has little detail (seam carving).",
                [
                    Self.slider(0.25...1.5, "sides", name: "width", default: 1, neutral: 1),
                    Self.slider(0.25...1.5, "sides", name: "height", default: 1, neutral: 1),
                ]
            )
        case .trim:
            (
                "Cuts off edges of the colour of the corners (1), or leaves them (0). An image of one colour is left "
                    + "unchanged.",
                [
                    Self.wholeSlider(0...1, "times", default: 1),
                    Self.modifier("fuzz", 0...0.5, "difference of colours that counts as equal", 0.05),
                ]
            )
        default:
            (
                "Rotates a scan so that its lines are horizontal; exposed corners are filled with the colour.",
                [
                    Self.slider(0...1, "encoded value", name: "threshold", default: 0.4), Self.paint("#ffffff"),
                ]
            )
        }
    }

    var declaredFrame: Declared {
        let size = Self.slider(0...0.5, "shorter sides of the picture", name: "size", default: 0.04)
        return switch self {
        case .border: ("Adds a border of one colour on all sides.", [size, Self.paint("#ffffff")])
        case .frame: ("Adds a frame with bevels on all sides.", [size, Self.paint("#bdbdbd")])
        case .polaroid:
            (
                "An instant photo that lies on a surface of the colour: a white border, slightly bent and turned, with a "
                    + "shadow.",
                [
                    Self.wholeSlider(0...1, "times", default: 1), Self.modifier("angle", -45...45, "degrees", 5),
                    Self.paint("#ffffff"),
                ]
            )
        case .shadow:
            (
                "A soft shadow to the lower right, on a surface of the colour.",
                [
                    Self.slider(0...1, name: "opacity", default: 0.6),
                    Self.modifier("size", 0.002...0.05, "shorter sides of the picture", 0.006), Self.paint("#ffffff"),
                ]
            )
        default:
            (
                "Rounds the corners and fills the area outside them with the colour.",
                [
                    Self.slider(0...0.5, "shorter sides of the picture", name: "radius", default: 0.05),
                    Self.paint("#ffffff"),
                ]
            )
        }
    }

    private static func wholeSlider(
        _ range: ClosedRange<Int>,
        _ unit: String,
        name: String = "value",
        default defaultValue: Int,
        neutral: Int = 0
    ) -> AdjustmentParameter {
        AdjustmentParameter(name, .whole(range), unit, default: .whole(defaultValue), neutral: .whole(neutral))
    }

    private static func paint(_ defaultValue: String) -> AdjustmentParameter {
        AdjustmentParameter("colour", .colour, "sRGB", default: .text(defaultValue), isModifier: true)
    }
}
