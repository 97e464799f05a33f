import CJXL
import CMagickWand
import CPixels
import ImageFormats

/// Decodes JPEG XL with libjxl, because Debian's ImageMagick has no coder for it.
///
/// libjxl applies the file's orientation, so the EXIF orientation is not applied again.
enum JPEGXLDecoder {
    /// Returns the first frame. Images with more than eight bits per sample are decoded as 16-bit.
    static func decode(_ bytes: [UInt8], limits: PixelLimits) throws(ImagingError) -> Wand {
        guard let decoder = JxlDecoderCreate(nil) else { throw .undecodable(reason: "out of memory") }
        defer { JxlDecoderDestroy(decoder) }
        let events = JXL_DEC_BASIC_INFO.rawValue | JXL_DEC_COLOR_ENCODING.rawValue | JXL_DEC_FULL_IMAGE.rawValue
        JxlDecoderSubscribeEvents(decoder, Int32(events))
        var result: Result<Frame, ImagingError> = .failure(.truncated)
        bytes.withUnsafeBufferPointer { buffer in
            JxlDecoderSetInput(decoder, buffer.baseAddress, buffer.count)
            JxlDecoderCloseInput(decoder)
            do throws(ImagingError) { result = .success(try frame(decoder, limits)) } catch { result = .failure(error) }
        }
        return try wand(of: try result.get())
    }

    private struct Frame {
        var info = JxlBasicInfo()
        var format = JxlPixelFormat()
        var profile: [UInt8]?
        /// The colours in high dynamic range; nil for standard range.
        var colours: CodedColours?
        var pixels: [UInt8] = []

        var isDeep: Bool { format.data_type == JXL_TYPE_UINT16 }
    }

    private static func frame(_ decoder: OpaquePointer, _ limits: PixelLimits) throws(ImagingError) -> Frame {
        var frame = Frame()
        while true {
            switch JxlDecoderProcessInput(decoder) {
            case JXL_DEC_BASIC_INFO:
                guard JxlDecoderGetBasicInfo(decoder, &frame.info) == JXL_DEC_SUCCESS else { throw damaged }
                let (width, height) = (Int(frame.info.xsize), Int(frame.info.ysize))
                guard width * height <= limits.decodedPixels else {
                    throw .tooLarge(width: width, height: height, limit: limits.decodedPixels)
                }
                try requireNoBlack(decoder, frame.info)
                frame.format.num_channels = frame.info.alpha_bits > 0 ? 4 : 3
                frame.format.data_type = frame.info.bits_per_sample > 8 ? JXL_TYPE_UINT16 : JXL_TYPE_UINT8
                frame.format.endianness = JXL_NATIVE_ENDIAN
            case JXL_DEC_COLOR_ENCODING:
                preferSRGB(decoder, frame.info)
                frame.colours = colours(decoder)
                if frame.colours == nil { frame.profile = profile(decoder, frame) }
            case JXL_DEC_NEED_IMAGE_OUT_BUFFER:
                var size = 0
                guard JxlDecoderImageOutBufferSize(decoder, &frame.format, &size) == JXL_DEC_SUCCESS else {
                    throw damaged
                }
                return try decodePixels(frame, size, decoder)
            case JXL_DEC_NEED_MORE_INPUT: throw .truncated
            default: throw damaged
            }
        }
    }

