import CHeif
import CMagickWand
import ImageFormats

/// Decodes HEIC and AVIF with libheif, because ImageMagick's reader drops transparency and ignores embedded previews.
///
/// libheif applies the file's own rotation and mirroring, so the EXIF orientation is not applied again.
enum HeifDecoder {
    static func decode(_ bytes: [UInt8], scale: Double, limits: PixelLimits) throws(ImagingError) -> Wand {
        guard let wand = try decode(bytes, scale: scale, limits: limits, isPreviewOnly: false) else {
            throw .undecodable(reason: "the file contains no image")
        }
        return wand
    }

    /// Returns the largest preview that is embedded in the file; nil if there is none.
    static func preview(_ bytes: [UInt8], limits: PixelLimits) throws(ImagingError) -> Wand? {
        try decode(bytes, scale: 0, limits: limits, isPreviewOnly: true)
    }

    /// Returns an image of the file, which need not be the primary one, without its profile.
    static func item(_ bytes: [UInt8], id: heif_item_id, limits: PixelLimits) throws(ImagingError) -> Wand {
        let pixels = try reading(bytes, limits: limits) { (context) throws(ImagingError) -> Pixels in
            var handle: OpaquePointer?
            try check(heif_context_get_image_handle(context, id, &handle))
            guard let handle else { throw .undecodable(reason: "the file has no image \(id)") }
            defer { heif_image_handle_release(handle) }
            return try decode(handle, limits)
        }
        return try wand(pixels)
    }

    /// Returns the auxiliary image of a type that the primary image has, without its colour profile. Its XMP packet is
    /// the profile `xmp`.
    static func auxiliary(_ bytes: [UInt8], type: String, limits: PixelLimits) throws(ImagingError) -> Wand {
        let (pixels, packet) = try reading(bytes, limits: limits) {
            (context) throws(ImagingError) -> (Pixels, [UInt8]?) in
            var primary: OpaquePointer?
            try check(heif_context_get_primary_image_handle(context, &primary))
            guard let primary else { throw .undecodable(reason: "the file has no primary image") }
            defer { heif_image_handle_release(primary) }
            guard let handle = auxiliary(of: primary, type: type) else {
                throw .undecodable(reason: "the file has no auxiliary image of the type \(type)")
            }
            defer { heif_image_handle_release(handle) }
            return (try decode(handle, limits), Self.packet(of: handle))
        }
        let wand = try Self.wand(pixels)
        if let packet { MagickSetImageProfile(wand.pointer, "xmp", packet, packet.count) }
        return wand
    }

    private static func decode(
        _ bytes: [UInt8],
        scale: Double,
        limits: PixelLimits,
        isPreviewOnly: Bool
    ) throws(ImagingError) -> Wand? {
        let found = try reading(bytes, limits: limits) { (context) throws(ImagingError) in
            try read(context, scale: scale, limits: limits, isPreviewOnly: isPreviewOnly)
        }
        guard let (pixels, colours) = found else { return nil }
        let wand = try Self.wand(pixels)
        switch colours {
        case .profile(let profile): wand.setProfile(profile)
        case .numbers(let numbers): try ColourProfile.apply(numbers, to: wand)
        case nil: break
        }
        return wand
    }

    private static func wand(_ pixels: Pixels) throws(ImagingError) -> Wand {
        let wand = try Wand()
        try wand.constitute(
            pixels.bytes,
            width: pixels.width,
            height: pixels.height,
            hasAlpha: pixels.hasAlpha,
            isDeep: pixels.isDeep
        )
        return wand
    }

    /// Calls `body` with the file, which is parsed and not copied.
    private static func reading<Value>(
        _ bytes: [UInt8],
        limits: PixelLimits,
        _ body: (_ context: OpaquePointer) throws(ImagingError) -> Value
    ) throws(ImagingError) -> Value {
        var result: Result<Value, ImagingError> = .failure(.undecodable(reason: "no bytes"))
        let bytes = withBrandOfImage(bytes)
        bytes.withUnsafeBytes { buffer in
            do throws(ImagingError) {
                guard let context = heif_context_alloc() else { throw .undecodable(reason: "out of memory") }
                defer { heif_context_free(context) }
                heif_context_set_maximum_image_size_limit(context, Int32(clamping: limits.side))
                // Images are decoded in parallel by worker processes, so tiles are decoded on this thread.
                heif_context_set_max_decoding_threads(context, 0)
                try check(heif_context_read_from_memory_without_copy(context, buffer.baseAddress, buffer.count, nil))
                result = .success(try body(context))
            } catch {
                result = .failure(error)
            }
        }
        return try result.get()
    }

