import CHeif
import CMagickWand

/// Encodes AVIF with libheif, because ImageMagick's coders cannot write it.
enum AvifEncoder {
    /// True if libheif has an AV1 encoder on this machine.
    static let isThere = heif_have_encoder_for_format(heif_compression_AV1) != 0

    /// The encoder's speed, 0 (best) to 9. At 8 encoding takes a few times as long as JPEG, and files are half as
    /// large.
    private static let speed: Int32 = 8

    /// Encodes an sRGB image without metadata; the quality is 1...100.
    static func encode(_ wand: borrowing Wand, quality: Int) throws(ImagingError) -> [UInt8] {
        guard let context = heif_context_alloc() else { throw .encodingFailed("out of memory") }
        defer { heif_context_free(context) }
        var encoder: OpaquePointer?
        try check(heif_context_get_encoder_for_format(context, heif_compression_AV1, &encoder))
        guard let encoder else { throw .encodingFailed("no AV1 encoder") }
        defer { heif_encoder_release(encoder) }
        try check(heif_encoder_set_lossy_quality(encoder, Int32(quality)))
        // Not every encoder supports these parameters.
        _ = heif_encoder_set_parameter_integer(encoder, "speed", speed)
        _ = heif_encoder_set_parameter_integer(encoder, "threads", 1)
        let image = try picture(of: wand)
        defer { heif_image_release(image) }
        var handle: OpaquePointer?
        try check(heif_context_encode_image(context, image, encoder, nil, &handle))
        if let handle { heif_image_handle_release(handle) }
        return try written(context)
    }

    private static func picture(of wand: borrowing Wand) throws(ImagingError) -> OpaquePointer {
        let (width, height, hasAlpha) = (wand.width, wand.height, wand.hasAlpha)
        let samples = hasAlpha ? 4 : 3
        var pixels = [UInt8](repeating: 0, count: width * height * samples)
        try wand.attempt(
            "reading pixels",
            MagickExportImagePixels(wand.pointer, 0, 0, width, height, hasAlpha ? "RGBA" : "RGB", CharPixel, &pixels)
        )
        var image: OpaquePointer?
        try check(
            heif_image_create(
                Int32(width),
                Int32(height),
                heif_colorspace_RGB,
                hasAlpha ? heif_chroma_interleaved_RGBA : heif_chroma_interleaved_RGB,
                &image
            )
        )
        guard let image else { throw .encodingFailed("out of memory") }
        do throws(ImagingError) {
            try check(heif_image_add_plane(image, heif_channel_interleaved, Int32(width), Int32(height), 8))
            var stride: Int32 = 0
            guard let plane = heif_image_get_plane(image, heif_channel_interleaved, &stride),
                Int(stride) >= width * samples
            else { throw .encodingFailed("no plane for the pixels") }
            pixels.withUnsafeBufferPointer { source in
                guard let base = source.baseAddress else { return }
                for row in 0..<height {
                    plane.advanced(by: row * Int(stride)).update(
                        from: base.advanced(by: row * width * samples),
                        count: width * samples
                    )
                }
            }
            return image
        } catch {
            heif_image_release(image)
            throw error
        }
    }

    private final class Sink {
        var bytes: [UInt8] = []
    }

    private static func written(_ context: OpaquePointer) throws(ImagingError) -> [UInt8] {
        let sink = Sink()
        var writer = heif_writer()
        writer.writer_api_version = 1
        writer.write = { _, data, size, target in
            if let data, let target {
                Unmanaged<Sink>.fromOpaque(target).takeUnretainedValue().bytes
                    .append(contentsOf: UnsafeRawBufferPointer(start: data, count: size))
            }
            return heif_error(code: heif_error_Ok, subcode: heif_suberror_Unspecified, message: nil)
        }
        try check(heif_context_write(context, &writer, Unmanaged.passUnretained(sink).toOpaque()))
        return withExtendedLifetime(sink) { sink.bytes }
    }

    private static func check(_ error: heif_error) throws(ImagingError) {
        guard error.code != heif_error_Ok else { return }
        if error.code == heif_error_Memory_allocation_error {
            throw .tooMuchWork(
                "an avif of so many pixels needs more memory than a worker has; ask for fewer, or for jpeg"
            )
        }
        throw .encodingFailed(error.message.map { String(cString: $0) } ?? "libheif failed")
    }
}
