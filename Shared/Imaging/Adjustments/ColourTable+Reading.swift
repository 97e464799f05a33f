import CMagickWand
import Foundation
import ImageFormats

extension ColourTable {
    /// Returns the table of a `lut` operation, a PNG or a .cube file in Base64; nil for the empty text.
    ///
    /// - Throws: ``ImagingError/invalidOptions(_:)`` with the reason
    static func read(_ base64: String) throws(ImagingError) -> ColourTable? {
        guard !base64.isEmpty else { return nil }
        guard let data = Data(base64Encoded: base64) else {
            throw .invalidOptions("the table of a lut is not Base64")
        }
        let bytes = [UInt8](data)
        ImagingLibrary.enter(.working)
        guard ImageFormat.sniff(bytes) == nil else { return try table(ofImage: bytes) }
        do throws(ColourTableError) { return try ColourTable(cube: bytes) } catch {
            throw .invalidOptions("the table of a lut is no .cube file: \(error)")
        }
    }

    private static func table(ofImage bytes: [UInt8]) throws(ImagingError) -> ColourTable {
        let maxPoints = cubePoints.upperBound
        var limits = PixelLimits()
        limits.pixels = maxPoints * maxPoints * maxPoints
        limits.jpegPixels = 0
        let values: [UInt16]
        let size: (width: Int, height: Int)
        do throws(ImagingError) {
            let header = try ImageProbe.header(of: bytes, limits: limits)
            guard header.kind == .png else {
                throw .invalidOptions("the table of a lut is neither PNG nor a .cube file")
            }
            let wand = try Decoder.decode(bytes, header, eighths: DecodeScale.full, scale: 1, limits: limits)
            // The numbers are used unchanged: a profile would describe the image of the table, not its colours.
            try wand.attempt("preparing", MagickTransformImageColorspace(wand.pointer, sRGBColorspace))
            size = (wand.width, wand.height)
            values = try wand.colours()
        } catch {
            throw .invalidOptions("the table of a lut cannot be read: \(error.message)")
        }
        guard let table = ColourTable(pixels: values, width: size.width, height: size.height) else {
            throw .invalidOptions(
                "the table of a lut has \(size.width) by \(size.height) pixels; give a HALD CLUT of at most level 12, n by "
                    + "n * n pixels for a cube of n, or one row of at most \(curvePoints.upperBound) pixels"
            )
        }
        return table
    }
}

extension Wand {
    /// Returns red, green and blue of all pixels, row by row.
    func colours() throws(ImagingError) -> [UInt16] {
        var values: [UInt16] = []
        try withPixelsForReading { pixels, count in
            values = [UInt16](unsafeUninitializedCapacity: 3 * count) { buffer, used in
                for index in 0..<count {
                    for channel in 0..<3 { buffer[3 * index + channel] = pixels[4 * index + 2 - channel] }
                }
                used = 3 * count
            }
        }
        return values
    }
}
