import Foundation
import JSONValue

extension MagickOperator {
    static let colour: [MagickOperator] = [
        MagickOperator("-modulate", "BRIGHTNESS,SATURATION,HUE") { (state, operand) throws(MagickOptionError) in
            let (values, isPercent) = try operand.numbers(1...3)
            guard !isPercent else { throw operand.refusal() }
            let hue = values.count > 2 ? 1.8 * (values[2] - 100) : 0
            // A full turn of the hue changes nothing.
            let normalizedHue = hue - 360 * (hue / 360).rounded()
            try state.add(
                .modulate,
                [
                    "brightness": .double(values[0] / 100),
                    "saturation": .double(values.count > 1 ? values[1] / 100 : 1), "hue": .double(normalizedHue),
                ],
                operand
            )
        },
        MagickOperator("-level", "BLACK%,WHITE%,GAMMA") { (state, operand) throws(MagickOptionError) in
            let (values, isPercent) = try operand.numbers(1...3)
            let full = isPercent ? 100.0 : 65_535
            let black = values[0] / full
            let white = values.count > 1 ? values[1] / full : 1 - black
            let gamma = values.count > 2 ? values[2] : 1
            let members: JSONObject = ["black": .double(black), "white": .double(white), "gamma": .double(gamma)]
            try state.add(.levels, members, operand)
        },
        MagickOperator("+level", "BLACK%,WHITE%") { (state, operand) throws(MagickOptionError) in
            let (values, isPercent) = try operand.numbers(1...2)
            let full = isPercent ? 100.0 : 65_535
            let black = values[0] / full
            let white = values.count > 1 ? values[1] / full : 1 - black
            try state.add(.levels, ["outputBlack": .double(black), "outputWhite": .double(white)], operand)
        },
        MagickOperator("-gamma", "N") { (state, operand) throws(MagickOptionError) in
            try state.add(.levels, ["gamma": .double(try operand.number())], operand)
        },
        MagickOperator("-negate") { (state, operand) throws(MagickOptionError) in
            try state.add(.levels, ["outputBlack": 1, "outputWhite": 0], operand)
        },
        MagickOperator("-brightness-contrast", "BRIGHTNESSxCONTRAST") { (state, operand) throws(MagickOptionError) in
            let geometry = try contrast(operand)
            let slope = max(0, tan(.pi * (geometry.contrast / 100 + 1) / 4))
            let shift = geometry.brightness / 100 + (100 - geometry.brightness) / 200 * (1 - slope)
            try addLine(&state, operand, slope, shift)
        },
        MagickOperator("-evaluate", "Multiply|Add|Subtract|Divide N", operandCount: 2) {
            (state, operand) throws(MagickOptionError) in
            let second = MagickOperand(
                option: operand.option,
                words: Array(operand.words.dropFirst()),
                usage: operand.usage
            )
            let isPercent = second.word.text.hasSuffix("%")
            let number = try second.number(allowsPercent: true)
            let fraction = isPercent ? number / 100 : number / 65_535
            switch operand.word.text.lowercased() {
            case "add": try addLine(&state, second, 1, fraction)
            case "subtract": try addLine(&state, second, 1, -fraction)
            case "multiply" where !isPercent: try addLine(&state, second, number, 0)
            case "divide" where !isPercent && number != 0: try addLine(&state, second, 1 / number, 0)
            default: throw operand.refusal()
            }
        },
        MagickOperator("-sigmoidal-contrast", "CONTRASTxMIDPOINT%") { (state, operand) throws(MagickOptionError) in
            let (values, isPercent) = try operand.numbers(1...2)
            guard (0.5...12).contains(values[0]), values.count == 1 || isPercent else {
                throw operand.refusal(because: "is not a contrast of 0.5 to 12 and a midpoint in percent")
            }
            let middle = values.count == 2 ? values[1] / 100 : 0.5
            guard (0...1).contains(middle) else { throw operand.refusal() }
            func logistic(_ value: Double) -> Double { 1 / (1 + exp(values[0] * (middle - value))) }
            let (low, high) = (logistic(0), logistic(1))
            let points = (0..<16).map { index -> JSON in
                let x = Double(index) / 15
                return [.double(x), .double(min(1, max(0, (logistic(x) - low) / (high - low))))]
            }
            try state.add(.curve, ["master": .array(points)], operand)
        },
        grey("-colorspace", "Gray", ["gray", "grey"]), grey("-grayscale", "Rec709Luma", ["rec709luma"]),
    ]

    private static func contrast(_ operand: MagickOperand) throws(MagickOptionError) -> (
        brightness: Double, contrast: Double
    ) {
        let (values, isPercent) = try operand.numbers(1...2)
        guard !isPercent, values.allSatisfy({ (-100...100).contains($0) }) else { throw operand.refusal() }
        return (values[0], values.count == 2 ? values[1] : 0)
    }

    private static func grey(_ name: String, _ usage: String, _ words: [String]) -> MagickOperator {
        MagickOperator(name, usage) { (state, operand) throws(MagickOptionError) in
            guard words.contains(operand.word.text.lowercased()) else { throw operand.refusal() }
            try state.add(.blackAndWhiteMix, ["value": 1], operand)
        }
    }

    /// Adds levels that multiply a value by the slope and add a shift, clipped.
    private static func addLine(
        _ state: inout MagickTranslation,
        _ operand: MagickOperand,
        _ slope: Double,
        _ shift: Double
    ) throws(MagickOptionError) {
        guard slope >= 0 else { throw operand.refusal() }
        let start = slope > 0 ? max(0, -shift / slope) : 0
        let end = slope > 0 ? min(1, (1 - shift) / slope) : 1
        let members: JSONObject = [
            "black": .double(start), "white": .double(end), "outputBlack": .double(clipped(shift + slope * start)),
            "outputWhite": .double(clipped(shift + slope * end)),
        ]
        try state.add(.levels, members, operand)
    }

    private static func clipped(_ value: Double) -> Double { min(1, max(0, value)) }
}
