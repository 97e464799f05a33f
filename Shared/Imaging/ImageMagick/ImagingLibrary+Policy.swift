import CMagickWand

extension ImagingLibrary {
    /// The security policy in force in this process, determined by queries and by trial.
    public struct EffectivePolicy: Sendable {
        /// The largest side in pixels that ImageMagick would decode.
        public var largestSide: Int
        /// The formats that must be disabled but could be decoded; empty if the policy works.
        public var open: [String]
    }

    /// Formats that read files, networks or programs, each with text that its reader accepts.
    private static let harmful = [
        ("SVG", "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1\" height=\"1\"/>"),
        ("MVG", "viewbox 0 0 1 1 rectangle 0,0 1,1"), ("MSL", "<image><read filename=\"xc:red\"/></image>"),
        ("TEXT", "text"), ("PS", "%!PS"), ("PNM", "P1 1 1 1"),
    ]

    /// The policy in force. Starts ImageMagick if necessary.
    public static var policyInForce: EffectivePolicy {
        start()
        let open = harmful.filter { format, text in
            let wand = NewMagickWand()
            defer { DestroyMagickWand(wand) }
            MagickSetFormat(wand, format)
            let bytes = Array(text.utf8)
            return MagickReadImageBlob(wand, bytes, bytes.count) == MagickTrue && MagickGetImageWidth(wand) > 0
        }
        return EffectivePolicy(
            largestSide: Int(clamping: MagickGetResourceLimit(WidthResource)),
            open: open.map(\.0)
        )
    }
}
