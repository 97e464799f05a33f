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

    /// The largest number of pixels that are decoded for a quick look, unless a quarter of the size has more.
    private static let quickPixels = 2_000_000

    /// Returns the fraction for a quick look: the smallest that reaches the wanted size, if that is cheap, and at least
    /// a quarter of the wanted size.
    static func eighthsOfQuickLook(_ geometry: RenditionGeometry) -> Int {
        let (region, resized) = (geometry.region, geometry.resized)
        func reaches(_ eighths: Int, times: Int) -> Bool {
            times * side(region.width, eighths) >= min(resized.width, region.width)
                && times * side(region.height, eighths) >= min(resized.height, region.height)
        }
        let least = scales.first { reaches($0, times: 4) } ?? full
        let wanted = [1, 2, 4].first { reaches($0, times: 1) } ?? 4
        let cheap = [4, 2].first { region.width * region.height * $0 * $0 / 64 <= quickPixels } ?? 1
        return max(least, min(wanted, cheap))
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
