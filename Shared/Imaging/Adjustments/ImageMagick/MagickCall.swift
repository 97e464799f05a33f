/// A call of ImageMagick on a list of pictures.
///
/// A plan of such calls has one meaning and two forms: ``MagickRunner`` makes them with MagickWand, ``MagickScript``
/// writes them as options of the program `convert`. As there, a call applies to every picture of the list.
indirect enum MagickCall {
    // MARK: Pictures

    /// Appends a picture that was made for this plan.
    case image(MagickImage)
    /// Appends copies of pictures of the list around the group.
    case copy([Int])
    /// Removes pictures.
    case delete([Int])
    /// Appends the pictures of a list of its own: `( … )`.
    case group([MagickCall])

    // MARK: Geometry

    case crop(PixelRect)
    /// Turns and mirrors as an EXIF orientation of 2...8 demands.
    case orient(Int)
    case resize(width: Int, height: Int, Filter)
    /// Resamples with a Lanczos filter; the map leads from points of the picture to points of the result.
    case project(map: [Double], width: Int, height: Int)

    // MARK: Pixels

    /// Replaces the two pictures of the list by the first with its colours looked up in the second: in its one row,
    /// each channel on its own, or in its cube.
    case clut
    case hald
    /// A matrix with rows red, green, blue: of three columns, or of six, whose last is added. The result is clipped.
    case matrix([Double])
    case grey(Grey)
    /// The hue, the saturation and the lightness of HSL in place of red, green and blue.
    case hue
    /// To luma and colour differences of Rec. 709, or back to sRGB.
    case luma
    case colour
    /// Replaces a picture by one for each of its three channels, and the reverse for pictures of ``luma``.
    case separate
    case combineLuma
    /// Convolves with a kernel of one row or one column.
    case convolve([Double], isColumn: Bool)
    /// A Gaussian of 1.5 pixels over 5 by 5 pixels, of those that differ by less than the threshold.
    case selectiveBlur(threshold: Double)
    case alphaOff
    case effect(Effect)

    // MARK: Composition

    /// Replaces the two pictures of the list, destination and source, by their composition.
    case composite(Composition)

    /// A grey of the three channels: the luma of Rec. 709, the largest, or the mean of the largest and the smallest.
    enum Grey: String { case luma = "Rec709Luma", brightness = "Brightness", lightness = "Lightness" }

    enum Filter: String { case lanczos = "Lanczos", triangle = "Triangle", box = "Box" }

    enum Composition {
        case multiply
        /// The share of the source in a mixture.
        case blend(Double)
        /// a S D + b S + c D + d, for a source S and a destination D.
        case mathematics(Double, Double, Double, Double)
        /// The source over the destination at an offset.
        case over(x: Int, y: Int)
        /// The opacity of the source with the colours of the destination.
        case copyOpacity
    }
}
