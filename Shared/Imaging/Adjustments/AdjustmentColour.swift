import CPixels
import Foundation
import ImageFormats
import PhotoModel

/// All colour operations of a list, composed into one pass over the pixels.
///
/// A step either changes each channel separately, on encoded values or on linear light, or it mixes channels. Adjacent
/// per-channel steps are composed into one curve, including conversions between encoded values and light. Adjacent
/// matrices on light are multiplied into cStep. A typical list therefore costs a table, a matrix, a curve and one or
/// two formulas per pixel, regardless of the number of its operations. Values are not clipped between matrices on
/// light, so that -1 stop cancels +1 stop.
struct AdjustmentColour {
    typealias Curve = @Sendable (Double) -> Double

    /// The meaning of the channel values at a point of the pass.
    enum Space { case encoded, light }

    enum Step {
        /// A 3 by 3 matrix with rows red, green, blue.
        case matrix([Double])
        /// One curve per channel, or one for all channels.
        case curves([[Float]], isSquared: Bool)
        /// A formula with its constants.
        case formula(safelight_step_kind, [Float])
        case vignette(VignetteShape)
        case grain(strength: Double, size: Double, seed: Int)
        /// A look-up table and the weight of its result.
        case table(ColourTable, strength: Double)
    }

    private(set) var steps: [Step] = []
    /// 256 values per channel for eight-bit images, instead of the first curves; empty if values are only scaled.
    private(set) var decode: [Float] = []

    private var space = Space.encoded
    /// The curves that are not added to the steps yet: the space of their input and the functions of red, green and
    /// blue, or one for all channels.
    private var pending: (space: Space, curves: [Curve], isShared: Bool)?
    private let isEightBit: Bool

    /// Composes the operations of the stages colour and finish, in this order.
    ///
    /// - Parameter isEightBit: true if the pixels have only 256 values per channel
    /// - Throws: ``ImagingError/invalidOptions(_:)`` for a look-up table that cannot be read
    init(_ operations: [Adjustment], isEightBit: Bool = true) throws(ImagingError) {
        self.isEightBit = isEightBit
        for operation in operations where operation.kind.stage == .colour && !operation.isNeutral { try add(operation) }
        for operation in operations where operation.kind.stage == .finish && !operation.isNeutral { try add(operation) }
        guard !steps.isEmpty || pending != nil else { return }
        convert(to: .encoded)
        flush()
    }

    /// Creates a pass of the given steps, for 16-bit pixels.
    init(steps: [Step]) {
        isEightBit = false
        self.steps = steps
    }

    /// True if there is nothing to do.
    var isEmpty: Bool { steps.isEmpty && decode.isEmpty }

    private mutating func add(_ operation: Adjustment) throws(ImagingError) {
        let value = operation.number()
        switch operation.kind {
        case .exposure: multiply(ColourMatrix.diagonal(exp2(value), exp2(value), exp2(value)))
        case .temperature: multiply(ColourMatrix.balance(exp2(value / 2), 1, exp2(-value / 2)))
        case .tint: multiply(ColourMatrix.balance(1, exp2(-value / 2), 1))
        case .saturation: multiply(ColourMatrix.saturation(1 + value))
        case .blackAndWhite: multiply(ColourMatrix.saturation(1 - value))
        case .brightness, .contrast, .highlights, .shadows, .whites, .blacks, .levels:
            addCurves([ToneCurve.curve(of: operation)])
        case .curve:
            let master = ToneCurve.through(operation.points("master"))
            let channels = ["red", "green", "blue"].map { operation.points($0) }
            if channels.allSatisfy({ $0 == CurvePoint.straight }) {
                addCurves([master])
            } else {
                addCurves([master])
                addCurves(channels.map { ToneCurve.through($0) })
            }
        case .modulate:
            addFormula(
                SAFELIGHT_MODULATE,
                [operation.number("brightness"), operation.number("saturation"), operation.number("hue") / 60]
            )
        case .vibrance: addFormula(SAFELIGHT_VIBRANCE, [value])
        case .hsl:
            let bands = ["Hue", "Saturation", "Luminance"].map { suffix in
                ColourBands.knots(operation, suffix: suffix)
            }
            addFormula(SAFELIGHT_BANDS, bands[0].map { $0 / 2 } + bands[1] + bands[2])
        case .blackAndWhiteMix:
            let knots = ColourBands.knots(operation, suffix: "")
            addFormula(SAFELIGHT_GREY_BANDS, knots + Array(repeating: 0, count: 39 - knots.count) + [value])
        case .sepia: addFormula(SAFELIGHT_MIXED_MATRIX, ColourMatrix.sepia + [value])
        case .toning:
            let colour = ColourBands.tone(operation.number("hue"))
            addFormula(SAFELIGHT_TONING, [value] + colour + colour + [0, value])
        case .splitToning:
            let shadows = ColourBands.tone(operation.number("shadowHue")).map {
                $0 * operation.number("shadowSaturation")
            }
            let highlights = ColourBands.tone(operation.number("highlightHue")).map {
                $0 * operation.number("highlightSaturation")
            }
            addFormula(SAFELIGHT_TONING, [0] + shadows + highlights + [operation.number("balance") / 2, 1])
        case .lut:
            guard let table = try ColourTable.read(operation.text("table")) else { return }
            convert(to: .encoded)
            flush()
            steps.append(.table(table, strength: value))
        case .vignette:
            convert(to: .light)
            flush()
            steps.append(.vignette(VignetteShape(operation)))
        case .grain:
            convert(to: .encoded)
            flush()
            steps.append(
                .grain(strength: value / 5, size: operation.number("size"), seed: Int(operation.number("seed")))
            )
        default: break
        }
    }