    private static func decodePixels(
        _ frame: Frame,
        _ size: Int,
        _ decoder: OpaquePointer
    ) throws(ImagingError) -> Frame {
        var frame = frame
        var status = JXL_DEC_ERROR
        frame.pixels = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            guard JxlDecoderSetImageOutBuffer(decoder, &frame.format, buffer.baseAddress, size) == JXL_DEC_SUCCESS
            else {
                return
            }
            status = JxlDecoderProcessInput(decoder)
            if status == JXL_DEC_FULL_IMAGE { count = size }
        }
        switch status {
        case JXL_DEC_FULL_IMAGE: return frame
        case JXL_DEC_NEED_MORE_INPUT: throw .truncated
        default: throw damaged
        }
    }

    private static let damaged = ImagingError.undecodable(reason: "libjxl reports a damaged file")

    /// Refuses CMYK, whose black is an extra channel.
    private static func requireNoBlack(_ decoder: OpaquePointer, _ info: JxlBasicInfo) throws(ImagingError) {
        for index in 0..<Int(info.num_extra_channels) {
            var channel = JxlExtraChannelInfo()
            guard JxlDecoderGetExtraChannelInfo(decoder, index, &channel) == JXL_DEC_SUCCESS else { throw damaged }
            guard channel.type != JXL_CHANNEL_BLACK else {
                throw .unsupportedFormat(found: "a JPEG XL file in CMYK", supported: ImageFormat.readableNames)
            }
        }
    }

    /// Requests sRGB if libjxl chooses the encoding: for grey, and for colours with a profile, it would return linear
    /// values, for which eight bits are too coarse in the shadows. It does not change a colour space that the file
    /// specifies by numbers.
    private static func preferSRGB(_ decoder: OpaquePointer, _ info: JxlBasicInfo) {
        guard info.uses_original_profile == JXL_FALSE else { return }
        let isGrey = info.num_color_channels == 1
        var encoding = JxlColorEncoding()
        if !isGrey,
            JxlDecoderGetColorAsEncodedProfile(decoder, nil, JXL_COLOR_PROFILE_TARGET_ORIGINAL, &encoding)
                == JXL_DEC_SUCCESS
        {
            return
        }
        encoding.color_space = isGrey ? JXL_COLOR_SPACE_GRAY : JXL_COLOR_SPACE_RGB
        encoding.white_point = JXL_WHITE_POINT_D65
        encoding.primaries = JXL_PRIMARIES_SRGB
        encoding.transfer_function = JXL_TRANSFER_FUNCTION_SRGB
        encoding.rendering_intent = JXL_RENDERING_INTENT_RELATIVE
        JxlDecoderSetPreferredColorProfile(decoder, &encoding)
    }

    /// Returns the colours if they are in high dynamic range, which a profile can hardly describe.
    private static func colours(_ decoder: OpaquePointer) -> CodedColours? {
        var encoding = JxlColorEncoding()
        guard
            JxlDecoderGetColorAsEncodedProfile(decoder, nil, JXL_COLOR_PROFILE_TARGET_DATA, &encoding)
                == JXL_DEC_SUCCESS
        else { return nil }
        // The numbers are those of ITU-T H.273, except that P3 does not specify the white point.
        let primaries = encoding.primaries == JXL_PRIMARIES_P3 ? 12 : Int(encoding.primaries.rawValue)
        let colours = CodedColours(primaries: primaries, transfer: Int(encoding.transfer_function.rawValue))
        return colours?.isHighDynamicRange == true ? colours : nil
    }

    /// Returns the colour profile of the pixels; nil if they have the tone curve of sRGB and its primaries or are grey.
    private static func profile(_ decoder: OpaquePointer, _ frame: Frame) -> [UInt8]? {
        let isGrey = frame.info.num_color_channels == 1
        var encoding = JxlColorEncoding()
        if JxlDecoderGetColorAsEncodedProfile(decoder, nil, JXL_COLOR_PROFILE_TARGET_DATA, &encoding)
            == JXL_DEC_SUCCESS,
            encoding.transfer_function == JXL_TRANSFER_FUNCTION_SRGB,
            isGrey || encoding.primaries == JXL_PRIMARIES_SRGB,
            encoding.white_point == JXL_WHITE_POINT_D65
        {
            return nil
        }
        var size = 0
        guard
            JxlDecoderGetICCProfileSize(decoder, nil, JXL_COLOR_PROFILE_TARGET_DATA, &size) == JXL_DEC_SUCCESS,
            size > 0, size < 16 << 20
        else { return nil }
        var profile = [UInt8](repeating: 0, count: size)
        let status = JxlDecoderGetColorAsICCProfile(decoder, nil, JXL_COLOR_PROFILE_TARGET_DATA, &profile, size)
        return status == JXL_DEC_SUCCESS ? profile : nil
    }

    private static func wand(of frame: Frame) throws(ImagingError) -> Wand {
        let wand = try Wand()
        try wand.constitute(
            frame.pixels,
            width: Int(frame.info.xsize),
            height: Int(frame.info.ysize),
            hasAlpha: frame.format.num_channels == 4,
            isDeep: frame.isDeep
        )
        if frame.info.alpha_premultiplied != 0, frame.info.alpha_bits > 0 {
            try wand.withPixels { safelight_divide_by_opacity($0, $1) }
        }
        wand.setProfile(frame.profile)
        if let colours = frame.colours { try ColourProfile.apply(colours, to: wand) }
        return wand
    }

    /// The version of libjxl, for example "0.7.0".
    static var version: String {
        let number = JxlDecoderVersion()
        return "\(number / 1_000_000).\(number / 1000 % 1000).\(number % 1000)"
    }
}
