import Foundation
@testable import Imaging
import ImageFormats
import TestSupport

/// The decoded pixels of an image: eight-bit red, green, blue, upright.
struct TestPixels: Equatable {
    let width: Int
    let height: Int
    let rgb: [UInt8]

    init(_ bytes: [UInt8]) throws {
        let header = try ImageHeader.read(bytes)
        let wand = try Decoder.decode(bytes, header, eighths: 8, scale: 1, limits: PixelLimits())
        try ColourProfile.convertToSRGB(wand)
        let pixels = try ContactSheet.pixels(of: wand)
        (width, height, rgb) = (pixels.width, pixels.height, pixels.rgb)
    }

    init(width: Int, height: Int, rgb: [UInt8]) {
        (self.width, self.height, self.rgb) = (width, height, rgb)
    }

    subscript(x: Int, y: Int) -> [Int] {
        let offset = (y * width + x) * 3
        return [Int(rgb[offset]), Int(rgb[offset + 1]), Int(rgb[offset + 2])]
    }

    /// Returns the colour at a position given as fractions of the sides.
    func colour(_ x: Double, _ y: Double) -> [Int] {
        self[min(width - 1, Int(x * Double(width))), min(height - 1, Int(y * Double(height)))]
    }

    /// Returns the peak signal-to-noise ratio in decibels; infinite for equal images, 0 for images of different sizes.
    func psnr(_ other: TestPixels) -> Double {
        guard width == other.width, height == other.height else { return 0 }
        return PixelDistance.psnr(rgb, other.rgb)
    }
}

/// The content of a quadrant of a test image.
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

    /// Returns the four quadrants of an image, row by row.
    static func all(_ pixels: TestPixels) -> [Quadrant] {
        [(0.2, 0.2), (0.8, 0.2), (0.2, 0.8), (0.8, 0.8)].map { Quadrant(pixels.colour($0, $1)) }
    }
}
