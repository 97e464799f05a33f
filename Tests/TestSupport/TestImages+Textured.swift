import Foundation

extension TestImages {
    /// Returns a PNG with gradients, edges, texture and noise, in the colours of the seed.
    public static func texturedPNG(seed: UInt64, width: Int, height: Int, bits: UInt8) -> [UInt8] {
        var random = SeededRandom(seed: seed)
        let phase = (0..<9).map { _ in Double.random(in: 0...6.28, using: &random) }
        let speed = (0..<9).map { _ in Double.random(in: 0.01...0.09, using: &random) }
        let edge = Int.random(in: width / 4...width / 2, using: &random)
        return png(width: width, height: height, bits: bits) { x, y in
            let channels = (0..<3).map { channel -> UInt8 in
                let wave =
                    sin(Double(x) * speed[channel] + phase[channel])
                    * cos(Double(y) * speed[channel + 3] + phase[channel + 3])
                let fine = 0.06 * sin(Double(x + 2 * y) * 0.5 + phase[channel + 6])
                let step = x > edge && y > height / 3 ? 0.15 : 0
                let noise = Double.random(in: -0.02...0.02, using: &random)
                return UInt8(255 * min(1, max(0, 0.45 + 0.4 * wave + fine + step + noise)))
            }
            return (channels[0], channels[1], channels[2], 255)
        }
    }
}