    /// Returns the bytes of a sequence with the brand of an image: libheif does not support the brand of sequences,
    /// which may have a primary image too.
    private static func withBrandOfImage(_ bytes: [UInt8]) -> [UInt8] {
        let (sequence, image) = (Array("avis".utf8), Array("avif".utf8))
        guard bytes.count > 32, bytes[8..<12].elementsEqual(sequence) else { return bytes }
        var result = bytes
        // The major brand, a version, and the compatible brands.
        for start in stride(from: 8, to: min(Int(bytes[3]), 64, bytes.count - 4), by: 4)
        where result[start..<start + 4].elementsEqual(sequence) {
            result.replaceSubrange(start..<start + 4, with: image)
        }
        return result
    }

    private struct Pixels {
        let width: Int
        let height: Int
        let hasAlpha: Bool
        /// True for 16-bit samples in this machine's byte order, false for 8-bit samples.
        let isDeep: Bool
        let bytes: [UInt8]
    }

    private enum Colours {
        case profile([UInt8])
        case numbers(CodedColours)

        var isHighDynamicRange: Bool {
            if case .numbers(let numbers) = self { numbers.isHighDynamicRange } else { false }
        }
    }

    private static func read(
        _ context: OpaquePointer,
        scale: Double,
        limits: PixelLimits,
        isPreviewOnly: Bool
    ) throws(ImagingError) -> (pixels: Pixels, colours: Colours?)? {
        var primary: OpaquePointer?
        try check(heif_context_get_primary_image_handle(context, &primary))
        guard let primary else { throw .undecodable(reason: "the file has no primary image") }
        defer { heif_image_handle_release(primary) }
        try requireSize(primary, limits)
        if let preview = preview(of: primary, scale: scale) {
            defer { heif_image_handle_release(preview) }
            let colours = colours(of: preview) ?? colours(of: primary)
            if let small = try? decode(preview, isDeep: colours?.isHighDynamicRange == true) {
                return (small, colours)
            }
        }
        guard !isPreviewOnly else { return nil }
        let colours = colours(of: primary)
        return (try decode(primary, isDeep: colours?.isHighDynamicRange == true), colours)
    }

    private static func requireSize(_ handle: OpaquePointer, _ limits: PixelLimits) throws(ImagingError) {
        let width = Int(heif_image_handle_get_width(handle))
        let height = Int(heif_image_handle_get_height(handle))
        guard width * height <= limits.decodedPixels else {
            throw .tooLarge(width: width, height: height, limit: limits.decodedPixels)
        }
    }

    private static func decode(_ handle: OpaquePointer, _ limits: PixelLimits) throws(ImagingError) -> Pixels {
        try requireSize(handle, limits)
        return try decode(handle)
    }

    // MARK: Auxiliary images

    private static func auxiliary(of primary: OpaquePointer, type requestedType: String) -> OpaquePointer? {
        let count = min(heif_image_handle_get_number_of_auxiliary_images(primary, 0), 16)
        guard count > 0 else { return nil }
        var ids = [heif_item_id](repeating: 0, count: Int(count))
        let found = heif_image_handle_get_list_of_auxiliary_image_IDs(primary, 0, &ids, count)
        for id in ids.prefix(Int(found)) {
            var handle: OpaquePointer?
            guard heif_image_handle_get_auxiliary_image_handle(primary, id, &handle).code == heif_error_Ok,
                let handle
            else { continue }
            var text: UnsafePointer<CChar>?
            if heif_image_handle_get_auxiliary_type(handle, &text).code == heif_error_Ok, let type = text {
                defer { heif_image_handle_free_auxiliary_types(handle, &text) }
                if String(cString: type) == requestedType { return handle }
            }
            heif_image_handle_release(handle)
        }
        return nil
    }

    /// The maximum size of the XMP packet of an auxiliary image, in bytes.
    private static let maxPacketBytes = 65_536

