import CMagickWand
public import ImageFormats

/// Draws a contact sheet of many images.
public enum ContactSheet {
    /// One cell of the sheet.
    public struct Cell: Sendable, Hashable {
        /// The image file. A placeholder is drawn if it is `nil` or cannot be decoded.
        public var bytes: [UInt8]?
        /// One line of text below the image, truncated to its width.
        public var label: String

        public init(bytes: [UInt8]?, label: String) {
            self.bytes = bytes
            self.label = label
        }
    }

    /// The maximum number of cells.
    public static let maximumCells = 2000

    /// Draws the sheet row by row from the upper left.
    ///
    /// - Parameters:
    ///   - cells: 1...2,000 cells
    ///   - columns: 1...100; the sheet is narrower if there are fewer cells
    ///   - cellSide: 16...2,048 pixels; images are fitted into this square and never enlarged
    ///   - format: a format that can be encoded
    ///   - quality: 1...100 for JPEG and WebP
    /// - Returns: the encoded sheet
    /// - Throws: `ImagingError`; a broken image is not an error
    public static func render(
        _ cells: [Cell],
        columns: Int,
        cellSide: Int,
        format: ImageFormat = .jpeg,
        quality: Int = 85
    ) throws(ImagingError) -> RenderedImage {
        try RenditionOptions(format: format, quality: quality).validate()
        guard (1...maximumCells).contains(cells.count) else {
            throw .invalidOptions("a sheet of \(cells.count) cells; give 1...\(maximumCells)")
        }
        guard (1...100).contains(columns), (16...2048).contains(cellSide) else {
            throw .invalidOptions("columns must be 1...100 and cellSide 16...2048 pixels")
        }
        var canvas = Canvas(count: cells.count, columns: min(columns, cells.count), side: cellSide)
        guard canvas.width <= format.longestSide, canvas.height <= format.longestSide,
            canvas.width * canvas.height <= RenditionOptions.largestArea
        else {
            throw .tooLarge(width: canvas.width, height: canvas.height, limit: RenditionOptions.largestArea)
        }
        canvas.clear()
        for (index, cell) in cells.enumerated() {
            if let bytes = cell.bytes, let picture = try? fitted(bytes, cellSide) {
                canvas.draw(picture, in: index)
            } else {
                canvas.drawPlaceholder(in: index)
            }
            canvas.drawLabel(cell.label, in: index)
        }
        let wand = try Wand()
        try wand.constitute(canvas.pixels, width: canvas.width, height: canvas.height)
        let bytes = try Encoder.encode(wand, format: format, quality: quality)
        return RenderedImage(
            bytes: bytes,
            format: format,
            pixelWidth: canvas.width,
            pixelHeight: canvas.height,
            isUpscaled: false
        )
    }

    struct Pixels {
        let width: Int
        let height: Int
        let rgb: [UInt8]
    }

    private static func fitted(_ bytes: [UInt8], _ side: Int) throws(ImagingError) -> Pixels {
        let limits = PixelLimits()
        let header = try ImageProbe.header(of: bytes, limits: limits)
        let isSmall = header.pixelWidth <= side && header.pixelHeight <= side
        let plan = try RenditionGeometry(
            RenditionOptions(target: isSmall ? .maximum : .size(width: side, height: side), resizeMode: .exact),
            for: header
        )
        let wand = try Decoder.decode(bytes, header, eighths: plan.eighths, scale: plan.scale, limits: limits)
        try wand.resize(plan.output.width, plan.output.height)
        try ColourProfile.convertToSRGB(wand)
        return try pixels(of: wand)
    }

    /// Returns eight-bit red, green, blue. Transparent areas show the grey of the sheet.
    static func pixels(of wand: borrowing Wand) throws(ImagingError) -> Pixels {
        if wand.hasAlpha {
            try Decoder.setBackground(wand, "#303030")
            try wand.attempt("flattening", MagickSetImageAlphaChannel(wand.pointer, RemoveAlphaChannel))
        }
        let (width, height) = (wand.width, wand.height)
        var rgb = [UInt8](repeating: 0, count: width * height * 3)
        let status = MagickExportImagePixels(wand.pointer, 0, 0, width, height, "RGB", CharPixel, &rgb)
        try wand.attempt("reading pixels", status)
        return Pixels(width: width, height: height, rgb: rgb)
    }

    /// The sheet as eight-bit red, green, blue.
    private struct Canvas {
        let columns: Int
        let side: Int
        let width: Int
        let height: Int
        private(set) var pixels: [UInt8] = []

        private static let gap = 8
        private var zoom: Int { side >= 320 ? 2 : 1 }
        private var labelHeight: Int { (BitmapFont.height + 4) * zoom }

        init(count: Int, columns: Int, side: Int) {
            self.columns = columns
            self.side = side
            let labels = (BitmapFont.height + 4) * (side >= 320 ? 2 : 1)
            width = Self.gap + columns * (side + Self.gap)
            height = Self.gap + (count + columns - 1) / columns * (side + labels + Self.gap)
        }

        mutating func clear() { pixels = [UInt8](repeating: 0x30, count: width * height * 3) }

        private func corner(_ index: Int) -> (x: Int, y: Int) {
            (
                Self.gap + index % columns * (side + Self.gap),
                Self.gap + index / columns * (side + labelHeight + Self.gap)
            )
        }

        mutating func draw(_ picture: Pixels, in index: Int) {
            let (left, top) = corner(index)
            let x = left + (side - picture.width) / 2
            let y = top + (side - picture.height) / 2
            for row in 0..<picture.height {
                let target = ((y + row) * width + x) * 3
                let source = row * picture.width * 3
                pixels.replaceSubrange(
                    target..<target + picture.width * 3,
                    with: picture.rgb[source..<source + picture.width * 3]
                )
            }
        }

        /// Draws a frame with both diagonals.
        mutating func drawPlaceholder(in index: Int) {
            let (left, top) = corner(index)
            for step in 0..<side {
                for (x, y) in [
                    (step, 0), (step, side - 1), (0, step), (side - 1, step), (step, step), (step, side - 1 - step),
                ] {
                    set(left + x, top + y, 0x70)
                }
            }
        }

        mutating func drawLabel(_ label: String, in index: Int) {
            let (left, top) = corner(index)
            let most = side / (BitmapFont.advance * zoom)
            let text = label.count > most ? String(label.prefix(max(0, most - 2))) + ".." : label
            for (x, y) in BitmapFont.points(text) where (x + 1) * zoom <= side {
                for across in 0..<zoom {
                    for down in 0..<zoom {
                        set(left + x * zoom + across, top + side + 2 * zoom + y * zoom + down, 0xE0)
                    }
                }
            }
        }

        private mutating func set(_ x: Int, _ y: Int, _ grey: UInt8) {
            let at = (y * width + x) * 3
            for channel in 0..<3 { pixels[at + channel] = grey }
        }
    }
}
