import CPixels
import Foundation
import PhotoModel

/// All colour operations of a list, composed into one pass over the pixels.
///
/// The pass works on linear light. Exposure, temperature, saturation and black-and-white are 3x3 matrices there, and
/// neighbours multiply into one; contrast is a curve on encoded values, held as a table. Values are not clipped between
/// matrices, so that -1 stop takes +1 stop back; a curve clips to 0...1 first, because it is defined there only. A
/// usual list thus costs a table, a matrix, a curve and a matrix for each pixel, however many operations it has.
struct AdjustmentColour {
    enum Step {
        /// Rows red, green, blue.
        case matrix([Double])
        /// The exponent of the contrast curve.
        case contrast(Double)
    }

    private(set) var steps: [Step] = []

    /// Luminance of linear sRGB, by the weights of ITU-R 709.
    static let luminance = [0.2126, 0.7152, 0.0722]

    init(_ operations: [Adjustment]) {
        for operation in operations where !operation.isNeutral {
            switch operation {
            case .exposure(let stops): multiply(Self.diagonal(exp2(stops), exp2(stops), exp2(stops)))
            case .temperature(let warmth): multiply(Self.temperature(warmth))
            case .saturation(let change): multiply(Self.saturation(1 + change))
            case .blackAndWhite(let strength): multiply(Self.saturation(1 - strength))
            case .contrast(let change): curve(exp2(change))
            case .crop, .straighten, .rotate, .flip: break
            }
        }
    }

    private mutating func multiply(_ matrix: [Double]) {
        if case .matrix(let before)? = steps.last {
            steps[steps.count - 1] = .matrix(Self.product(matrix, before))
        } else {
            steps.append(.matrix(matrix))
        }
    }

    /// Two such curves in a row are one: the exponents multiply.
    private mutating func curve(_ exponent: Double) {
        if case .contrast(let before)? = steps.last {
            steps[steps.count - 1] = .contrast(before * exponent)
        } else {
            steps.append(.contrast(exponent))
        }
    }

    /// Changes the pixels of an sRGB picture.
    func apply(to wand: borrowing Wand) throws(ImagingError) {
        guard !steps.isEmpty else { return }
        let tables = steps.map { step in
            if case .contrast(let exponent) = step { Self.contrastTable(exponent) } else { [Float]() }
        }
        let flat = tables.flatMap(\.self)
        let decode = Self.decodeTable
        let encode = Self.encodeTable
        try wand.withPixels { pixels, count in
            flat.withUnsafeBufferPointer { curves in
                var used = 0
                let passed = zip(steps, tables).map { step, table in
                    var passed = safelight_colour_step()
                    switch step {
                    case .matrix(let m):
                        passed.matrix = (
                            Float(m[0]), Float(m[1]), Float(m[2]), Float(m[3]), Float(m[4]), Float(m[5]), Float(m[6]),
                            Float(m[7]), Float(m[8])
                        )
                    case .contrast: passed.curve = curves.baseAddress?.advanced(by: used)
                    }
                    used += table.count
                    return passed
                }
                safelight_colour_pass(pixels, count, decode, passed, passed.count, encode)
            }
        }
    }

    // MARK: - Matrices

    private static func diagonal(_ red: Double, _ green: Double, _ blue: Double) -> [Double] {
        [red, 0, 0, 0, green, 0, 0, 0, blue]
    }

    private static func temperature(_ warmth: Double) -> [Double] {
        let red = exp2(warmth / 2)
        let blue = exp2(-warmth / 2)
        let white = luminance[0] * red + luminance[1] + luminance[2] * blue
        return diagonal(red / white, 1 / white, blue / white)
    }

    private static func saturation(_ factor: Double) -> [Double] {
        (0..<9).map { index -> Double in
            let grey = (1 - factor) * luminance[index % 3]
            return index % 4 == 0 ? grey + factor : grey
        }
    }

    private static func product(_ left: [Double], _ right: [Double]) -> [Double] {
        (0..<9).map { index -> Double in
            let (row, column) = (3 * (index / 3), index % 3)
            let first = left[row] * right[column]
            return first + left[row + 1] * right[column + 3] + left[row + 2] * right[column + 6]
        }
    }

    // MARK: - Curves

    static func decoded(_ value: Double) -> Double {
        value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4)
    }

    static func encoded(_ light: Double) -> Double {
        light <= 0.0031308 ? light * 12.92 : 1.055 * pow(light, 1 / 2.4) - 0.055
    }

    private static let decodeTable: [Float] = (0..<65_536).map { Float(decoded(Double($0) / 65_535)) }

    /// A function on 0...1 as a table whose points lie closer near black, where encoding is steep.
    private static func table(_ function: (Double) -> Double) -> [Float] {
        let count = Int(SAFELIGHT_CURVE_COUNT)
        return (0..<count).map { index in
            let root = Double(index) / Double(count - 1)
            return Float(function(root * root))
        }
    }

    private static let encodeTable = table { 65_535 * encoded($0) }

    private static func contrastTable(_ exponent: Double) -> [Float] {
        table { light in
            let value = encoded(light)
            let bent =
                value < 0.5 ? pow(2 * value, exponent) / 2 : 1 - pow(max(0, 2 * (1 - value)), exponent) / 2
            return decoded(bent)
        }
    }
}
