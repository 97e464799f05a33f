import CPixels
import Foundation
import ImageFormats
import PhotoModel

/// Renders JPEG to JPEG in bands of rows, without a 16-bit raster.
///
/// It is used for the most common lists, which only move pixels, scale down and change colours. Decoding, the colour
/// pass and encoding run in parallel, and a rotation or a preview needs memory only for its own pixels, in eight bits.
enum JPEGBandTranscoder {
    struct Job {
        let header: ImageHeader
        let geometry: AdjustmentGeometry
        /// The operations of the stages colour and finish.
        let work: [Adjustment]
        /// The fraction that is decoded, in eighths.
        let eighths: Int
        let output: (width: Int, height: Int)
        let isSmaller: Bool
        let quality: Int
        let engine: RenderEngine
    }

    /// Changes rows of three bytes per pixel. The arguments are the band, its first pixel, and the bytes per row.
    private typealias Change = @Sendable (BandPipeline.Rows, UnsafeMutablePointer<UInt8>, Int) -> Void

    /// Returns true if every operation can be applied to bands: pixel by pixel, or by calls to ImageMagick with a
    /// margin.
    static func supports(_ operations: [Adjustment], _ geometry: AdjustmentGeometry, _ engine: RenderEngine) -> Bool {
        let stages: Set<AdjustmentKind.Stage> =
            engine == .imagemagick ? [.geometry, .cleaning, .colour, .detail, .finish] : [.geometry, .colour, .finish]
        return !geometry.isResampled && operations.allSatisfy { $0.isNeutral || stages.contains($0.kind.stage) }
    }

    /// Renders the image; nil if its colours are not supported here, or the file does not match its header.
    ///
    /// - Throws: `tooLarge` above the limits on decoded images, although only a part is in memory at a time
    static func render(_ bytes: [UInt8], _ job: Job, limits: PixelLimits) throws(ImagingError) -> RenderedImage? {
        let width = DecodeScale.side(job.header.storedWidth, job.eighths)
        let height = DecodeScale.side(job.header.storedHeight, job.eighths)
        guard width * height <= limits.decodedPixels else {
            throw .tooLarge(
                width: job.header.pixelWidth,
                height: job.header.pixelHeight,
                limit: limits.decodedPixels
            )
        }
        return try render(bytes, job, width: width, height: height, seconds: limits.seconds)
    }

    private static func render(
        _ bytes: [UInt8],
        _ job: Job,
        width: Int,
        height: Int,
        seconds: Double
    ) throws(ImagingError) -> RenderedImage? {
        try bytes.withUnsafeBufferPointer { (bytes) throws(ImagingError) -> RenderedImage? in
            guard let reader = JPEGReader(bytes), reader.isPlain else { return nil }
            var profile = reader.profile
            if !job.work.isEmpty, !profile.isEmpty {
                if ColourProfile.isSRGB(profile) {
                    profile = []
                } else if !ColourProfile.isDisplayP3(profile) {
                    return nil
                }
            }
            guard let decoded = reader.begin(eighths: job.eighths), (width...width + 1).contains(decoded.width),
                (height...height + 1).contains(decoded.height)
            else { return nil }
            let mapping = OrientationMapping(job, width: width, height: height)
            let writer = try JPEGWriter(
                width: job.output.width,
                height: job.output.height,
                quality: job.quality,
                profile: profile
            )
            var bands: MagickBands?
            if job.engine == .imagemagick {
                bands = try MagickBands(job.work, width: job.output.width, height: job.output.height, seconds: seconds)
                guard bands != nil else { return nil }
            }
            let colour = try AdjustmentColour(bands == nil ? job.work : [])
            // The time of the operations is attributed to the request. A crash from here on is attributed to the photo.
            if !job.work.isEmpty { ImagingLibrary.enter(.working) }
            ImagingLibrary.enter(.reading)
            let (across, down) = job.output
            func write(_ change: @escaping Change) throws(ImagingError) {
                let rowBytes = 3 * decoded.width
                if !job.isSmaller, mapping.isStraight {
                    let pipe = pipeline(job, rowBytes: rowBytes, bands)
                    try stream(reader, rowBytes: rowBytes, mapping, change, writer, pipe)
                    return
                }
                let source: Raster
                let from: OrientationMapping
                if job.isSmaller {
                    let size = mapping.isTransposed ? (down, across) : (across, down)
                    source = try reader.raster(
                        rowBytes: rowBytes,
                        height: decoded.height,
                        mapping.region,
                        reducedTo: size
                    )
                    from = OrientationMapping(orientations: mapping.orientations, width: size.0, height: size.1)
                } else {
                    source = try reader.raster(rowBytes: rowBytes, mapping.region)
                    from = mapping
                }
                try orient(source, from, change, writer, job, pipeline(job, rowBytes: 3 * across, bands))
            }
            if let bands {
                try write { rows, pixels, rowBytes in
                    bands.change(pixels, rowBytes: rowBytes, rows: rows.count, above: rows.above, below: rows.below)
                }
                try bands.check()
            } else {
                try colour.withPass(width: across, height: down) { (pass) throws(ImagingError) in
                    try write { rows, pixels, rowBytes in
                        if rowBytes == 3 * across { return pass(pixels, rows: rows.count, first: rows.first) }
                        for row in 0..<rows.count { pass(pixels + row * rowBytes, rows: 1, first: rows.first + row) }
                    }
                }
            }
            let data = try writer.finish()
            return RenderedImage(
                bytes: data,
                format: .jpeg,
                pixelWidth: across,
                pixelHeight: down,
                isUpscaled: false
            )
        }
    }

