import CMagickWand
public import ImageFormats
import PhotoModel

/// Draws a contact sheet of many images.
public enum ContactSheet {
    /// One cell of the sheet.
    public struct Cell: Sendable, Hashable {
        /// The image file. A placeholder is drawn if it is nil or cannot be decoded.
        public var bytes: [UInt8]?
        /// One line of text below the image, cut off at its width.
        public var label: String
        /// The text of a placeholder: the reason why there is no image.
        public var problem: String

        public init(bytes: [UInt8]?, label: String, problem: String = "no image") {
            self.bytes = bytes
            self.label = label
            self.problem = problem
        }
    }

    /// The arrangement of the images.
    public enum Layout: String, Sendable, Hashable, CaseIterable {
        /// In squares of equal size.
        case grid
        /// In rows of the full width, each as high as its images require, so that no area is wasted.
        case justified
    }

    /// The maximum number of cells.
    public static let maximumCells = 2000
    /// The maximum ratio of width to height of an image that a justified row shows without bars.
    public static let maxAspectRatio = 4.0

    /// Draws the sheet row by row from the upper left.
    ///
    /// - Parameters:
    ///   - cells: 1...2,000 cells
    ///   - columns: 1...100; the sheet is narrower if there are fewer cells
    ///   - cellSide: 16...2,048 pixels; images are fitted into this square and never enlarged
    ///   - layout: justified rows are as wide as `columns` squares, and at most `cellSide` high
    ///   - format: a format that can be encoded
    ///   - quality: 1...100 for JPEG, WebP and AVIF
    /// - Returns: the encoded sheet
    /// - Throws: `ImagingError`; an image that cannot be decoded is not an error
    public static func render(
        _ cells: [Cell],
        columns: Int,
        cellSide: Int,
        layout: Layout = .grid,
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
        var canvas = Canvas(cells, columns: columns, side: cellSide, layout)
        guard canvas.width <= format.maxSide, canvas.height <= format.maxSide,
            canvas.width * canvas.height <= RenditionOptions.maxArea
        else {
            throw .tooLarge(width: canvas.width, height: canvas.height, limit: RenditionOptions.maxArea)
        }
        canvas.clear()
        for (index, cell) in cells.enumerated() {
            let frame = canvas.frames[index]
            if let bytes = cell.bytes, let image = try? fitted(bytes, frame, fills: layout == .justified) {
                canvas.draw(image, in: index)
            } else {
                try canvas.drawPlaceholder(cell.problem, in: index)
            }
            try canvas.drawLabel(cell.label, in: index)
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

    /// Decodes an image for a frame. With `fills`, an image that misses the size of the frame by a rounding error is
    /// scaled to fill it.
    private static func fitted(_ bytes: [UInt8], _ frame: Frame, fills: Bool) throws(ImagingError) -> Pixels {
        let (width, height) = (frame.width, frame.height)
        let limits = PixelLimits()
        let header = try ImageProbe.header(of: bytes, limits: limits)
        let isSmall = header.pixelWidth <= width && header.pixelHeight <= height
        let geometry = try RenditionGeometry(
            RenditionOptions(target: isSmall ? .maximum : .size(width: width, height: height), resizeMode: .exact),
            for: header
        )
        let wand = try Decoder.decode(bytes, header, eighths: geometry.eighths, scale: geometry.scale, limits: limits)
        let missing = (width - geometry.output.width, height - geometry.output.height)
        let isExact = fills && missing.0 <= Int(maxAspectRatio) && missing.1 <= 1
        try wand.resize(isExact ? width : geometry.output.width, isExact ? height : geometry.output.height)
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

    /// The rectangle of a cell's image, in pixels.
    private struct Frame {
        let x: Int
        let y: Int
        let width: Int
        let height: Int
    }

    /// The sheet as eight-bit red, green, blue.
    private struct Canvas {
        let width: Int
        let height: Int
        private(set) var frames: [Frame] = []
        private(set) var pixels: [UInt8] = []

        private static let gap = 8
        /// Pixels per em of the labels.
        private let fontSize: Double
        private let labelHeight: Int

        init(_ cells: [Cell], columns: Int, side: Int, _ layout: Layout) {
            fontSize = side >= 320 ? 20 : 12
            labelHeight = side >= 320 ? 30 : 18
            width = Self.gap + min(columns, cells.count) * (side + Self.gap)
            switch layout {
            case .grid: frames = Self.grid(cells.count, columns: min(columns, cells.count), side, labelHeight)
            case .justified: frames = Self.justified(cells, width: width - 2 * Self.gap, side, labelHeight)
            }
            height = (frames.last.map { $0.y + $0.height } ?? 0) + labelHeight + Self.gap
        }

        private static func grid(_ count: Int, columns: Int, _ side: Int, _ labelHeight: Int) -> [Frame] {
            (0..<count).map { index in
                Frame(
                    x: gap + index % columns * (side + gap),
                    y: gap + index / columns * (side + labelHeight + gap),
                    width: side,
                    height: side
                )
            }
        }

        /// The images of a row of a justified sheet.
        private struct Row {
            /// The widths of the images: a ratio to the height of the row, and the fixed width of an image that is
            /// smaller than the row.
            private(set) var widths: [(ratio: Double, fixed: Double)] = []
            private var ratios = 0.0
            private var fixedWidth = 0.0

            mutating func append(_ image: (ratio: Double, fixed: Double)) {
                fixedWidth += image.fixed + (widths.isEmpty ? 0 : Double(gap))
                ratios += image.ratio
                widths.append(image)
            }

            /// Returns the height at which the row is as wide as the sheet; infinite if it is narrower at every height.
            func height(for width: Int) -> Double {
                let free = Double(width) - fixedWidth
                return free < 0 ? 0 : ratios == 0 ? .infinity : free / ratios
            }
        }

        /// Fills rows one after another. A row ends with the first image with which it is at most `side` high, or
        /// before an image with which it would be less than half as high.
        private static func justified(_ cells: [Cell], width: Int, _ side: Int, _ labelHeight: Int) -> [Frame] {
            var frames: [Frame] = []
            var row = Row()
            var y = gap
            func finish() {
                let height = min(Double(side), row.height(for: width))
                var x = Double(gap)
                for (ratio, fixed) in row.widths {
                    let (left, right) = (Int(x.rounded()), Int((x + ratio * height + fixed).rounded()))
                    frames.append(Frame(x: left, y: y, width: max(1, right - left), height: max(1, Int(height))))
                    x += ratio * height + fixed + Double(gap)
                }
                y += max(1, Int(height)) + labelHeight + gap
                row = Row()
            }
            for cell in cells {
                var longer = row
                longer.append(size(of: cell, side, width))
                if longer.height(for: width) < Double(side) / 2, !row.widths.isEmpty {
                    finish()
                    longer = Row()
                    longer.append(size(of: cell, side, width))
                }
                row = longer
                if row.height(for: width) <= Double(side) { finish() }
            }
            if !row.widths.isEmpty { finish() }
            return frames
        }

        private static func size(of cell: Cell, _ side: Int, _ width: Int) -> (ratio: Double, fixed: Double) {
            let header = cell.bytes.flatMap { try? ImageProbe.header(of: $0, limits: PixelLimits()) }
            guard let header else { return (1, 0) }
            let ratio = Double(header.pixelWidth) / Double(header.pixelHeight)
            // A small image keeps its width. The frame of a wide panorama is as high as the row, although its image is
            // not, and an image that is wider than the sheet is scaled down like a large one.
            if header.pixelHeight < side, ratio < maxAspectRatio, header.pixelWidth <= width {
                return (0, Double(max(header.pixelWidth, side / 2)))
            }
            return (min(max(ratio, 1 / maxAspectRatio), maxAspectRatio), 0)
        }

        mutating func clear() { pixels = [UInt8](repeating: 0x30, count: width * height * 3) }

        mutating func draw(_ image: Pixels, in index: Int) {
            let frame = frames[index]
            let x = frame.x + (frame.width - image.width) / 2
            let y = frame.y + (frame.height - image.height) / 2
            for row in 0..<image.height {
                let target = ((y + row) * width + x) * 3
                let source = row * image.width * 3
                pixels.replaceSubrange(
                    target..<target + image.width * 3,
                    with: image.rgb[source..<source + image.width * 3]
                )
            }
        }

        /// Draws a frame with the reason why there is no image.
        mutating func drawPlaceholder(_ problem: String, in index: Int) throws(ImagingError) {
            let frame = frames[index]
            for step in 0..<frame.width {
                for y in [0, frame.height - 1] { set(frame.x + step, frame.y + y, 0x70) }
            }
            for step in 0..<frame.height {
                for x in [0, frame.width - 1] { set(frame.x + x, frame.y + step, 0x70) }
            }
            guard let line = try fitted(problem, in: frame.width) else { return }
            draw(
                line,
                x: frame.x + (frame.width - line.width) / 2,
                y: frame.y + (frame.height - line.height) / 2,
                grey: 0x90
            )
        }

        mutating func drawLabel(_ label: String, in index: Int) throws(ImagingError) {
            let frame = frames[index]
            guard let line = try fitted(label, in: frame.width) else { return }
            // Below the image, on a baseline that leaves space for descending letters.
            let y = frame.y + frame.height + labelHeight - Int(fontSize) * 2 / 5 - line.top
            draw(line, x: frame.x, y: y, grey: 0xE0)
        }

        /// Returns a line that is cut off so that it is not wider than a cell.
        private func fitted(_ text: String, in side: Int) throws(ImagingError) -> TextRenderer.Coverage? {
            guard let line = try TextRenderer.draw(text, size: fontSize) else { return nil }
            guard line.width > side else { return line }
            var count = text.count * side / line.width
            while count > 0 {
                let start = try TextRenderer.draw(text.prefix(count) + "…", size: fontSize)
                if let start, start.width <= side { return start }
                count -= 1
            }
            return nil
        }

        /// Draws the part of a line that is inside the sheet, with the upper left pixel of the line at a position.
        private mutating func draw(_ line: TextRenderer.Coverage, x: Int, y: Int, grey: Int) {
            for row in 0..<line.height where (0..<height).contains(y + row) {
                for column in 0..<line.width where (0..<width).contains(x + column) {
                    let coverage = Int(line.pixels[row * line.width + column])
                    let background = Int(pixels[((y + row) * width + x + column) * 3])
                    set(x + column, y + row, UInt8((grey * coverage + background * (255 - coverage)) / 255))
                }
            }
        }

        private mutating func set(_ x: Int, _ y: Int, _ grey: UInt8) {
            let offset = (y * width + x) * 3
            for channel in 0..<3 { pixels[offset + channel] = grey }
        }
    }
}
