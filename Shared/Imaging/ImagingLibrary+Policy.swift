import CMagickWand

extension ImagingLibrary {
    /// What is in force in this process, found out by asking and by trying.
    public struct PolicyInForce: Sendable {
        /// The largest side in pixels, and the most pixels, that ImageMagick would open.
        public var largestSide: Int
        /// Formats that must be closed and were opened all the same; none where the policy holds.
        public var open: [String]
    }

    /// Formats that read files, networks or programs; each with a text that its reader would begin with.
    private static let harmful = [
        ("SVG", "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1\" height=\"1\"/>"),
        ("MVG", "viewbox 0 0 1 1 rectangle 0,0 1,1"), ("MSL", "<image><read filename=\"xc:red\"/></image>"),
        ("TEXT", "text"), ("PS", "%!PS"), ("PNM", "P1 1 1 1"),
    ]

    public static var policyInForce: PolicyInForce {
        start()
        let open = harmful.filter { format, text in
            let wand = NewMagickWand()
            defer { DestroyMagickWand(wand) }
            MagickSetFormat(wand, format)
            let bytes = Array(text.utf8)
            return MagickReadImageBlob(wand, bytes, bytes.count) == MagickTrue && MagickGetImageWidth(wand) > 0
        }
        return PolicyInForce(
            largestSide: Int(clamping: MagickGetResourceLimit(WidthResource)),
            open: open.map(\.0)
        )
    }
}
