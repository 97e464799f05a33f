import CAVIF
import CMagickWand

/// Encodes AVIF with libavif: ImageMagick's coders cannot write it, and libheif 1.15 cannot write ten bits.
enum AvifEncoder {
    /// True if libavif has an AV1 encoder on this machine.
    static let isAvailable =
        avifCodecName(AVIF_CODEC_CHOICE_AUTO, avifCodecFlags(AVIF_CODEC_FLAG_CAN_ENCODE.rawValue)) != nil

    /// The encoder's speed, 0 (best) to 10. At 8 encoding takes a few times as long as JPEG, and files are half as
    /// large.
    private static let speed: Int32 = 8

    /// The minimum quality at which chroma has full resolution, as in JPEG.
    private static let minFullChromaQuality = 90

    /// Encodes an sRGB image without metadata; the quality is 1...100.
    static func encode(_ wand: borrowing Wand, quality: Int) throws(ImagingError) -> [UInt8] {
        let (width, height, hasAlpha) = (wand.width, wand.height, wand.hasAlpha)
        var pixels = [UInt8](repeating: 0, count: width * height * (hasAlpha ? 4 : 3))
        try wand.attempt(
            "reading pixels",
            MagickExportImagePixels(wand.pointer, 0, 0, width, height, hasAlpha ? "RGBA" : "RGB", CharPixel, &pixels)
        )
        let image = try Image(width, height, depth: 8, pixelFormat(quality))
        image.pointer.pointee.colorPrimaries = avifColorPrimaries(AVIF_COLOR_PRIMARIES_BT709)
        image.pointer.pointee.transferCharacteristics = avifTransferCharacteristics(AVIF_TRANSFER_CHARACTERISTICS_SRGB)
        image.pointer.pointee.matrixCoefficients = avifMatrixCoefficients(AVIF_MATRIX_COEFFICIENTS_BT601)
        try check(image.fill(&pixels, hasAlpha ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB))
        return try image.encoded(quality: quality)
    }

    /// Encodes 10-bit samples in BT.2020 and PQ; the quality is 1...100.
    static func encode(_ samples: HDRRendering.Samples, quality: Int) throws(ImagingError) -> [UInt8] {
        var values = samples.values
        let image = try Image(samples.width, samples.height, depth: 10, pixelFormat(quality))
        image.pointer.pointee.colorPrimaries = avifColorPrimaries(AVIF_COLOR_PRIMARIES_BT2020)
        image.pointer.pointee.transferCharacteristics = avifTransferCharacteristics(
            AVIF_TRANSFER_CHARACTERISTICS_SMPTE2084
        )
        image.pointer.pointee.matrixCoefficients = avifMatrixCoefficients(AVIF_MATRIX_COEFFICIENTS_BT2020_NCL)
        try check(image.fill(&values, AVIF_RGB_FORMAT_RGB))
        return try image.encoded(quality: quality)
    }

    private static func pixelFormat(_ quality: Int) -> avifPixelFormat {
        quality < minFullChromaQuality ? AVIF_PIXEL_FORMAT_YUV420 : AVIF_PIXEL_FORMAT_YUV444
    }

    /// An image in libavif's memory, freed by `deinit`.
    private struct Image: ~Copyable {
        let pointer: UnsafeMutablePointer<avifImage>

        init(_ width: Int, _ height: Int, depth: UInt32, _ format: avifPixelFormat) throws(ImagingError) {
            guard let pointer = avifImageCreate(UInt32(width), UInt32(height), depth, format) else {
                throw .encodingFailed("out of memory")
            }
            self.pointer = pointer
            pointer.pointee.yuvRange = AVIF_RANGE_FULL
        }

        deinit { avifImageDestroy(pointer) }

        /// Sets the image from pixels of its bit depth, row by row without gaps.
        func fill(_ pixels: UnsafeMutableRawPointer, _ format: avifRGBFormat) -> avifResult {
            var source = avifRGBImage()
            avifRGBImageSetDefaults(&source, pointer)
            source.format = format
            source.pixels = pixels.assumingMemoryBound(to: UInt8.self)
            source.rowBytes = source.width * avifRGBImagePixelSize(&source)
            return avifImageRGBToYUV(pointer, &source)
        }

        func encoded(quality: Int) throws(ImagingError) -> [UInt8] {
            guard let encoder = avifEncoderCreate() else { throw .encodingFailed("out of memory") }
            defer { avifEncoderDestroy(encoder) }
            // Images are encoded in parallel by worker processes.
            encoder.pointee.maxThreads = 1
            encoder.pointee.speed = speed
            (encoder.pointee.minQuantizer, encoder.pointee.maxQuantizer) = (0, AVIF_QUANTIZER_WORST_QUALITY)
            let level = ((100 - Int32(quality)) * AVIF_QUANTIZER_WORST_QUALITY + 50) / 100
            (encoder.pointee.minQuantizerAlpha, encoder.pointee.maxQuantizerAlpha) = (0, level)
            avifEncoderSetCodecSpecificOption(encoder, "end-usage", "q")
            avifEncoderSetCodecSpecificOption(encoder, "cq-level", String(level))
            var output = avifRWData()
            defer { avifRWDataFree(&output) }
            try check(avifEncoderWrite(encoder, pointer, &output))
            return Array(UnsafeBufferPointer(start: output.data, count: output.size))
        }
    }

    private static func check(_ result: avifResult) throws(ImagingError) {
        guard result != AVIF_RESULT_OK else { return }
        if result == AVIF_RESULT_OUT_OF_MEMORY {
            throw .tooMuchWork(
                "an avif of so many pixels needs more memory than a worker has; ask for fewer, or for jpeg"
            )
        }
        throw .encodingFailed(avifResultToString(result).map { String(cString: $0) } ?? "libavif failed")
    }
}
