/// An estimate of what a plan costs, made before its first call.
enum MagickCost {
    /// The most memory that the pictures of a plan may take, in bytes. The file and its decoder need the rest of a
    /// worker's memory.
    static let memory = 3 << 30

    /// Refuses a plan that takes more memory or time than there is.
    ///
    /// - Parameters:
    ///   - pixels: the pixels of the larger one of the picture and its result
    ///   - atATime: the pixels that are in memory at a time, if not all
    ///   - limit: the seconds that are left
    /// - Returns: the estimate in seconds
    /// - Throws: ``ImagingError/tooMuchWork(_:)``, naming what would be possible
    @discardableResult
    static func check(
        _ calls: [MagickCall],
        pixels: Int,
        atATime: Int? = nil,
        seconds limit: Double
    ) throws(ImagingError) -> Double {
        let pictures = peak(calls)
        let bytes = pictures * 8 * (atATime ?? pixels)
        guard bytes <= memory else {
            throw .tooMuchWork(
                "ImageMagick would need \(bytes >> 20) MiB for \(pixels / 1_000_000) megapixels, and there "
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

    /// The most pictures of the full size that exist at a time, including the output of a call.
    static func peak(_ calls: [MagickCall]) -> Int {
        var list = [true]
        var most = 2
        peak(calls, &list, around: 0, &most)
        return most
    }

    /// - Parameters:
    ///   - list: for each picture, true if it has its own pixels; copies share theirs until they change
    ///   - around: the pictures with pixels in the lists around this one
    private static func peak(_ calls: [MagickCall], _ list: inout [Bool], around: Int, _ most: inout Int) {
        for call in calls {
            switch call {
            // Tables are small, masks are not; a noise is as large as the picture.
            case .image: list.append(true)
            case .copy(let indices): list += indices.map { _ in false }
            case .delete(let indices): for index in indices.sorted(by: >) { list.remove(at: index) }
            case .group(let inner):
                var group: [Bool] = []
                peak(inner, &group, around: around + owned(list), &most)
                list += group
            case .clut, .hald, .composite: list = [true]
            case .separate: list = Array(repeating: true, count: 3 * list.count)
            case .combineLuma: list = [true]
            default: list = list.map { _ in true }
            }
            var added = 1
            if case .effect(let effect) = call { added = effect.pictures }
            most = max(most, around + owned(list) + added)
        }
    }

    private static func owned(_ list: [Bool]) -> Int { list.count { $0 } }

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
            case .hue, .luma, .colour, .separate, .combineLuma: sum + 40
            case .convolve(let weights, _): sum + 20 + 12 * Double(weights.count)
            case .selectiveBlur: sum + 250
            case .composite: sum + 60
            case .effect(let effect): sum + effect.nanoseconds
            }
        }
    }
}
