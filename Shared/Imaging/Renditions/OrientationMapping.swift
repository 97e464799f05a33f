/// Maps the pixels of an oriented image to those of the stored image.
struct OrientationMapping: Sendable {
    /// The EXIF orientation of the file, and the orientation that is equivalent to the list's rotations and flips.
    let orientations: (Int, Int)
    /// The visible part of the stored image.
    let region: PixelRect

    /// Creates the mapping of a whole stored image.
    init(orientations: (Int, Int), width: Int, height: Int) {
        self.orientations = orientations
        region = PixelRect(x: 0, y: 0, width: width, height: height)
    }

    var isTransposed: Bool { (orientations.0 >= 5) != (orientations.1 >= 5) }

    /// True if the rows of the result are those of the region, in the same order.
    var isStraight: Bool {
        let steps = steps(of: region.width)
        return steps.start == 0 && steps.x == 3 && (steps.y == 3 * region.width || region.height == 1)
    }

    /// Returns byte offsets in a raster of the region: of the result's first pixel, and the steps to its right and
    /// lower neighbours.
    func steps(of width: Int) -> (start: Int, x: Int, y: Int) {
        func offset(_ x: Int, _ y: Int) -> Int {
            let middle = orientations.0 >= 5 ? (region.height, region.width) : (region.width, region.height)
            let upright = Self.storedPoint(x, y, orientations.1, middle.0, middle.1)
            let stored = Self.storedPoint(upright.x, upright.y, orientations.0, region.width, region.height)
            return 3 * (stored.y * width + stored.x)
        }
        let start = offset(0, 0)
        return (start, offset(1, 0) - start, offset(0, 1) - start)
    }

    /// Returns the region of a stored image of the given size that corresponds to a region of the upright image.
    static func region(_ rect: PixelRect, _ orientation: Int, _ width: Int, _ height: Int) -> PixelRect {
        let first = storedPoint(rect.x, rect.y, orientation, width, height)
        let last = storedPoint(rect.x + rect.width - 1, rect.y + rect.height - 1, orientation, width, height)
        return PixelRect(
            x: min(first.x, last.x),
            y: min(first.y, last.y),
            width: abs(first.x - last.x) + 1,
            height: abs(first.y - last.y) + 1
        )
    }

    /// Returns the point of an image of the given size that an EXIF orientation maps to a point of the upright image.
    static func storedPoint(_ x: Int, _ y: Int, _ orientation: Int, _ width: Int, _ height: Int) -> (x: Int, y: Int) {
        switch orientation {
        case 2: (width - 1 - x, y)
        case 3: (width - 1 - x, height - 1 - y)
        case 4: (x, height - 1 - y)
        case 5: (y, x)
        case 6: (y, height - 1 - x)
        case 7: (width - 1 - y, height - 1 - x)
        case 8: (width - 1 - y, x)
        default: (x, y)
        }
    }
}
