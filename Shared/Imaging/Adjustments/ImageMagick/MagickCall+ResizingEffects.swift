import CMagickWand

/// The effects of ``MagickPlan/resizing``, whose result has a size that is not known beforehand.
extension MagickCall.Effect {
    /// The number of MagickWand that equals 100 % in `convert`.
    private static let hundredPercent = 65_536.0

    /// Resets the filter of an earlier resize, which would also apply to the rotations of these effects.
    private static let filterReset = ["-filter", "Undefined"]

    /// The options of `convert`.
    var resizingWords: [String] {
        switch self {
        case .wave(let amplitude, let length, let colour):
            ["-background", colour, "-wave", "\(amplitude)x\(length)", "+repage"]
        case .liquidRescale(_, let size): ["-liquid-rescale", "\(size.width)x\(size.height)!"]
        case .trim(let fuzz): ["-fuzz", "\(100 * fuzz)%", "-trim", "+repage", "-fuzz", "0"]
        case .deskew(let threshold, let colour):
            Self.filterReset + ["-background", colour, "-deskew", "\(100 * threshold)%", "+repage"]
        case .polaroid(let angle, let colour):
            Self.filterReset + [
                "+set", "Caption", "-bordercolor", "#ffffff", "-background", "#000000", "-polaroid", "\(angle)",
                "+repage", "-background", colour, "-alpha", "remove", "-alpha", "off",
            ]
        case .shadow(let opacity, let radius, let offset, let colour):
            [
                "(", "-clone", "0", "-background", "#000000", "-shadow",
                "\(100 * opacity)x\(radius)+\(offset)+\(offset)", ")", "+swap", "-background", colour, "-layers",
                "merge", "+repage", "-alpha", "remove", "-alpha", "off",
            ]
        default: []
        }
    }

    /// The estimated nanoseconds per pixel, on a processor of 2020.
    var resizingNanoseconds: Double {
        switch self {
        case .wave: 200
        case .liquidRescale(let before, let after):
            // Each seam is one pass over the image.
            300 + 3 * Double(abs(after.width - before.width) + abs(after.height - before.height))
        case .trim: 60
        case .deskew: 600
        case .polaroid: 800
        case .shadow(_, let radius, _, _): 100 + 26 * radius
        default: 0
        }
    }

    /// Carries out the effect.
    func applyResizing(_ wand: borrowing Wand) throws(ImagingError) {
        let pointer = wand.pointer
        switch self {
        case .wave(let amplitude, let length, let colour):
            try setBackground(wand, colour)
            try wand.attempt("bending", MagickWaveImage(pointer, amplitude, length))
            MagickResetImagePage(pointer, "")
        case .liquidRescale(_, let size): try rescale(wand, size.width, size.height)
        case .trim(let fuzz):
            let whole = try wand.copy()
            let isTrimmed = MagickTrimImage(pointer, Self.hundredPercent * fuzz) == MagickTrue
            // Trimming an image of one colour leaves one pixel, or fails because it would leave none.
            if !isTrimmed || wand.width * wand.height == 1 { try replace(wand, with: whole.pointer) }
            MagickSetImageFuzz(pointer, 0)
            MagickResetImagePage(pointer, "")
        case .deskew(let threshold, let colour):
            try setBackground(wand, colour)
            try wand.attempt("straightening", MagickDeskewImage(pointer, Self.hundredPercent * threshold))
            MagickResetImagePage(pointer, "")
        case .polaroid(let angle, let colour): try polaroid(wand, angle, colour)
        case .shadow(let opacity, let radius, let offset, let colour):
            try shadow(wand, opacity, radius, offset, colour)
        default: break
        }
    }

    /// True if ImageMagick was built with seam carving, which is optional.
    private static let hasSeamCarving: Bool = {
        guard let text = MagickQueryConfigureOption("DELEGATES") else { return false }
        defer { MagickRelinquishMemory(text) }
        return String(cString: text).split(separator: " ").contains("lqr")
    }()

    private func rescale(_ wand: borrowing Wand, _ width: Int, _ height: Int) throws(ImagingError) {
        guard Self.hasSeamCarving else {
            throw .invalidOptions(
                "liquidRescale needs ImageMagick with liblqr, and this one was built without it; scale with resize"
            )
        }
        try wand.attempt("rescaling", MagickLiquidRescaleImage(wand.pointer, width, height, 1, 0))
        MagickResetImagePage(wand.pointer, "")
    }

    private func polaroid(_ wand: borrowing Wand, _ angle: Double, _ colour: String) throws(ImagingError) {
        let pointer = wand.pointer
        // Otherwise the caption of the file would be drawn, with its percent escapes interpreted.
        MagickDeleteImageProperty(pointer, "Caption")
        guard let drawing = NewDrawingWand() else { throw .undecodable(reason: "out of memory") }
        defer { DestroyDrawingWand(drawing) }
        try withColours(wand, "#ffffff", "#000000") { border, background in
            MagickSetImageBorderColor(pointer, border)
            MagickSetImageBackgroundColor(pointer, background)
            return MagickPolaroidImage(pointer, drawing, angle)
        }
        MagickResetImagePage(pointer, "")
        try flatten(wand, colour)
    }

    private func shadow(
        _ wand: borrowing Wand,
        _ opacity: Double,
        _ radius: Double,
        _ offset: Int,
        _ colour: String
    ) throws(ImagingError) {
        let below = try wand.copy()
        try setBackground(below, "#000000")
        try below.attempt("shading", MagickShadowImage(below.pointer, 100 * opacity, radius, offset, offset))
        try setBackground(below, colour)
        let layers = try Wand()
        try layers.attempt("shading", MagickAddImage(layers.pointer, below.pointer))
        try layers.attempt("shading", MagickAddImage(layers.pointer, wand.pointer))
        MagickResetIterator(layers.pointer)
        guard let merged = MagickMergeImageLayers(layers.pointer, MergeLayer) else { throw layers.failure("shading") }
        defer { DestroyMagickWand(merged) }
        try replace(wand, with: merged)
        MagickResetImagePage(wand.pointer, "")
        try flatten(wand, colour)
    }

    private func setBackground(_ wand: borrowing Wand, _ colour: String) throws(ImagingError) {
        let pointer = wand.pointer
        try withColours(wand, colour, colour) { colour, _ in MagickSetImageBackgroundColor(pointer, colour) }
    }

    private func flatten(_ wand: borrowing Wand, _ colour: String) throws(ImagingError) {
        try setBackground(wand, colour)
        try wand.attempt("flattening", MagickSetImageAlphaChannel(wand.pointer, RemoveAlphaChannel))
        try wand.attempt("flattening", MagickSetImageAlphaChannel(wand.pointer, DeactivateAlphaChannel))
    }

    private func replace(_ wand: borrowing Wand, with other: OpaquePointer) throws(ImagingError) {
        try wand.attempt("replacing", MagickRemoveImage(wand.pointer))
        try wand.attempt("replacing", MagickAddImage(wand.pointer, other))
    }
}
