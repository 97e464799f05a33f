import Foundation
@testable import Imaging
import PictureFormats

/// Decoded pixels of a picture: eight-bit red, green, blue, upright.
struct TestPixels {
    let width: Int
    let height: Int
    let rgb: [UInt8]

    init(_ bytes: [UInt8]) throws {
        let header = try PictureHeader.read(bytes)
        let wand = try Decoder.decode(bytes, header, eighths: 8, scale: 1, limits: PixelLimits())
        try ColourProfile.convertToSRGB(wand)
        let pixels = try ContactSheet.pixels(of: wand)
        (width, height, rgb) = (pixels.width, pixels.height, pixels.rgb)
    }

    init(width: Int, height: Int, rgb: [UInt8]) {
        (self.width, self.height, self.rgb) = (width, height, rgb)
    }

    subscript(x: Int, y: Int) -> [Int] {
        let at = (y * width + x) * 3
        return [Int(rgb[at]), Int(rgb[at + 1]), Int(rgb[at + 2])]
    }

    /// The colour at a place given in units of the sides.
    func colour(_ x: Double, _ y: Double) -> [Int] {
        self[min(width - 1, Int(x * Double(width))), min(height - 1, Int(y * Double(height)))]
    }

    /// Peak signal to noise in decibels; infinite for equal pictures, 0 for pictures of other sizes.
    func psnr(_ other: TestPixels) -> Double {
        guard width == other.width, height == other.height else { return 0 }
        var sum = 0.0
        for index in rgb.indices {
            let difference = Double(rgb[index]) - Double(other.rgb[index])
            sum += difference * difference
        }
        return sum == 0 ? .infinity : 10 * log10(255 * 255 / (sum / Double(rgb.count)))
    }
}

/// What a quadrant of a test picture shows.
enum Quadrant: String {
    case red, green, blue, yellow, other

    init(_ colour: [Int]) {
        switch (colour[0] > 120, colour[1] > 120, colour[2] > 120) {
        case (true, false, false): self = .red
        case (false, true, false): self = .green
        case (false, false, true): self = .blue
        case (true, true, false): self = .yellow
        default: self = .other
        }
    }

    /// The four quadrants of a picture, row by row.
    static func all(_ pixels: TestPixels) -> [Quadrant] {
        [(0.2, 0.2), (0.8, 0.2), (0.2, 0.8), (0.8, 0.8)].map { Quadrant(pixels.colour($0, $1)) }
    }
}
