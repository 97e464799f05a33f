/// Parses the header of a BMP file.
enum BMPStructure {
    static func read(_ reader: ByteReader) throws(ImageHeader.Failure) -> ImageHeader {
        guard let size = reader.little32(2), let form = reader.little32(14) else { throw .truncated }
        // One plane of an allowed depth follows the size.
        guard let planes = reader.little16(form == 12 ? 22 : 26), let depth = reader.little16(form == 12 ? 24 : 28)
        else { throw .truncated }
        if let found = unsupported(reader, form, depth) { throw .unsupported(found: found) }
        guard planes == 1, [1, 4, 8, 16, 24, 32].contains(depth) else {
            throw .invalid("a BMP file with \(planes) planes of \(depth) bits")
        }
        var header: ImageHeader
        if form == 12 {
            guard let width = reader.little16(18), let height = reader.little16(20) else { throw .truncated }
            header = ImageHeader(kind: .bmp, storedWidth: width, storedHeight: height)
        } else {
            guard let width = reader.little32(18), let height = reader.little32(22) else { throw .truncated }
            // A negative height means that rows are stored from top to bottom.
            let signed = Int(Int32(truncatingIfNeeded: height))
            header = ImageHeader(
                kind: .bmp,
                storedWidth: Int(Int32(truncatingIfNeeded: width)),
                storedHeight: abs(signed)
            )
        }
        header.isComplete = hasAllRows(reader, header, form, depth) ?? (size <= reader.count)
        return header
    }

    /// Returns true if all rows are in the file; nil if they are compressed. The size in the header is ignored, because
    /// many programs write a wrong one.
    private static func hasAllRows(_ reader: ByteReader, _ header: ImageHeader, _ form: Int, _ depth: Int) -> Bool? {
        guard let start = reader.little32(10), [0, 3].contains(form >= 40 ? reader.little32(30) ?? 0 : 0) else {
            return nil
        }
        // A row has a multiple of four bytes.
        let row = (header.storedWidth * depth + 31) / 32 * 4
        let (size, overflows) = row.multipliedReportingOverflow(by: header.storedHeight)
        return !overflows && size <= reader.count - start
    }

    /// Returns the name of a variant that the decoder refuses, or would return with wrong colours; nil for any other.
    private static func unsupported(_ reader: ByteReader, _ form: Int, _ depth: Int) -> String? {
        switch (form, form >= 40 ? reader.little32(30) ?? 0 : 0) {
        case (64, _) where depth <= 8: "a BMP file of OS/2 2 with a palette"
        case (_, 4) where form != 64: "a BMP file that contains a JPEG"
        case (_, 5) where form != 64: "a BMP file that contains a PNG"
        case (_, 6) where form != 64: "a BMP file with masks of opacity and a short header"
        default: depth == 2 ? "a BMP file with two bits a pixel" : nil
        }
    }
}
