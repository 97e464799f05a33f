import Foundation
import PhotoModel

/// 3 by 3 matrices on red, green and blue, in row-major order.
enum ColourMatrix {
    /// The weights of linear sRGB in the luminance (ITU-R BT.709).
    static let luminance = [0.2126, 0.7152, 0.0722]

    /// The matrix of the operation sepia, on encoded values.
    static let sepia = [0.393, 0.769, 0.189, 0.349, 0.686, 0.168, 0.272, 0.534, 0.131]

    /// Converts linear sRGB to linear Display P3.
    static let displayP3 = [
        0.8224621, 0.1775379, 0, 0.0331942, 0.9668058, 0, 0.0170826, 0.0723974, 0.9105200,
    ]

    static func diagonal(_ red: Double, _ green: Double, _ blue: Double) -> [Double] {
        [red, 0, 0, 0, green, 0, 0, 0, blue]
    }

    /// Returns a matrix of gains that does not change the luminance of white.
    static func balance(_ red: Double, _ green: Double, _ blue: Double) -> [Double] {
        let white = luminance[0] * red + luminance[1] * green + luminance[2] * blue
        return diagonal(red / white, green / white, blue / white)
    }

    static func saturation(_ factor: Double) -> [Double] {
        (0..<9).map { index -> Double in
            let grey = (1 - factor) * luminance[index % 3]
            return index % 4 == 0 ? grey + factor : grey
        }
    }

    static func product(_ left: [Double], _ right: [Double]) -> [Double] {
        (0..<9).map { index -> Double in
            let (row, column) = (3 * (index / 3), index % 3)
            let first = left[row] * right[column]
            return first + left[row + 1] * right[column + 3] + left[row + 2] * right[column + 6]
        }
    }

    /// Returns a multiple of the inverse whose last number is 1.
    static func inverse(_ m: [Double]) -> [Double] {
        func minor(_ a: Int, _ b: Int, _ c: Int, _ d: Int) -> Double { m[a] * m[d] - m[b] * m[c] }
        let adjugate = [
            minor(4, 5, 7, 8), -minor(1, 2, 7, 8), minor(1, 2, 4, 5), -minor(3, 5, 6, 8), minor(0, 2, 6, 8),
            -minor(0, 2, 3, 5), minor(3, 4, 6, 7), -minor(0, 1, 6, 7), minor(0, 1, 3, 4),
        ]
        return adjugate.map { $0 / adjugate[8] }
    }
}

extension Adjustment {
    /// The operation with its sRGB colour converted to Display P3.
    var inDisplayP3: Adjustment {
        guard let number = UInt32(text("colour").dropFirst(), radix: 16) else { return self }
        let light = [16, 8, 0].map { ToneCurve.decodedBytes[Int((number >> UInt32($0)) & 255)] }
        let matrix = ColourMatrix.displayP3
        let digits = [0, 3, 6].map { row -> String in
            let sum = matrix[row] * light[0] + matrix[row + 1] * light[1] + matrix[row + 2] * light[2]
            let value = Int((255 * ToneCurve.encoded(min(1, sum))).rounded())
            return (value < 16 ? "0" : "") + String(value, radix: 16)
        }
        return replacing("colour", with: "#" + digits.joined())
    }
}