    private static func packet(of handle: OpaquePointer) -> [UInt8]? {
        let count = min(heif_image_handle_get_number_of_metadata_blocks(handle, "mime"), 16)
        guard count > 0 else { return nil }
        var ids = [heif_item_id](repeating: 0, count: Int(count))
        let found = heif_image_handle_get_list_of_metadata_block_IDs(handle, "mime", &ids, count)
        for id in ids.prefix(Int(found)) {
            let size = heif_image_handle_get_metadata_size(handle, id)
            guard (1...maxPacketBytes).contains(size) else { continue }
            var bytes = [UInt8](repeating: 0, count: size)
            if heif_image_handle_get_metadata(handle, id, &bytes).code == heif_error_Ok { return bytes }
        }
        return nil
    }

    // MARK: Pixels

    /// Returns the smallest embedded preview that has the aspect ratio of the image and at least the fraction `scale`
    /// of its size. A preview that is larger than the image is not decoded, because only the image's size was checked.
    /// A preview is not of this image if only one of them has transparency.
    private static func preview(of primary: OpaquePointer, scale: Double) -> OpaquePointer? {
        let width = Double(heif_image_handle_get_width(primary))
        let height = Double(heif_image_handle_get_height(primary))
        let count = min(heif_image_handle_get_number_of_thumbnails(primary), 16)
        guard scale < 1, count > 0, width > 0, height > 0 else { return nil }
        var ids = [heif_item_id](repeating: 0, count: Int(count))
        let found = heif_image_handle_get_list_of_thumbnail_IDs(primary, &ids, count)
        var best: OpaquePointer?
        var bestWidth = Double.infinity
        for id in ids.prefix(Int(found)) {
            var handle: OpaquePointer?
            guard heif_image_handle_get_thumbnail(primary, id, &handle).code == heif_error_Ok, let handle else {
                continue
            }
            let across = Double(heif_image_handle_get_width(handle))
            let down = Double(heif_image_handle_get_height(handle))
            let isSameShape = abs(across * height - down * width) <= max(width, height)
            let isLikeImage =
                isSameShape && across <= width && down <= height
                && heif_image_handle_has_alpha_channel(handle) == heif_image_handle_has_alpha_channel(primary)
            if isLikeImage, across >= width * scale, down >= height * scale, across < bestWidth {
                if let best { heif_image_handle_release(best) }
                best = handle
                bestWidth = across
            } else {
                heif_image_handle_release(handle)
            }
        }
        return best
    }

    /// - Parameter isDeep: true to keep more than eight bits per sample, because 8-bit steps are visible in high
    ///   dynamic range
    private static func decode(_ handle: OpaquePointer, isDeep: Bool = false) throws(ImagingError) -> Pixels {
        let hasAlpha = heif_image_handle_has_alpha_channel(handle) != 0
        let hasOneDepth = try hasAlpha ? hasOpacityOfSameDepth(handle) : true
        let isDeep = isDeep && hasOneDepth && heif_image_handle_get_luma_bits_per_pixel(handle) > 8
        guard let options = heif_decoding_options_alloc() else { throw .undecodable(reason: "out of memory") }
        defer { heif_decoding_options_free(options) }
        options.pointee.convert_hdr_to_8bit = isDeep ? 0 : 1
        let chroma =
            switch (isDeep, hasAlpha) {
            case (false, false): heif_chroma_interleaved_RGB
            case (false, true): heif_chroma_interleaved_RGBA
            case (true, false): heif_chroma_interleaved_RRGGBB_LE
            case (true, true): heif_chroma_interleaved_RRGGBBAA_LE
            }
        var image: OpaquePointer?
        try check(heif_decode_image(handle, &image, heif_colorspace_RGB, chroma, options))
        guard let image else { throw .undecodable(reason: "libheif returned no image") }
        defer { heif_image_release(image) }
        let width = Int(heif_image_get_primary_width(image))
        let height = Int(heif_image_get_primary_height(image))
        var stride: Int32 = 0
        let row = width * (hasAlpha ? 4 : 3) * (isDeep ? 2 : 1)
        guard let plane = heif_image_get_plane_readonly(image, heif_channel_interleaved, &stride), width > 0,
            height > 0,
            stride >= row
        else { throw .undecodable(reason: "no pixels") }
        var bytes = [UInt8](unsafeUninitializedCapacity: row * height) { target, count in
            for y in 0..<height {
                target.baseAddress?.advanced(by: y * row).initialize(
                    from: plane.advanced(by: y * Int(stride)),
                    count: row
                )
            }
            count = row * height
        }
        if isDeep {
            widen(&bytes, bits: Int(heif_image_get_bits_per_pixel_range(image, heif_channel_interleaved)))
        } else if hasAlpha, heif_image_handle_is_premultiplied_alpha(handle) != 0 {
            // libheif returns the samples as they are stored.
            divideByOpacity(&bytes)
        }
        return Pixels(width: width, height: height, hasAlpha: hasAlpha, isDeep: isDeep, bytes: bytes)
    }

