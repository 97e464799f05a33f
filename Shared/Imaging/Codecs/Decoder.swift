import CMagickWand
import ImageFormats

/// Decodes image files into upright pixels.
enum Decoder {
    /// Returns the first frame, with orientation applied and with its colour profile.
    ///
    /// A JPEG is decoded at the given fraction in eighths. For HEIC, AVIF and raw files an embedded preview may be
    /// returned that has at least the fraction `scale` of the image's size. In all other cases the size is that of the
    /// header. `orientation`, if given, overrides that of the file.
    static func decode(
        _ bytes: [UInt8],
        _ header: ImageHeader,
        eighths: Int,
        scale: Double,
        limits: PixelLimits,
        orientation: Int? = nil
    ) throws(ImagingError) -> Wand {
        guard header.isComplete else { throw .truncated }
        // Images of only a few pixels are not scaled by the decoder.
        let isScaled =
            header.kind == .jpeg && eighths < DecodeScale.full && min(header.storedWidth, header.storedHeight) >= 16
        let width = isScaled ? DecodeScale.side(header.storedWidth, eighths) : header.storedWidth
        let height = isScaled ? DecodeScale.side(header.storedHeight, eighths) : header.storedHeight
        guard width * height <= limits.decodedPixels else {
            throw .tooLarge(width: header.pixelWidth, height: header.pixelHeight, limit: limits.decodedPixels)
        }
        if header.kind == .raw { return try RawDecoder.decode(bytes, header, scale: scale, limits: limits) }
        if header.kind == .heic || header.kind == .avif {
            let wand = try HeifDecoder.decode(bytes, scale: scale, limits: limits)
            if header.hasLimitedGrey {
                let white = Double(UInt16.max)
                try wand.attempt("levels", MagickLevelImage(wand.pointer, white * 16 / 255, 1, white * 235 / 255))
            }
            return wand
        }
        if let wand = try decodeDirectly(bytes, header, limits: limits) {
            try check(wand, header, isScaled: false, width, height)
            if header.needsOrientation { try wand.apply(orientation: orientation ?? header.orientation) }
            return wand
        }
        let wand = try Wand()
        if isScaled {
            let divisor = DecodeScale.divisor(eighths)
            let hint = "\(header.storedWidth / divisor)x\(header.storedHeight / divisor)"
            MagickSetOption(wand.pointer, "jpeg:size", hint)
        }
        let file =
            switch header.kind {
            case .tiff: TIFFStructure.corrected(bytes) ?? bytes
            case .bmp: withSize(bytes)
            default: bytes
            }
        guard wand.read(file, by: header.kind.coder), MagickGetNumberImages(wand.pointer) > 0,
            wand.width * wand.height > 0
        else { throw failure(of: wand, bytes, header.kind) }
        if header.kind == .tiff, wand.error.map(TIFFStructure.meansMissingPixels) == true {
            throw wand.failure("decoding")
        }
        if header.kind == .png { ColourProfile.ignoreGamma(wand) }
        if let colours = header.codedColours { try ColourProfile.apply(colours, to: wand) }
        if header.kind == .gif { try extendToCanvas(wand, header) }
        if header.isNegated { try wand.attempt("negating", MagickNegateImage(wand.pointer, MagickFalse)) }
        try check(wand, header, isScaled: isScaled, width, height)
        if isScaled, wand.width != width || wand.height != height {
            try wand.crop(PixelRect(x: 0, y: 0, width: width, height: height))
        }
        try wand.apply(orientation: orientation ?? header.orientation)
        return wand
    }

    /// Returns the reason why ImageMagick could not decode a file. For some formats ImageMagick loses the message of
    /// the library.
    private static func failure(of wand: borrowing Wand, _ bytes: [UInt8], _ kind: ImageFormat) -> ImagingError {
        let action = "decoding"
        let failure = wand.failure(action)
        guard failure == .undecodable(reason: Wand.unexplained(action)) else { return failure }
        if kind == .jpeg, let reason = JPEGReader.problem(of: bytes) { return .undecodable(reason: reason) }
        return .undecodable(
            reason: "its \(kind.rawValue) data is damaged, or of a kind that is not read; copy it again from its source"
        )
    }

    /// Returns a BMP with its real size in the header, because ImageMagick refuses a BMP with a larger size there.
    private static func withSize(_ bmp: [UInt8]) -> [UInt8] {
        var bytes = bmp
        bytes.replaceSubrange(2..<6, with: (0..<4).map { UInt8(truncatingIfNeeded: bmp.count >> (8 * $0)) })
        return bytes
    }

    /// Decodes the formats for which ImageMagick's coders are not used; nil for the others.
    private static func decodeDirectly(
        _ bytes: [UInt8],
        _ header: ImageHeader,
        limits: PixelLimits
    ) throws(ImagingError) -> Wand? {
        switch header.kind {
        case .jxl: return try JPEGXLDecoder.decode(bytes, limits: limits)
        case .psd: return try PSDDecoder.decode(bytes, limits: limits)
        case .tga: return try TGADecoder.decode(bytes, limits: limits)
        case .pnm: return try PNMDecoder.decode(bytes, limits: limits)
        case .ico:
            return try ICODecoder.decode(bytes, limits: limits) { (png) throws(ImagingError) in
                let inner = try ImageProbe.header(of: png, limits: limits)
                return try decode(png, inner, eighths: DecodeScale.full, scale: 1, limits: limits, orientation: 1)
            }
        default: return nil
        }
    }

    /// Checks that the decoded size is that of the header, from which limits and sizes were computed.
    private static func check(
        _ wand: borrowing Wand,
        _ header: ImageHeader,
        isScaled: Bool,
        _ width: Int,
        _ height: Int
    ) throws(ImagingError) {
        let agrees =
            isScaled
            ? (width...width + 1).contains(wand.width) && (height...height + 1).contains(wand.height)
            : wand.width == width && wand.height == height
        guard agrees else {
            throw .undecodable(
                reason: "the header has \(header.storedWidth) by \(header.storedHeight) pixels, the data "
                    + "\(wand.width) by \(wand.height)"
            )
        }
    }

    /// Extends a GIF frame that covers only a part of the canvas.
    private static func extendToCanvas(_ wand: borrowing Wand, _ header: ImageHeader) throws(ImagingError) {
        var (width, height, x, y) = (0, 0, 0, 0)
        MagickGetImagePage(wand.pointer, &width, &height, &x, &y)
        guard x != 0 || y != 0 || wand.width != header.storedWidth || wand.height != header.storedHeight else { return }
        try setBackground(wand, "none")
        try wand.attempt(
            "extending",
            MagickExtentImage(wand.pointer, header.storedWidth, header.storedHeight, -x, -y)
        )
        MagickResetImagePage(wand.pointer, "")
    }

    static func setBackground(_ wand: borrowing Wand, _ colour: String) throws(ImagingError) {
        guard let pixel = NewPixelWand() else { throw .undecodable(reason: "out of memory") }
        defer { DestroyPixelWand(pixel) }
        PixelSetColor(pixel, colour)
        MagickSetImageBackgroundColor(wand.pointer, pixel)
    }
}
