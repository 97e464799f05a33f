import Foundation
import PhotoModel

/// Linear light of eight-bit values.
enum ToneLight {
    static let of: [Double] = (0..<256).map { ToneCurve.decoded(Double($0) / 255) }

    static func log2(_ value: Double) -> Double { Foundation.log2(value) }
}
