/// Parses the header of a BMP file.
enum BMPStructure {
    static func read(_ reader: ByteReader) throws(ImageHeader.Failure) -> ImageHeader {
        guard let size = reader.little32(2), let form = reader.little32(14) else { throw .truncated }
        // One plane of an allowed depth follows the size.
        guard let planes = reader.little16(form == 12 ? 22 : 26), let depth = reader.little16(form == 12 ? 24 : 28)
        else { throw .truncated }
        guard planes == 1, [1, 2, 4, 8, 16, 24, 32].contains(depth) else {
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
        header.isComplete = size <= reader.count
        return header
    }
}
