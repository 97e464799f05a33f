import Foundation
import JSONValue

/// An option of `convert` that is allowed, and its translation.
struct MagickOperator: Sendable {
    let name: String
    /// The grammar of its arguments; empty if it has none.
    let usage: String
    let operandCount: Int
    let apply: @Sendable (inout MagickTranslation, MagickOperand) throws(MagickOptionError) -> Void

    init(
        _ name: String,
        _ usage: String = "",
        operandCount: Int? = nil,
        _ apply: @escaping @Sendable (inout MagickTranslation, MagickOperand) throws(MagickOptionError) -> Void
    ) {
        self.name = name
        self.usage = usage
        self.operandCount = operandCount ?? (usage.isEmpty ? 0 : 1)
        self.apply = apply
    }

    /// All options, in the order of the documentation.
    static let all = settings + geometry + colour + effects
    static let byName = Dictionary(uniqueKeysWithValues: all.map { ($0.name, $0) })

    private static let settings: [MagickOperator] = [
        MagickOperator("-auto-orient") { (state, operand) throws(MagickOptionError) in
            // Images are upright before the first operation.
            guard state.operations.isEmpty else {
                throw MagickOptionError(operand.option, "must come first: images are upright before anything else")
            }
        },
        MagickOperator("+repage") { state, _ in state.hasPage = false },
        MagickOperator("+dither") { state, _ in state.mayDither = false },
        MagickOperator("-filter", "Lanczos") { (_, operand) throws(MagickOptionError) in
            guard operand.word.text.lowercased() == "lanczos" else { throw operand.refusal() }
        },
        MagickOperator("-gravity", gravities.keys.sorted().joined(separator: "|")) {
            (state, operand) throws(MagickOptionError) in
            state.gravity = operand.word.text.lowercased()
            guard gravities[state.gravity] != nil else { throw operand.refusal() }
        },
        MagickOperator("-fill", "COLOUR") { (state, operand) throws(MagickOptionError) in
            state.fill = try operand.colour()
        },
        MagickOperator("-background", "COLOUR") { (state, operand) throws(MagickOptionError) in
            state.background = try operand.colour()
        },
        MagickOperator("-bordercolor", "COLOUR") { (state, operand) throws(MagickOptionError) in
            state.border = try operand.colour()
        },
        MagickOperator("-mattecolor", "COLOUR") { (state, operand) throws(MagickOptionError) in
            state.matte = try operand.colour()
        },
        MagickOperator("-fuzz", "N%") { (state, operand) throws(MagickOptionError) in
            guard operand.word.text.hasSuffix("%") else { throw operand.refusal() }
            state.fuzz = try operand.number(allowsPercent: true) / 100
        },
    ]

    /// The halves of the free space, 0 to 2, that are to the left of a rectangle and above it.
    static let gravities: [String: (x: Int, y: Int)] = [
        "northwest": (0, 0), "north": (1, 0), "northeast": (2, 0), "west": (0, 1), "center": (1, 1), "east": (2, 1),
        "southwest": (0, 2), "south": (1, 2), "southeast": (2, 2),
    ]