    /// Decodes the image without converting it and compares the planes: libheif converts as many values of the opacity
    /// as the image has pixels, even beyond the end of a smaller plane. To samples of more than eight bits it converts
    /// only planes of the same depth, and not all its versions check that.
    ///
    /// - Returns: true if the opacity has as many bits per sample as the colours
    private static func hasOpacityOfSameDepth(_ handle: OpaquePointer) throws(ImagingError) -> Bool {
        var image: OpaquePointer?
        try check(heif_decode_image(handle, &image, heif_colorspace_undefined, heif_chroma_undefined, nil))
        guard let image else { throw .undecodable(reason: "libheif returned no image") }
        defer { heif_image_release(image) }
        guard heif_image_has_channel(image, heif_channel_Alpha) != 0 else { return true }
        let isRGB = heif_image_has_channel(image, heif_channel_Y) == 0
        let base = isRGB ? heif_channel_R : heif_channel_Y
        guard heif_image_get_width(image, heif_channel_Alpha) >= heif_image_get_width(image, base),
            heif_image_get_height(image, heif_channel_Alpha) >= heif_image_get_height(image, base)
        else { throw .undecodable(reason: "the opacity is smaller than the image") }
        return heif_image_get_bits_per_pixel_range(image, heif_channel_Alpha)
            == heif_image_get_bits_per_pixel_range(image, base)
    }

    /// Extends little-endian samples of fewer bits to 16 bits.
    private static func widen(_ bytes: inout [UInt8], bits: Int) {
        guard (9...15).contains(bits) else { return }
        bytes.withUnsafeMutableBytes { buffer in
            let samples = buffer.bindMemory(to: UInt16.self)
            for index in samples.indices {
                let sample = UInt16(littleEndian: samples[index])
                samples[index] = sample << (16 - bits) | sample >> (2 * bits - 16)
            }
        }
    }

    /// Divides premultiplied colours by their opacity.
    private static func divideByOpacity(_ pixels: inout [UInt8]) {
        pixels.withUnsafeMutableBufferPointer { pixels in
            for start in stride(from: 0, to: pixels.count, by: 4) {
                let opacity = Int(pixels[start + 3])
                guard opacity > 0, opacity < 255 else { continue }
                for channel in start..<start + 3 {
                    pixels[channel] = UInt8(min(255, (Int(pixels[channel]) * 255 + opacity / 2) / opacity))
                }
            }
        }
    }

    private static func colours(of handle: OpaquePointer) -> Colours? {
        let numbers = numbers(of: handle)
        // A profile can hardly describe high dynamic range.
        if let numbers, numbers.isHighDynamicRange { return .numbers(numbers) }
        let size = heif_image_handle_get_raw_color_profile_size(handle)
        if size > 0, size < 16 << 20 {
            var profile = [UInt8](repeating: 0, count: size)
            return heif_image_handle_get_raw_color_profile(handle, &profile).code == heif_error_Ok
                ? .profile(profile) : nil
        }
        return numbers.map { .numbers($0) }
    }

    private static func numbers(of handle: OpaquePointer) -> CodedColours? {
        var numbers: UnsafeMutablePointer<heif_color_profile_nclx>?
        guard heif_image_handle_get_nclx_color_profile(handle, &numbers).code == heif_error_Ok, let numbers else {
            return nil
        }
        defer { heif_nclx_color_profile_free(numbers) }
        return CodedColours(
            primaries: Int(numbers.pointee.color_primaries.rawValue),
            transfer: Int(numbers.pointee.transfer_characteristics.rawValue)
        )
    }

    private static func check(_ error: heif_error) throws(ImagingError) {
        guard error.code != heif_error_Ok else { return }
        let text = error.message.map { String(cString: $0) } ?? "libheif failed"
        throw .undecodable(reason: text)
    }
}
