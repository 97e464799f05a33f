import CMagickWand
import CPixels

/// Turns pixels into the bytes of a file, without any metadata.
enum Encoder {
    /// The file's bytes.
    ///
    /// The quality of 1...100 is for JPEG, WebP and AVIF; the others are without loss. With `keepsProfile` the colour profile
    /// stays, otherwise the picture must be sRGB; with `keepsDepth` 16-bit pixels stay so where the format holds them.
    static func encode(
        _ wand: borrowing Wand,
        format: ImageFormat,
        quality: Int,
        keepsProfile: Bool = false,
        keepsDepth: Bool = false
    ) throws(ImagingError) -> [UInt8] {
        if wand.hasAlpha, !format.keepsAlpha {
            try Decoder.setBackground(wand, "white")
            try wand.attempt("flattening", MagickSetImageAlphaChannel(wand.pointer, RemoveAlphaChannel))
            try wand.attempt("flattening", MagickSetImageAlphaChannel(wand.pointer, DeactivateAlphaChannel))
        }
        let profile = keepsProfile ? wand.profile("icc") : nil
        if format == .jpeg, MagickGetImageColorspace(wand.pointer) == sRGBColorspace {
            return try jpeg(wand, quality: quality, profile: profile ?? [])
        }
        let staysDeep = keepsDepth && MagickGetImageDepth(wand.pointer) > 8
        try wand.attempt("stripping", MagickStripImage(wand.pointer))
        MagickDeleteImageArtifact(wand.pointer, "png:exclude-chunk")
        // Chunks of text and of time would tell of the source, and make equal pictures of unequal bytes.
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
            if !staysDeep {
                // ImageMagick rounds down, which makes a picture darker by half a step.
                try wand.withPixels { pixels, count in safelight_round_to_bytes(pixels, count) }
                wand.noteDepth(8)
            }
        // The others hold eight bits: bringing every pixel to them before would only take time.
        default: wand.noteDepth(8)
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
        // The reader's format and name would win over the picture's.
        MagickSetFormat(wand.pointer, format.coder)
        MagickSetFilename(wand.pointer, "")
        MagickSetImageFilename(wand.pointer, "")
        var length = 0
        guard let blob = MagickGetImageBlob(wand.pointer, &length), length > 0 else {
            throw .encodingFailed(wand.failure("encoding").message)
        }
        defer { MagickRelinquishMemory(blob) }
        return Array(UnsafeBufferPointer(start: blob, count: length))
    }

    /// ImageMagick's own writer takes twice the time for the same file.
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
                        safelight_bytes_of_pixels(pixels + 4 * first, band, start)
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