    private static let effects: [MagickOperator] = [
        blur("-blur"), blur("-gaussian-blur"),
        MagickOperator("-motion-blur", "0xSIGMA+ANGLE") { (state, operand) throws(MagickOptionError) in
            let (sigma, offsets) = try operand.sigma(offsets: 0...1)
            try state.add(.motionBlur, ["radius": .double(sigma), "angle": .double(offsets.first ?? 0)], operand)
        },
        radialBlur("-radial-blur"), radialBlur("-rotational-blur"),
        MagickOperator("-unsharp", "0xSIGMA+AMOUNT+THRESHOLD") { (state, operand) throws(MagickOptionError) in
            let (sigma, offsets) = try operand.sigma(offsets: 0...2)
            try addUnsharpMask(&state, operand, sigma, offsets.first ?? 1, offsets.count == 2 ? offsets[1] : 0.05)
        },
        MagickOperator("-sharpen", "0xSIGMA") { (state, operand) throws(MagickOptionError) in
            let sigma = try operand.sigma().sigma
            // ImageMagick's kernel is that of an unsharp mask whose middle weighs twice the sum of the others.
            let row = (-40...40).map { exp(-Double($0 * $0) / (2 * sigma * sigma)) }.reduce(0, +)
            try addUnsharpMask(&state, operand, sigma, row * row / (row * row + 1), 0)
        },
        MagickOperator("-adaptive-sharpen", "0xSIGMA") { (state, operand) throws(MagickOptionError) in
            try state.add(.adaptiveSharpen, ["radius": .double(try operand.sigma().sigma)], operand)
        },
        MagickOperator("-statistic", "Median NxN", operandCount: 2) { (state, operand) throws(MagickOptionError) in
            let side = MagickOperand(
                option: operand.option,
                words: Array(operand.words.dropFirst()),
                usage: operand.usage
            )
            let geometry = try side.geometry()
            guard operand.word.text.lowercased() == "median", geometry.offsets.isEmpty, let width = geometry.width,
                geometry.height ?? width == width, let whole = Int(exactly: width), whole % 2 == 1
            else { throw operand.refusal(because: "is not an argument of -statistic: give Median and an odd square") }
            try state.add(.median, ["radius": JSON(whole / 2)], side)
        },
        MagickOperator("-despeckle") { (state, operand) throws(MagickOptionError) in
            try state.add(.despeckle, ["value": 1], operand)
        },
        MagickOperator("-posterize", "N") { (state, operand) throws(MagickOptionError) in
            guard !state.mayDither else {
                throw MagickOptionError(operand.option, "would dither; write +dither in front of it")
            }
            guard let levels = Int(exactly: try operand.number()) else { throw operand.refusal() }
            try state.add(.posterize, ["levels": JSON(levels)], operand)
        },
        MagickOperator("-solarize", "N%") { (state, operand) throws(MagickOptionError) in
            let value = try operand.number(allowsPercent: true)
            let full = operand.word.text.hasSuffix("%") ? 100.0 : 65_535
            try state.add(.solarize, ["threshold": .double(value / full)], operand)
        },
        sigma("-charcoal", .charcoal), sigma("-emboss", .emboss), number("-paint", .oilPaint, "radius"),
        number("-edge", .edge, "radius"), number("-swirl", .swirl, "value"), number("-implode", .implode, "value"),
        MagickOperator("-sketch", "0xSIGMA+ANGLE") { (state, operand) throws(MagickOptionError) in
            let (sigma, offsets) = try operand.sigma(offsets: 1...1)
            try state.add(.sketch, ["radius": .double(sigma), "angle": .double(offsets[0])], operand)
        },
        MagickOperator("-wave", "AMPLITUDExWAVELENGTH") { (state, operand) throws(MagickOptionError) in
            let numbers = try operand.numbers(2...2)
            guard !numbers.isPercent else { throw operand.refusal() }
            let (amplitude, length) = (numbers.values[0], numbers.values[1])
            try state.add(
                .wave,
                ["amplitude": .double(amplitude), "wavelength": .double(length), "colour": .string(state.background)],
                operand
            )
            if case .known(let width, let height) = state.size {
                state.setSize(width, Int(Double(height) + 2 * abs(amplitude)))
            }
        },
        MagickOperator("-normalize") { (state, operand) throws(MagickOptionError) in
            try state.add(.contrastStretch, ["value": 1, "black": 0.0015, "white": 0.0005], operand)
        },
        MagickOperator("-contrast-stretch", "BLACKxWHITE%") { (state, operand) throws(MagickOptionError) in
            let (values, isPercent) = try operand.numbers(1...2)
            guard isPercent else { throw operand.refusal() }
            let fractions = [values[0], values.count == 2 ? values[1] : values[0]].map { JSON.double($0 / 100) }
            try state.add(.contrastStretch, ["value": 1, "black": fractions[0], "white": fractions[1]], operand)
        },
        MagickOperator("-equalize") { (state, operand) throws(MagickOptionError) in
            try state.add(.equalize, ["value": 1], operand)
        },
        filled("-colorize", .colorize), filled("-tint", .colourTint),
        MagickOperator("-deskew", "N%") { (state, operand) throws(MagickOptionError) in
            guard operand.word.text.hasSuffix("%") else { throw operand.refusal() }
            let threshold = try operand.number(allowsPercent: true) / 100
            try state.add(.deskew, ["threshold": .double(threshold), "colour": .string(state.background)], operand)
            state.forgetSize(after: "-deskew")
            state.hasPage = true
        },
        MagickOperator("-trim") { (state, operand) throws(MagickOptionError) in
            try state.add(.trim, ["value": 1, "fuzz": .double(state.fuzz)], operand)
            state.forgetSize(after: "-trim")
            state.hasPage = true
        },
        MagickOperator("-liquid-rescale", "WIDTHxHEIGHT! or W%xH%") { (state, operand) throws(MagickOptionError) in
            let geometry = try operand.geometry(marks: ["%", "!"])
            guard geometry.marks.count == 1, geometry.offsets.isEmpty, let across = geometry.width,
                let down = geometry.height ?? (geometry.marks == ["%"] ? across : nil)
            else { throw operand.refusal() }
            guard let sides = try state.sides(operand) else {
                return try state.add(.liquidRescale, ["width": 0.9], operand)
            }
            let isPercent = geometry.marks == ["%"]
            let scale = (
                isPercent ? across / 100 : across / Double(sides.width),
                isPercent ? down / 100 : down / Double(sides.height)
            )
            try state.add(.liquidRescale, ["width": .double(scale.0), "height": .double(scale.1)], operand)
            state.setSize(
                Int((scale.0 * Double(sides.width)).rounded()),
                Int((scale.1 * Double(sides.height)).rounded())
            )
        },
        MagickOperator("-border", "N or NxN") { (state, operand) throws(MagickOptionError) in
            let geometry = try operand.geometry()
            guard geometry.offsets.isEmpty, let width = geometry.width, geometry.height ?? width == width else {
                throw operand.refusal()
            }
            try addFrame(&state, operand, .border, width, state.border)
        },
        MagickOperator("-frame", "NxN+M+M, where M is a quarter of N") { (state, operand) throws(MagickOptionError) in
            let geometry = try operand.geometry()
            guard let width = geometry.width, geometry.height ?? width == width,
                geometry.offsets == [(width / 4).rounded(.down), (width / 4).rounded(.down)]
            else { throw operand.refusal() }
            try addFrame(&state, operand, .frame, width, state.matte)
        },
    ]

