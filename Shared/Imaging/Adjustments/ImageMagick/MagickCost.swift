/// An estimate of the memory and time of a plan, before its first call.
enum MagickCost {
    /// The maximum memory of the images of a plan, in bytes. The file and its decoder need the rest of a worker's
    /// memory.
    static let maxMemory = 3 << 30

    /// Refuses a plan that needs more memory or time than is available.
    ///
    /// - Parameters:
    ///   - pixels: the pixels of the image or of its result, if that is larger
    ///   - concurrentPixels: the pixels that are in memory at the same time; nil for all
    ///   - limit: the seconds that remain
    /// - Returns: the estimate in seconds
    /// - Throws: ``ImagingError/tooMuchWork(_:)`` with a size that would be possible
    @discardableResult
    static func check(
        _ calls: [MagickCall],
        pixels: Int,
        concurrentPixels: Int? = nil,
        seconds limit: Double
    ) throws(ImagingError) -> Double {
        let images = peak(calls)
        let bytes = images * 8 * (concurrentPixels ?? pixels)
        guard bytes <= maxMemory else {
            throw .tooMuchWork(
                "ImageMagick would need \(bytes >> 20) MiB for \(pixels / 1_000_000) megapixels, and there "
                    + "are \(maxMemory >> 20); scale down with resize, to at most \(maxMemory / (images * 8) / 1_000_000) "
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

    /// Returns the maximum number of full-size images that exist at the same time, including the output of a call.
    static func peak(_ calls: [MagickCall]) -> Int {
        var list = [true]
        var maximum = 2
        peak(calls, &list, enclosing: 0, &maximum)
        return maximum
    }

    /// - Parameters:
    ///   - list: for each image, true if it has its own pixels; copies share theirs until they change
    ///   - enclosing: the number of images with their own pixels in the enclosing lists
    ///   - maximum: the result
    private static func peak(_ calls: [MagickCall], _ list: inout [Bool], enclosing: Int, _ maximum: inout Int) {
        for call in calls {
            switch call {
            // Tables are small, but masks are not, and noise is as large as the image.
            case .image: list.append(true)
            case .copy(let indices): list += indices.map { _ in false }
            case .delete(let indices): for index in indices.sorted(by: >) { list.remove(at: index) }
            case .group(let inner):
                var group: [Bool] = []
                peak(inner, &group, enclosing: enclosing + ownedCount(list), &maximum)
                list += group
            case .clut, .hald, .composite: list = [true]
            case .separate: list = Array(repeating: true, count: 3 * list.count)
            case .combineLuma: list = [true]
            default: list = list.map { _ in true }
            }
            var added = 1
            if case .effect(let effect) = call { added = effect.extraImages }
            maximum = max(maximum, enclosing + ownedCount(list) + added)
        }
    }

    private static func ownedCount(_ list: [Bool]) -> Int { list.count { $0 } }

    /// Returns the estimated nanoseconds per pixel, on a processor of 2020.
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
