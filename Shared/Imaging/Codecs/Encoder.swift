import CMagickWand
import CPixels
import ImageFormats

/// Encodes pixels as a file without metadata.
enum Encoder {
    /// Returns the encoded file.
    ///
    /// The quality of 1...100 applies to JPEG, WebP and AVIF; other formats are lossless. With `keepsProfile` the
    /// colour profile is embedded, otherwise the image must be sRGB. With `keepsDepth` 16-bit pixels stay 16-bit if the
    /// format supports it.
    static func encode(
        _ wand: borrowing Wand,
        format: ImageFormat,
        quality: Int,
        keepsProfile: Bool = false,
        keepsDepth: Bool = false
    ) throws(ImagingError) -> [UInt8] {
        if !format.keepsAlpha { try flatten(wand) }
        let profile = keepsProfile ? wand.profile("icc") : nil
        if [RGBColorspace, LinearGRAYColorspace].contains(MagickGetImageColorspace(wand.pointer)) {
            // None of the encoded formats can declare linear values.
            try wand.attempt("encoding", MagickTransformImageColorspace(wand.pointer, sRGBColorspace))
        }
        if format == .jpeg, MagickGetImageColorspace(wand.pointer) == sRGBColorspace {
            return try jpeg(wand, quality: quality, profile: profile ?? [])
        }
        let isSixteenBit = keepsDepth && MagickGetImageDepth(wand.pointer) > 8
        try wand.attempt("stripping", MagickStripImage(wand.pointer))
        MagickDeleteImageArtifact(wand.pointer, "png:exclude-chunk")
        // Text and time chunks would reveal the source, and equal images would have different bytes.
        MagickSetImageArtifact(
            wand.pointer,
            "png:exclude-chunk",
            "bKGD,caNv,cHRM,eXIf,gAMA,iTXt,tEXt,zCCP,zTXt,date,tIME"
        )
        wand.setProfile(profile)
        MagickSetImageOrientation(wand.pointer, keepsProfile ? TopLeftOrientation : UndefinedOrientation)
        if format == .avif { return try AvifEncoder.encode(wand, quality: quality) }
        switch format {
        case .png, .tiff:
            // ImageMagick writes 16-bit palettes incorrectly: in a TIFF, with the colours of other entries. Writable
            // pixels have no palette.
            if isSixteenBit { _ = try wand.writablePixels() }
            if !isSixteenBit {
                // ImageMagick truncates to eight bits, which darkens an image by half a level on average.
                try wand.withPixels { pixels, count in safelight_round_to_bytes(pixels, count) }
                wand.setDepth(8)
            }
        // The other formats have eight bits, so the pixels need not be converted first.
        default: wand.setDepth(8)
        }
        MagickSetImageInterlaceScheme(wand.pointer, NoInterlace)
        switch format {
        case .jpeg:
            MagickSetImageCompression(wand.pointer, JPEGCompression)
            MagickSetImageCompressionQuality(wand.pointer, quality)
            MagickSetOption(wand.pointer, "jpeg:sampling-factor", quality >= 90 ? "1x1" : "2x2")
        case .webp: MagickSetImageCompressionQuality(wand.pointer, quality)
        case .tiff: MagickSetImageCompression(wand.pointer, LZWCompression)
        default:
            MagickSetImageCompression(wand.pointer, UndefinedCompression)
            MagickSetImageCompressionQuality(wand.pointer, 75)
        }
        guard MagickSetImageFormat(wand.pointer, format.coder) == MagickTrue else {
            throw .encodingFailed("no coder for \(format.rawValue)")
        }
        // The format and name set by the reader would override those of the image.
        MagickSetFormat(wand.pointer, format.coder)
        MagickSetFilename(wand.pointer, "")
        MagickSetImageFilename(wand.pointer, "")
        if let data = bytes(of: wand) { return data }
        guard format == .tiff else { throw .encodingFailed(wand.failure("encoding").message) }
        // libtiff seeks a few hundred bytes beyond the pixels before it writes their directory. ImageMagick's memory
        // buffer refuses the seek if the buffer ends there. Strips of another height end elsewhere.
        for rows in ["8", "5", "3"] {
            MagickClearException(wand.pointer)
            if let image = GetImageFromMagickWand(wand.pointer) { ClearMagickException(&image.pointee.exception) }
            MagickSetOption(wand.pointer, "tiff:rows-per-strip", rows)
            if let data = bytes(of: wand) { return data }
        }
        throw .encodingFailed(wand.failure("encoding").message)
    }

    /// Returns the file of an image whose format is set; nil if it cannot be written.
    private static func bytes(of wand: borrowing Wand) -> [UInt8]? {
        var length = 0
        guard let blob = MagickGetImageBlob(wand.pointer, &length) else { return nil }
        defer { MagickRelinquishMemory(blob) }
        return length > 0 ? Array(UnsafeBufferPointer(start: blob, count: length)) : nil
    }

    /// Flattens transparent areas on white.
    static func flatten(_ wand: borrowing Wand) throws(ImagingError) {
        guard wand.hasAlpha else { return }
        try Decoder.setBackground(wand, "white")
        try wand.attempt("flattening", MagickSetImageAlphaChannel(wand.pointer, RemoveAlphaChannel))
        try wand.attempt("flattening", MagickSetImageAlphaChannel(wand.pointer, DeactivateAlphaChannel))
    }

    /// Encodes a JPEG with libjpeg. ImageMagick's encoder takes twice the time for the same file.
    private static func jpeg(
        _ wand: borrowing Wand,
        quality: Int,
        profile: [UInt8]
    ) throws(ImagingError) -> [UInt8] {
        let width = wand.width
        let writer = try JPEGWriter(
            width: width,
            height: wand.height,
            quality: quality,
            isOptimized: true,
            profile: profile
        )
        var failure: ImagingError?
        try wand.withPixelsForReading { pixels, count in
            let rows = 16
            withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 3 * width * rows) { bytes in
                guard let start = bytes.baseAddress else { return }
                do throws(ImagingError) {
                    for first in stride(from: 0, to: count, by: width * rows) {
                        let band = min(width * rows, count - first)
                        safelight_pixels_to_bytes(pixels + 4 * first, band, start)
                        try writer.write(start, rowBytes: 3 * width, count: band / width)
                    }
                } catch {
                    failure = error
                }
            }
        }
        if let failure { throw failure }
        return try writer.finish()
    }
}
