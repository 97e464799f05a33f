// The definitions of the operations that move pixels.

extension AdjustmentKind {
    var declaredGeometry: Declared {
        switch self {
        case .crop:
            (
                "Keeps a rectangle of the image as displayed at this point of the list, as fractions of its sides; the "
                    + "edges fall on whole pixels.",
                [
                    Self.slider(0...1, "sides", name: "x"), Self.slider(0...1, "sides", name: "y"),
                    Self.slider(0.001...1, "sides", name: "width", default: 1, neutral: 1),
                    Self.slider(0.001...1, "sides", name: "height", default: 1, neutral: 1),
                ]
            )
        case .straighten:
            (
                "Rotates the image clockwise about its centre and crops to the largest rectangle of the same aspect "
                    + "ratio inside it.",
                [Self.slider(-45...45, "degrees")]
            )
        case .rotate:
            (
                "Rotates the image clockwise by quarter turns, losslessly.",
                [
                    AdjustmentParameter(
                        "value",
                        .choice([.whole(90), .whole(180), .whole(270)]),
                        "degrees clockwise",
                        default: .whole(90)
                    )
                ]
            )
        case .flip:
            (
                "Mirrors the image: horizontal swaps left and right, vertical swaps top and bottom.",
                [
                    AdjustmentParameter(
                        "value",
                        .choice([.text("horizontal"), .text("vertical")]),
                        "direction",
                        default: .text("horizontal")
                    )
                ]
            )
        case .perspective:
            (
                "Makes the area between four corners the whole image, as seen from straight ahead. The result is as "
                    + "wide as the mean of the upper and the lower edge, and as high as the mean of the left and the "
                    + "right one.",
                [
                    ("topLeft", 0.0, 0.0), ("topRight", 1, 0), ("bottomRight", 1, 1), ("bottomLeft", 0, 1),
                ].flatMap { name, x, y in
                    [
                        Self.slider(0...1, "sides", name: name + "X", default: x, neutral: x),
                        Self.slider(0...1, "sides", name: name + "Y", default: y, neutral: y),
                    ]
                }
            )
        default:
            (
                "Scales down so that the image fits into width and height; 0 is no limit. Never enlarges.",
                ["width", "height"].map { name in
                    AdjustmentParameter(
                        name,
                        .whole(0...65_500),
                        "pixels",
                        default: .whole(0),
                        neutral: .whole(0)
                    )
                }
            )
        }
    }
}
