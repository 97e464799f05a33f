/// A call to ImageMagick on a list of images.
///
/// A plan is a list of such calls. ``MagickRunner`` makes them with MagickWand, ``MagickScript`` writes them as options
/// of the program `convert`. As in `convert`, a call applies to every image of the list.
indirect enum MagickCall {
    // MARK: Images

    /// Appends an image that is created for this plan.
    case image(MagickImage)
    /// Appends copies of images of the enclosing list.
    case copy([Int])
    /// Removes images.
    case delete([Int])
    /// Appends the images that calls on an empty list create: `( … )`.
    case group([MagickCall])

    // MARK: Geometry

    case crop(PixelRect)
    /// Rotates and mirrors according to an EXIF orientation 2...8.
    case orient(Int)
    case resize(width: Int, height: Int, Filter)
    /// Resamples with a Lanczos filter. The map converts points of the image to points of the result.
    case project(map: [Double], width: Int, height: Int)

    // MARK: Pixels

    /// Replaces the two images of the list by the first, with each channel looked up in the single row of the second.
    case clut
    /// Replaces the two images of the list by the first, with its colours looked up in the second, a HALD CLUT.
    case hald
    /// Applies a matrix with rows red, green, blue, of three columns, or of six, the last of which is added. The result
    /// is clipped.
    case matrix([Double])
    /// Replaces the three channels by a grey.
    case grey(Grey)
    /// Replaces red, green and blue by hue, saturation and lightness of HSL.
    case hue
    /// Converts sRGB to luma and colour differences of Rec. 709.
    case luma
    /// Converts the colour space back to sRGB.
    case colour
    /// Replaces each image by one image per channel.
    case separate
    /// Combines the three images of the channels of ``luma`` and converts the result to sRGB.
    case combineLuma
    /// Convolves with a kernel of one row or one column.
    case convolve([Double], isColumn: Bool)
    /// Blurs with a Gaussian of 1.5 pixels over those of 5 by 5 pixels that differ by less than the threshold.
    case selectiveBlur(threshold: Double)
    case alphaOff
    case effect(Effect)

    // MARK: Composition

    /// Replaces the two images of the list, destination and source, by their composition.
    case composite(Composition)

    /// A grey of the three channels: the luma of Rec. 709, the largest, or the mean of the largest and the smallest.
    enum Grey: String { case luma = "Rec709Luma", brightness = "Brightness", lightness = "Lightness" }

    enum Filter: String { case lanczos = "Lanczos", triangle = "Triangle", box = "Box" }

    enum Composition {
        case multiply
        /// The weight of the source.
        case blend(Double)
        /// a S D + b S + c D + d, for a source S and a destination D.
        case mathematics(Double, Double, Double, Double)
        /// The source over the destination at an offset.
        case over(x: Int, y: Int)
        /// The colours of the destination with the opacity of the source.
        case copyOpacity
    }
}
