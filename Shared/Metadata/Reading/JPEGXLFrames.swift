import CJXL

/// The frames of a JPEG XL codestream. Its header alone does not show that a file is valid, because nearly every bit
/// sequence is a valid size.
enum JPEGXLFrames {
    /// Returns true if the headers of all frames can be read.
    ///
    /// No pixels are decoded, unless bytes follow the last frame of a bare codestream: a few random byte sequences also
    /// contain a frame, but its pixels cannot be decoded.
    static func areReadable(_ bytes: [UInt8]) -> Bool {
        guard let rest = rest(behind: JXL_DEC_FRAME, of: bytes) else { return false }
        let isBare = bytes.starts(with: [0xFF, 0x0A])
        guard isBare, rest > 0 else { return true }
        return self.rest(behind: JXL_DEC_FULL_IMAGE, of: bytes) != nil
    }

    /// Returns the number of bytes behind the last frame; nil if there is no frame, or one that cannot be read.
    ///
    /// - Parameter event: `JXL_DEC_FRAME` reads the headers of frames, `JXL_DEC_FULL_IMAGE` decodes all pixels.
    private static func rest(behind event: JxlDecoderStatus, of bytes: [UInt8]) -> Int? {
        guard let decoder = JxlDecoderCreate(nil) else { return nil }
        defer { JxlDecoderDestroy(decoder) }
        let events = Int32(JXL_DEC_BASIC_INFO.rawValue | event.rawValue)
        guard JxlDecoderSubscribeEvents(decoder, events) == JXL_DEC_SUCCESS else { return nil }
        return bytes.withUnsafeBufferPointer { buffer in
            JxlDecoderSetInput(decoder, buffer.baseAddress, buffer.count)
            JxlDecoderCloseInput(decoder)
            var frames = 0
            while true {
                switch JxlDecoderProcessInput(decoder) {
                case JXL_DEC_BASIC_INFO: continue
                case JXL_DEC_FRAME:
                    frames += 1
                    JxlDecoderSkipCurrentFrame(decoder)
                case JXL_DEC_NEED_IMAGE_OUT_BUFFER:
                    var format = JxlPixelFormat(
                        num_channels: 3,
                        data_type: JXL_TYPE_UINT8,
                        endianness: JXL_NATIVE_ENDIAN,
                        align: 0
                    )
                    // The pixels are decoded row by row and not kept.
                    let status = JxlDecoderSetImageOutCallback(decoder, &format, { _, _, _, _, _ in }, nil)
                    guard status == JXL_DEC_SUCCESS else { return nil }
                case JXL_DEC_FULL_IMAGE: frames += 1
                case JXL_DEC_SUCCESS: return frames > 0 ? JxlDecoderReleaseInput(decoder) : nil
                default: return nil
                }
            }
        }
    }
}
