import CMagickWand

/// The samples of an image that a decoder of this module computes, before they become a ``Wand``.
struct DecodedSamples {
    enum Channels: String {
        case rgb = "RGB"
        case rgba = "RGBA"
        case cmyk = "CMYK"

        var count: Int { self == .rgb ? 3 : 4 }
    }

    let width: Int
    let height: Int
    let channels: Channels
    /// Row by row from the top, without gaps.
    var samples: Values
    /// The colour profile of the samples; nil for sRGB.
    var profile: [UInt8]?

    enum Values {
        case bytes([UInt8])
        case words([UInt16])
    }

    /// Throws an error if the image is larger than the limit on decoded pixels.
    static func check(width: Int, height: Int, _ limits: PixelLimits) throws(ImagingError) {
        guard width <= limits.side, height <= limits.side, width * height <= limits.decodedPixels else {
            throw .tooLarge(width: width, height: height, limit: limits.decodedPixels)
        }
    }

    func makeWand() throws(ImagingError) -> Wand {
        let wand = try Wand()
        let bits: Int
        let status: MagickBooleanType
        switch samples {
        case .bytes(let bytes):
            guard bytes.count == width * height * channels.count else { throw .truncated }
            bits = 8
            status = MagickConstituteImage(wand.pointer, width, height, channels.rawValue, CharPixel, bytes)
        case .words(let words):
            guard words.count == width * height * channels.count else { throw .truncated }
            bits = 16
            status = MagickConstituteImage(wand.pointer, width, height, channels.rawValue, ShortPixel, words)
        }
        try wand.attempt("decoding", status)
        wand.setDepth(bits)
        wand.setProfile(profile)
        return wand
    }
}
