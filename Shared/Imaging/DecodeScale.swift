/// The fractions at which a JPEG can be decoded, in eighths: ImageMagick asks libjpeg for 1/n with whole n, libjpeg
/// answers with the next M/8 above.
///
/// The rule for resizing well: the smallest scale that leaves at least twice the pixels that are wanted. For a preview,
/// where only full size does, 3/8 or 1/2 may still be taken if they leave 1.4 times the pixels: measured, that stays above
/// 43 dB and takes a third of the time; 1.3 times fell to 37 dB. The decoder rounds its size up: `Decoder` trims the
/// column and row that stand for less than half a pixel, otherwise everything would be shifted.
enum DecodeScale {
    static let full = 8
    private static let scales = [1, 2, 3, 4, 8]

    /// The fraction for resizing well; `ratio` is source pixels for each wanted pixel.
    static func eighths(ratio: Double) -> Int { scales.first { Double($0) / 8 * ratio >= 2 } ?? full }

    /// The fraction for a preview of what is kept elsewhere.
    static func eighthsOfPreview(ratio: Double) -> Int {
        let best = eighths(ratio: ratio)
        guard best == full else { return best }
        return [3, 4].first { Double($0) / 8 * ratio >= 1.4 } ?? full
    }

    /// The smallest scale at which both sides still reach the goal.
    static func eighths(width: Int, height: Int, reaching goal: (width: Int, height: Int)) -> Int {
        scales.first { side(width, $0) >= goal.width && side(height, $0) >= goal.height } ?? full
    }

    /// A side at a scale, trimmed.
    static func side(_ length: Int, _ eighths: Int) -> Int { max(1, (length * eighths + 4) / 8) }

    /// What to ask ImageMagick for: the source divided by this.
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