    // MARK: - Composing

    private mutating func multiply(_ matrix: [Double]) {
        convert(to: .light)
        flush()
        if case .matrix(let before)? = steps.last {
            steps[steps.count - 1] = .matrix(ColourMatrix.product(matrix, before))
        } else {
            steps.append(.matrix(matrix))
        }
    }

    private mutating func addFormula(_ kind: safelight_step_kind, _ numbers: [Double]) {
        convert(to: .encoded)
        flush()
        steps.append(.formula(kind, numbers.map { Float($0) }))
    }

    /// Adds curves on encoded values.
    private mutating func addCurves(_ curves: [Curve]) {
        convert(to: .encoded)
        compose(curves)
    }

    private mutating func convert(to target: Space) {
        guard space != target else { return }
        let curve: Curve = target == .light ? ToneCurve.decoded : ToneCurve.encoded
        compose([curve])
        space = target
    }

    /// Composes curves with the pending ones.
    private mutating func compose(_ curves: [Curve]) {
        guard let before = pending else {
            pending = (space, curves, curves.count == 1)
            return
        }
        let isShared = before.isShared && curves.count == 1
        let all = (0..<(isShared ? 1 : 3)).map { channel -> Curve in
            let first = before.curves[before.isShared ? 0 : channel]
            let second = curves[curves.count == 1 ? 0 : channel]
            return { second(min(1, max(0, first($0)))) }
        }
        pending = (before.space, all, isShared)
    }

    /// Appends the pending curves to the steps.
    private mutating func flush() {
        guard let ready = pending else {
            if steps.isEmpty, isEightBit, decode.isEmpty {
                let identity: Curve = { $0 }
                decode = Self.table(256, ready: [identity], isSquared: false)
            }
            return
        }
        pending = nil
        if steps.isEmpty, isEightBit, decode.isEmpty {
            decode = Self.table(256, ready: ready.curves, isSquared: false)
            return
        }
        let isSquared = ready.space == .light
        let count = Int(SAFELIGHT_CURVE_COUNT)
        let tables = ready.curves.map { Self.table(count, ready: [$0], isSquared: isSquared, repeatsSingle: false) }
        steps.append(.curves(tables, isSquared: isSquared))
    }

    private static func table(
        _ count: Int,
        ready curves: [Curve],
        isSquared: Bool,
        repeatsSingle: Bool = true
    ) -> [Float] {
        let tables = curves.map { curve in
            (0..<count).map { index -> Float in
                let position = Double(index) / Double(count - 1)
                return Float(curve(isSquared ? position * position : position))
            }
        }
        return tables.count == 1 && repeatsSingle ? tables[0] + tables[0] + tables[0] : tables.flatMap(\.self)
    }

    // MARK: - Applying

    /// Changes the pixels of an sRGB image.
    ///
    /// The channels have ImageMagick's order: blue, green, red, opacity.
    func apply(to wand: borrowing Wand) throws(ImagingError) {
        guard !isEmpty else { return }
        let (width, height) = (wand.width, wand.height)
        try wand.withPixels { pixels, _ in
            let start = UInt(bitPattern: pixels)
            withSteps(width: width, height: height) { steps, count, decode in
                let work = (steps: UInt(bitPattern: steps), decode: UInt(bitPattern: decode))
                RowBands.run(height, pixels: width * height) { first, rows in
                    guard let pixels = UnsafeMutablePointer<UInt16>(bitPattern: start) else { return }
                    safelight_colour_pass(
                        pixels + 4 * width * first,
                        width,
                        rows,
                        first,
                        UnsafePointer(bitPattern: work.decode),
                        UnsafePointer(bitPattern: work.steps),
                        count
                    )
                }
            }
        }
    }

