/// An estimate of what a plan costs, made before its first call.
enum MagickCost {
    /// The most memory that the pictures of a plan may take, in bytes: a part of a worker's, beside the file and its decoder.
    static let memory = 3 << 30

    /// Refuses a plan that takes more memory or time than there is.
    ///
    /// - Parameters:
    ///   - pixels: the pixels of the larger one of the picture and its result
    ///   - limit: the seconds that there are for it
    /// - Returns: the estimate in seconds
    /// - Throws: ``ImagingError/tooMuchWork(_:)``, naming what would be possible
    @discardableResult
    static func check(_ calls: [MagickCall], pixels: Int, seconds limit: Double) throws(ImagingError) -> Double {
        let pictures = peak(calls)
        guard pictures * 8 * pixels <= memory else {
            throw .tooMuchWork(
                "ImageMagick would need \(pictures * 8 * pixels >> 20) MiB for \(pixels / 1_000_000) megapixels, and there "
                    + "are \(memory >> 20); scale down with resize, to at most \(memory / (pictures * 8) / 1_000_000) "
                    + "megapixels, or use the engine \"fused\""
            )
        }
        let seconds = Double(pixels) * nanoseconds(calls) / 1e9
        guard seconds <= limit else {
            throw .tooMuchWork(
                "ImageMagick would need about \(Int(seconds.rounded(.up))) s, and a worker has \(Int(limit)) s; scale down "
                    + "with resize, or use the engine \"fused\""
            )
        }
        return seconds
    }

    /// The most pictures of the full size that exist at a time, with the one that a call works into.
    static func peak(_ calls: [MagickCall]) -> Int {
        var count = 1
        var most = 2
        peak(calls, &count, around: 0, &most)
        return most
    }

    private static func peak(_ calls: [MagickCall], _ count: inout Int, around: Int, _ most: inout Int) {
        for call in calls {
            switch call {
            // Tables are small, masks are not; a noise is as large as the picture.
            case .image: count += 1
            case .copy(let indices): count += indices.count
            case .delete(let indices): count -= indices.count
            case .group(let inner):
                var group = 0
                peak(inner, &group, around: around + count, &most)
                count += group
            case .clut, .hald, .composite: count -= 1
            case .separate: count *= 3
            case .combineLuma: count = 1
            default: break
            }
            var added = 1
            if case .effect(let effect) = call { added = effect.pictures }
            most = max(most, around + count + added)
        }
    }

    /// Nanoseconds for each pixel, on a processor of 2020.
    static func nanoseconds(_ calls: [MagickCall]) -> Double {
        calls.reduce(0) { sum, call in
            switch call {
            case .group(let inner): sum + nanoseconds(inner)
            case .crop, .delete, .copy, .alphaOff: sum + 2
            case .image(.noise): sum + 40
            case .image: sum + 5
            case .orient: sum + 20
            case .resize: sum + 60
            case .project: sum + 400
            case .clut, .matrix, .grey: sum + 20
            case .hald: sum + 500
            case .luma, .colour, .separate, .combineLuma: sum + 40
            case .convolve(let weights, _): sum + 20 + 12 * Double(weights.count)
            case .selectiveBlur: sum + 250
            case .composite: sum + 60
            case .effect(let effect): sum + effect.nanoseconds
            }
        }
    }
}
