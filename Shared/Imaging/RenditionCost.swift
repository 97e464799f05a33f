import ImageFormats

/// An estimate of the processor time of a rendition, before the image is decoded.
enum RenditionCost {
    /// Returns the nanoseconds per encoded pixel, on a processor of 2020.
    private static func encoding(_ format: ImageFormat) -> Double {
        switch format {
        case .jpeg, .bmp, .gif: 30
        case .tiff: 100
        case .webp: 150
        case .png: 250
        case .avif: 400
        case .heic, .jxl, .psd, .tga, .ico, .pnm, .raw: 0
        }
    }

    /// Returns the seconds of the work after decoding.
    static func seconds(pixels: Int, format: ImageFormat) -> Double { Double(pixels) * encoding(format) / 1e9 }

    /// Refuses a rendition whose estimated time exceeds the limit.
    ///
    /// - Throws: ``ImagingError/tooMuchWork(_:)`` with a size and a format that would be possible
    static func check(_ geometry: RenditionGeometry, _ format: ImageFormat, seconds limit: Double) throws(ImagingError)
    {
        let estimate = seconds(pixels: geometry.area, format: format)
        guard estimate > limit else { return }
        let possible = limit / encoding(format) * 1e3
        let isFast = seconds(pixels: geometry.area, format: .jpeg) <= limit
        throw .tooMuchWork(
            "\(format.rawValue) of \(geometry.output.width) by \(geometry.output.height) pixels takes about "
                + "\(Int(estimate.rounded(.up))) s, and a worker has \(Int(limit)) s; ask for at most "
                + "\(Int(possible.rounded(.down))) megapixels\(isFast && format != .jpeg ? ", or for jpeg" : "")"
        )
    }
}
