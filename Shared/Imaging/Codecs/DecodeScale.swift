/// The fractions at which a JPEG can be decoded, in eighths. ImageMagick asks libjpeg for 1/n with whole n, and libjpeg
/// uses the next larger M/8.
///
/// For a good resize, the smallest scale is used that leaves at least twice the wanted pixels. For a preview that would
/// otherwise need full size, 3/8 or 1/2 is accepted if it leaves 1.4 times the pixels: measured, that stays above 43 dB
/// and takes a third of the time; 1.3 times fell to 37 dB. libjpeg rounds sizes up, so `Decoder` trims a column or row
/// that represents less than half a pixel; otherwise the whole image would be shifted.
enum DecodeScale {
    static let full = 8
    private static let scales = [1, 2, 3, 4, 8]

    /// Returns the fraction for a good resize; `ratio` is source pixels per wanted pixel.
    static func eighths(ratio: Double) -> Int { scales.first { Double($0) / 8 * ratio >= 2 } ?? full }

    /// Returns the fraction for a preview.
    static func eighthsOfPreview(ratio: Double) -> Int {
        let best = eighths(ratio: ratio)
        guard best == full else { return best }
        return [3, 4].first { Double($0) / 8 * ratio >= 1.4 } ?? full
    }

    /// Returns the smallest fraction at which both sides reach the goal.
    static func eighths(width: Int, height: Int, reaching goal: (width: Int, height: Int)) -> Int {
        scales.first { side(width, $0) >= goal.width && side(height, $0) >= goal.height } ?? full
    }

    /// Returns the length of a side at a fraction, trimmed.
    static func side(_ length: Int, _ eighths: Int) -> Int { max(1, (length * eighths + 4) / 8) }

    /// Returns the divisor to pass to ImageMagick for a fraction.
    static func divisor(_ eighths: Int) -> Int {
        switch eighths {
        case 1: 8
        case 2: 4
        case 3: 3
        case 4: 2
        default: 1
        }
    }
}
