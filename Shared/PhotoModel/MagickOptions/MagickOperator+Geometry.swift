import Foundation
import JSONValue

extension MagickOperator {
    static let geometry: [MagickOperator] = [
        MagickOperator("-rotate", "DEGREES, a multiple of 90") { (state, operand) throws(MagickOptionError) in
            let degrees = try operand.number()
            guard let whole = Int(exactly: degrees), whole % 90 == 0 else {
                throw operand.refusal(
                    because: "is not a multiple of 90; the operation straighten turns by other angles, without corners"
                )
            }
            try turn(&state, operand, ((whole % 360) + 360) % 360)
        },
        MagickOperator("-flip") { (state, operand) throws(MagickOptionError) in
            try state.add(.flip, ["value": "vertical"], operand)
        },
        MagickOperator("-flop") { (state, operand) throws(MagickOptionError) in
            try state.add(.flip, ["value": "horizontal"], operand)
        },
        MagickOperator("-transpose") { (state, operand) throws(MagickOptionError) in
            try turn(&state, operand, 90)
            try state.add(.flip, ["value": "horizontal"], operand)
        },
        MagickOperator("-transverse") { (state, operand) throws(MagickOptionError) in
            try turn(&state, operand, 270)
            try state.add(.flip, ["value": "horizontal"], operand)
        },
        MagickOperator("-crop", "WIDTHxHEIGHT+X+Y or W%xH%+X+Y") { (state, operand) throws(MagickOptionError) in
            let geometry = try operand.geometry(marks: ["%"])
            guard geometry.offsets.count == 2 else {
                throw operand.refusal(because: "has no offset and would cut tiles; write +0+0 after it")
            }
            guard !state.hasPage else {
                throw MagickOptionError(operand.option, "would count from the old canvas; write +repage in front of it")
            }
            state.hasPage = true
            let sides = try state.sides(operand)
            let isPercent = geometry.marks == ["%"]
            let down = geometry.height ?? (isPercent ? geometry.width : nil)
            func length(_ given: Double?, _ side: Int) -> Double {
                guard let given, given > 0 else { return Double(side) }
                return isPercent ? (given * Double(side) / 100 + 0.5).rounded(.down) : given.rounded()
            }
            // A check for every size can use any size.
            let (width, height) = (sides?.width ?? 1000, sides?.height ?? 1000)
            let gravity = gravities[state.gravity] ?? (0, 0)
            let across = span(length(geometry.width, width), geometry.offsets[0], width, gravity.x)
            let along = span(length(down, height), geometry.offsets[1], height, gravity.y)
            guard let across, let along else {
                if sides == nil { return try state.add(.crop, ["width": 0.9], operand) }
                throw operand.refusal(because: "keeps nothing of the image of \(width) by \(height) pixels")
            }
            try cut(&state, operand, (across.start, along.start, across.length, along.length), (width, height))
        },
        MagickOperator("-shave", "WIDTHxHEIGHT") { (state, operand) throws(MagickOptionError) in
            let geometry = try operand.geometry()
            guard geometry.offsets.isEmpty, let across = geometry.width, let down = geometry.height,
                across == across.rounded(), down == down.rounded()
            else { throw operand.refusal() }
            guard let sides = try state.sides(operand) else {
                return try state.add(.crop, ["width": 0.9], operand)
            }
            let (width, height) = (Double(sides.width) - 2 * across, Double(sides.height) - 2 * down)
            guard width >= 1, height >= 1 else {
                throw operand.refusal(because: "leaves nothing of \(sides.width) by \(sides.height) pixels")
            }
            try cut(&state, operand, (across, down, width, height), sides)
        },
        MagickOperator("-resize", "WIDTHxHEIGHT, with >, ^ or !, or N%") { (state, operand) throws(MagickOptionError) in
            try resize(&state, operand)
        },
    ]

    private static func turn(_ state: inout MagickTranslation, _ operand: MagickOperand, _ degrees: Int)
        throws(MagickOptionError)
    {
        guard degrees != 0 else { return }
        try state.add(.rotate, ["value": JSON(degrees)], operand)
        if degrees != 180, case .known(let width, let height) = state.size { state.setSize(height, width) }
    }

