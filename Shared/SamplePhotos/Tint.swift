import Foundation

/// Red, green and blue, 0...1.
struct Tint {
    var red: Float
    var green: Float
    var blue: Float

    init(_ red: Float, _ green: Float, _ blue: Float) {
        self.red = red
        self.green = green
        self.blue = blue
    }

    /// Mixes two colours: a fraction of 0 is this colour, 1 the other.
    func mixed(with other: Tint, _ fraction: Float) -> Tint {
        let part = min(1, max(0, fraction))
        return Tint(
            red + (other.red - red) * part,
            green + (other.green - green) * part,
            blue + (other.blue - blue) * part
        )
    }

    func scaled(_ factor: Float) -> Tint { Tint(red * factor, green * factor, blue * factor) }

    var bytes: (UInt8, UInt8, UInt8) { (Self.byte(red), Self.byte(green), Self.byte(blue)) }

    private static func byte(_ value: Float) -> UInt8 { UInt8(min(255, max(0, value * 255 + 0.5))) }
}
