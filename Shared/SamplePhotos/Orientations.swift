/// The EXIF orientations 1 to 8 as arithmetic on pixels.
public enum Orientations {
    /// Returns true if the orientation swaps width and height.
    public static func swapsSides(_ orientation: Int) -> Bool { orientation >= 5 }

    /// Returns the position of a stored pixel in the upright image of `width` by `height`; unchanged if the orientation
    /// is unknown.
    public static func displayed(
        _ x: Int,
        _ y: Int,
        width: Int,
        height: Int,
        orientation: Int
    ) -> (x: Int, y: Int) {
        switch orientation {
        case 2: (width - 1 - x, y)
        case 3: (width - 1 - x, height - 1 - y)
        case 4: (x, height - 1 - y)
        case 5: (y, x)
        case 6: (width - 1 - y, x)
        case 7: (width - 1 - y, height - 1 - x)
        case 8: (y, height - 1 - x)
        default: (x, y)
        }
    }
}