    /// Returns the part of a side that remains; nil if it is empty.
    ///
    /// - Parameter gravity: 0 for an offset from the start, 1 from the middle, 2 from the end
    private static func span(_ length: Double, _ offset: Double, _ side: Int, _ gravity: Int) -> (
        start: Double, length: Double
    )? {
        let whole = Double(side)
        let start =
            switch gravity {
            case 0: offset
            case 1: (whole / 2).rounded(.down) - (length / 2).rounded(.down) + offset
            default: whole - length - offset
            }
        let (first, last) = (max(0, start.rounded()), min(whole, start.rounded() + length))
        return last - first >= 1 ? (first, last - first) : nil
    }

    private static func cut(
        _ state: inout MagickTranslation,
        _ operand: MagickOperand,
        _ rect: (x: Double, y: Double, width: Double, height: Double),
        _ sides: (width: Int, height: Int)
    ) throws(MagickOptionError) {
        let (across, down) = (Double(sides.width), Double(sides.height))
        let (x, y) = (rect.x / across, rect.y / down)
        let members: JSONObject = [
            "x": .double(x), "y": .double(y), "width": .double(min(rect.width / across, 1 - x)),
            "height": .double(min(rect.height / down, 1 - y)),
        ]
        try state.add(.crop, members, operand)
        state.setSize(Int(rect.width), Int(rect.height))
    }

    private static func resize(_ state: inout MagickTranslation, _ operand: MagickOperand) throws(MagickOptionError) {
        let geometry = try operand.geometry(marks: ["%", ">", "^", "!"])
        guard geometry.offsets.isEmpty, geometry.marks.count <= 1, geometry.width ?? geometry.height != nil,
            ![geometry.width, geometry.height].contains(0)
        else { throw operand.refusal() }
        let mark = geometry.marks.first
        guard let sides = try state.sides(operand) else {
            return try state.add(.resize, ["width": 1], operand)
        }
        let (width, height) = (Double(sides.width), Double(sides.height))
        func whole(_ number: Double) -> Double { max(1, (number + 0.5).rounded(.down)) }
        var goal: (width: Double, height: Double)
        switch mark {
        case "%":
            let across = geometry.width ?? geometry.height ?? 100
            goal = (whole(width * across / 100), whole(height * (geometry.height ?? across) / 100))
        case "!": goal = (geometry.width ?? width, geometry.height ?? height)
        default:
            let ratios = [geometry.width.map { $0 / width }, geometry.height.map { $0 / height }].compactMap(\.self)
            let ratio = (mark == "^" ? ratios.max() : ratios.min()) ?? 1
            if mark == ">", ratio >= 1 { return }
            goal = (whole(width * ratio), whole(height * ratio))
        }
        guard goal.width <= width, goal.height <= height else {
            throw operand.refusal(
                because: "would enlarge the image of \(sides.width) by \(sides.height) pixels, which edits never do; "
                    + "write > after it to leave smaller images as they are"
            )
        }
        // The operation keeps the proportions, up to half a pixel.
        guard abs(goal.width * height - goal.height * width) <= max(width, height) else {
            throw operand.refusal(because: "changes the proportions, which the operation resize keeps")
        }
        // The operation fits the image into the sides that are given. Only one is given, from which the other one
        // follows: with both, a side that was rounded down would make the image smaller.
        let follows = (width: whole(width * goal.height / height), height: whole(height * goal.width / width))
        if follows.height != goal.height, follows.width == goal.width {
            try state.add(.resize, ["height": .int(Int64(goal.height))], operand)
            return state.setSize(Int(goal.width), Int(goal.height))
        }
        // Both sides of a percentage are rounded, so the height may differ by a pixel.
        guard follows.height == goal.height || mark == "%" else {
            throw operand.refusal(because: "changes the proportions, which the operation resize keeps")
        }
        try state.add(.resize, ["width": .int(Int64(goal.width))], operand)
        state.setSize(Int(goal.width), Int(follows.height))
    }
}