    private static func pipeline(_ job: Job, rowBytes: Int, _ bands: MagickBands?) -> BandPipeline {
        guard let bands else { return BandPipeline(height: job.output.height, rowBytes: rowBytes) }
        return BandPipeline(
            height: job.output.height,
            rowBytes: rowBytes,
            rowsPerBand: bands.rowsPerBand,
            margin: bands.margin
        )
    }

    /// Streams rows from the reader to the writer.
    private static func stream(
        _ reader: JPEGReader,
        rowBytes: Int,
        _ mapping: OrientationMapping,
        _ change: @escaping Change,
        _ writer: JPEGWriter,
        _ pipe: BandPipeline
    ) throws(ImagingError) {
        let region = mapping.region
        try pipe.run(
            fill: { (rows) throws(ImagingError) in
                var above = rows.band == 0 ? region.y : 0
                while above > 0 {
                    let count = min(above, rows.count)
                    try reader.read(rows.pixels, rowBytes: rowBytes, count: count)
                    above -= count
                }
                try reader.read(rows.pixels, rowBytes: rowBytes, count: rows.count)
            },
            change: { rows in change(rows, rows.pixels + 3 * region.x, rowBytes) },
            empty: { (rows) throws(ImagingError) in
                try writer.write(rows.pixels + 3 * region.x, rowBytes: rowBytes, count: rows.count)
            }
        )
    }

    /// Writes the rows of a raster in the output orientation.
    private static func orient(
        _ raster: Raster,
        _ mapping: OrientationMapping,
        _ change: @escaping Change,
        _ writer: JPEGWriter,
        _ job: Job,
        _ pipe: BandPipeline
    ) throws(ImagingError) {
        let output = job.output
        let rowBytes = 3 * output.width
        let steps = mapping.steps(of: raster.width)
        try pipe.run(
            fill: { (rows) throws(ImagingError) in
                raster.pixels.withUnsafeBufferPointer { pixels in
                    guard let start = pixels.baseAddress else { return }
                    safelight_gather_rgb(
                        start + steps.start + rows.first * steps.y,
                        steps.x,
                        steps.y,
                        rows.pixels,
                        output.width,
                        rows.count
                    )
                }
            },
            change: { rows in change(rows, rows.pixels, rowBytes) },
            empty: { (rows) throws(ImagingError) in
                try writer.write(rows.pixels, rowBytes: rowBytes, count: rows.count)
            }
        )
    }
}

extension OrientationMapping {
    /// Maps the part of a stored image that a job shows.
    init(_ job: JPEGBandTranscoder.Job, width: Int, height: Int) {
        let first = job.header.orientation
        orientations = (first, job.geometry.orientation)
        let upright = first >= 5 ? (height, width) : (width, height)
        let part = job.geometry.visiblePart
        let (fullWidth, fullHeight) = (Double(job.header.pixelWidth), Double(job.header.pixelHeight))
        let cut = RenditionGeometry.pixels(
            of: UnitRect(
                x: Double(part.x) / fullWidth,
                y: Double(part.y) / fullHeight,
                width: Double(part.width) / fullWidth,
                height: Double(part.height) / fullHeight
            ),
            width: upright.0,
            height: upright.1
        )
        region = Self.region(cut, first, width, height)
    }
}