    // MARK: - Parts

    private static func blur(_ name: String) -> MagickOperator { sigma(name, .blur) }

    private static func sigma(_ name: String, _ kind: AdjustmentKind) -> MagickOperator {
        MagickOperator(name, "0xSIGMA") { (state, operand) throws(MagickOptionError) in
            try state.add(kind, ["radius": .double(try operand.sigma().sigma)], operand)
        }
    }

    private static func number(_ name: String, _ kind: AdjustmentKind, _ member: String) -> MagickOperator {
        MagickOperator(name, "N") { (state, operand) throws(MagickOptionError) in
            try state.add(kind, [member: .double(try operand.number())], operand)
        }
    }

    private static func radialBlur(_ name: String) -> MagickOperator { number(name, .radialBlur, "value") }

    private static func addUnsharpMask(
        _ state: inout MagickTranslation,
        _ operand: MagickOperand,
        _ sigma: Double,
        _ amount: Double,
        _ threshold: Double
    ) throws(MagickOptionError) {
        let members: JSONObject = [
            "radius": .double(sigma), "amount": .double(amount), "threshold": .double(threshold),
        ]
        try state.add(.unsharpMask, members, operand)
    }

    private static func filled(_ name: String, _ kind: AdjustmentKind) -> MagickOperator {
        MagickOperator(name, "N%") { (state, operand) throws(MagickOptionError) in
            guard let fill = state.fill else {
                throw MagickOptionError(operand.option, "needs a colour; write -fill COLOUR in front of it")
            }
            let strength = try operand.number(allowsPercent: true) / 100
            try state.add(kind, ["value": .double(strength), "colour": .string(fill)], operand)
        }
    }

    private static func addFrame(
        _ state: inout MagickTranslation,
        _ operand: MagickOperand,
        _ kind: AdjustmentKind,
        _ width: Double,
        _ colour: String
    ) throws(MagickOptionError) {
        guard width == width.rounded() else { throw operand.refusal() }
        let sides = try state.sides(operand)
        let size = sides.map { width / Double(min($0.width, $0.height)) } ?? 0.01
        try state.add(kind, ["size": .double(size), "colour": .string(colour)], operand)
        guard let sides else { return }
        state.setSize(sides.width + 2 * Int(width), sides.height + 2 * Int(width))
    }
}
