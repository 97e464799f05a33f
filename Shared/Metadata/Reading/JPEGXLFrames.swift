import CJXL

/// The frames of a JPEG XL codestream. Its header alone says little: nearly every bit sequence is a valid size.
enum JPEGXLFrames {
    /// Returns true if the headers of all frames can be read and the frames end where the file does.
    ///
    /// No pixels are decoded.
    static func areReadable(_ bytes: [UInt8]) -> Bool {
        guard let decoder = JxlDecoderCreate(nil) else { return false }
        defer { JxlDecoderDestroy(decoder) }
        let events = Int32(JXL_DEC_BASIC_INFO.rawValue | JXL_DEC_FRAME.rawValue)
        guard JxlDecoderSubscribeEvents(decoder, events) == JXL_DEC_SUCCESS else { return false }
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
                case JXL_DEC_SUCCESS: return frames > 0
                default: return false
                }
            }
        }
    }
}