    /// Calls `body` with the pass for pixels of three bytes. Only for operations that were composed for eight bits.
    func withPass(
        width: Int,
        height: Int,
        _ body: (ColourPass) throws(ImagingError) -> Void
    ) throws(ImagingError) {
        var failure: ImagingError?
        withSteps(width: width, height: height) { steps, count, decode in
            let pass = ColourPass(
                width: width,
                steps: UInt(bitPattern: steps),
                count: count,
                decode: UInt(bitPattern: decode)
            )
            do throws(ImagingError) { try body(pass) } catch { failure = error }
        }
        if let failure { throw failure }
    }

    /// Converts the steps to the C structures of the pass.
    private func withSteps(
        width: Int,
        height: Int,
        _ body: (UnsafePointer<safelight_colour_step>?, Int, UnsafePointer<Float>?) -> Void
    ) {
        var tables: [Float] = []
        var cSteps: [safelight_colour_step] = []
        /// The offsets of each step's curves in the tables.
        var allOffsets: [[Int]] = []
        for step in steps {
            var cStep = safelight_colour_step()
            var offsets: [Int] = []
            var numbers: [Float] = []
            func append(_ table: [Float]) -> Int {
                tables += table
                return tables.count - table.count
            }
            switch step {
            case .matrix(let matrix):
                cStep.kind = Int32(SAFELIGHT_MATRIX.rawValue)
                numbers = matrix.map { Float($0) }
            case .curves(let curves, let isSquared):
                cStep.kind = Int32(SAFELIGHT_CURVES.rawValue)
                cStep.is_squared = isSquared ? 1 : 0
                let starts = curves.map(append)
                offsets = starts.count == 1 ? [starts[0], starts[0], starts[0]] : starts
            case .formula(let kind, let constants):
                cStep.kind = Int32(kind.rawValue)
                numbers = constants
            case .vignette(let shape):
                cStep.kind = Int32(SAFELIGHT_VIGNETTE.rawValue)
                numbers = shape.numbers(width: width, height: height)
                offsets = [append(shape.gains)]
            case .grain(let strength, let size, let seed):
                cStep.kind = Int32(SAFELIGHT_GRAIN.rawValue)
                let cells = 1 / (size * Double(max(width, height)))
                // Cells smaller than a pixel are averaged.
                numbers = [Float(strength * min(1, 1 / cells)), Float(cells)]
                cStep.seed = UInt32(truncatingIfNeeded: seed)
            case .table(let table, let strength):
                cStep.kind = Int32((table.isCube ? SAFELIGHT_TABLE_CUBE : SAFELIGHT_TABLE_CURVES).rawValue)
                numbers = [Float(strength), Float(table.points)]
                offsets = [append(table.values.map { Float($0) / 65_535 })]
            }
            withUnsafeMutableBytes(of: &cStep.numbers) { raw in
                for (index, number) in numbers.enumerated() {
                    raw.storeBytes(of: number, toByteOffset: 4 * index, as: Float.self)
                }
            }
            cSteps.append(cStep)
            allOffsets.append(offsets)
        }
        tables.withUnsafeBufferPointer { tables in
            for (index, offsets) in allOffsets.enumerated() where !offsets.isEmpty {
                let starts = offsets.map { tables.baseAddress?.advanced(by: $0) }
                cSteps[index].curves = (starts[0], starts[starts.count > 1 ? 1 : 0], starts[starts.count > 2 ? 2 : 0])
            }
            decode.withUnsafeBufferPointer { decode in
                cSteps.withUnsafeBufferPointer {
                    body($0.baseAddress, $0.count, decode.isEmpty ? nil : decode.baseAddress)
                }
            }
        }
    }
}

/// The colour pass over rows of three bytes per pixel, valid only within `AdjustmentColour.withPass`. It may be called
/// from any thread.
struct ColourPass: Sendable {
    fileprivate let width: Int
    fileprivate let steps: UInt
    fileprivate let count: Int
    /// 0 if there is nothing to do.
    fileprivate let decode: UInt

    func callAsFunction(_ pixels: UnsafeMutablePointer<UInt8>, rows: Int, first: Int) {
        guard let decode = UnsafePointer<Float>(bitPattern: decode) else { return }
        safelight_colour_pass_rgb(pixels, width, rows, first, decode, UnsafePointer(bitPattern: steps), count)
    }
}
