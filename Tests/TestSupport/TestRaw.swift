import SamplePictures

/// A camera's raw file made by code: a DNG of 16 bits with the preview that a camera would put into it.
public enum TestRaw {
    /// Shows the four quadrants of ``TestPictures`` upright.
    ///
    /// - Parameters:
    ///   - width: pixels across as displayed
    ///   - height: pixels down as displayed
    ///   - orientation: EXIF 1, 3, 6 or 8
    ///   - preview: the JPEG in it, not turned; nil for none
    public static func dng(width: Int, height: Int, orientation: Int = 1, preview: [UInt8]? = nil) -> [UInt8] {
        let isTurned = orientation >= 5
        let (across, down) = isTurned ? (height, width) : (width, height)
        var sensor: [UInt8] = []
        for y in 0..<down {
            for x in 0..<across {
                let (u, v) = Orientations.displayed(x, y, width: width, height: height, orientation: orientation)
                let colour = TestPictures.colour(u, v, width: width, height: height, seed: 1)
                // Red and green in even rows, green and blue in odd ones; light counts linearly.
                let sample = [colour.0, colour.1, colour.1, colour.2][(y % 2) * 2 + x % 2]
                sensor += short(Int(sample) * Int(sample) / 4)
            }
        }
        var file = Array("II".utf8) + short(42) + long(8)
        let picture: [Field] = [
            .long(254, [0]), .long(256, [across]), .long(257, [down]), .short(258, [16]), .short(259, [1]),
            .short(262, [32_803]), .data(273, sensor), .short(277, [1]), .long(278, [down]), .long(279, [sensor.count]),
            .short(33_421, [2, 2]), .bytes(33_422, [0, 1, 1, 2]), .long(50_717, [16_256]),
        ]
        var main: [Field] = [
            .long(254, [1]), .ascii(271, "Safelight"), .ascii(272, "Test"), .short(274, [orientation]),
            .directory(330, picture), .bytes(50_706, [1, 4, 0, 0]), .bytes(50_707, [1, 1, 0, 0]),
            .ascii(50_708, "Safelight Test"), .ratios(50_721, cameraOfXYZ, isSigned: true),
            .ratios(50_728, [1, 1, 1], isSigned: false), .short(50_778, [21]),
        ]
        if let preview {
            main += [
                .long(256, [width]), .long(257, [height]), .short(258, [8, 8, 8]), .short(259, [7]), .short(262, [6]),
                .data(273, preview), .short(277, [3]), .long(278, [height]), .long(279, [preview.count]),
            ]
        }
        append(main, to: &file)
        return file
    }

    /// A sensor that sees what sRGB shows.
    private static let cameraOfXYZ = [3.2406, -1.5372, -0.4986, -0.9689, 1.8758, 0.0415, 0.0557, -0.2040, 1.0570]

    private enum Field {
        case short(Int, [Int]), long(Int, [Int]), bytes(Int, [UInt8]), ascii(Int, String)
        case ratios(Int, [Double], isSigned: Bool)
        /// Bytes elsewhere in the file, by their offset.
        case data(Int, [UInt8])
        case directory(Int, [Field])

        var tag: Int {
            switch self {
            case .short(let tag, _), .long(let tag, _), .bytes(let tag, _), .ascii(let tag, _), .data(let tag, _),
                .directory(let tag, _), .ratios(let tag, _, _):
                tag
            }
        }
    }

    /// Writes a directory at the end of the file, its values after it.
    private static func append(_ fields: [Field], to file: inout [UInt8]) {
        let start = file.count
        let sorted = fields.sorted { $0.tag < $1.tag }
        file += short(sorted.count) + [UInt8](repeating: 0, count: 12 * sorted.count + 4)
        for (index, field) in sorted.enumerated() {
            let (type, count, value): (Int, Int, [UInt8]) =
                switch field {
                case .short(_, let values): (3, values.count, values.flatMap(short))
                case .long(_, let values): (4, values.count, values.flatMap(long))
                case .bytes(_, let values): (1, values.count, values)
                case .ascii(_, let text): (2, text.utf8.count + 1, Array(text.utf8) + [0])
                case .ratios(_, let values, let isSigned):
                    (isSigned ? 10 : 5, values.count, values.flatMap { long(Int($0 * 10_000)) + long(10_000) })
                case .data(_, let bytes): (4, 1, long(place(bytes, in: &file)))
                case .directory(_, let inner): (4, 1, long(place(inner, in: &file)))
                }
            let held =
                value.count <= 4 ? value + [UInt8](repeating: 0, count: 4 - value.count) : long(place(value, in: &file))
            let at = start + 2 + 12 * index
            file.replaceSubrange(at..<at + 12, with: short(field.tag) + short(type) + long(count) + held)
        }
    }

    private static func place(_ bytes: [UInt8], in file: inout [UInt8]) -> Int {
        if file.count % 2 == 1 { file.append(0) }
        let start = file.count
        file += bytes
        return start
    }

    private static func place(_ fields: [Field], in file: inout [UInt8]) -> Int {
        if file.count % 2 == 1 { file.append(0) }
        let start = file.count
        append(fields, to: &file)
        return start
    }

    private static func short(_ value: Int) -> [UInt8] { [UInt8(value & 255), UInt8(value >> 8 & 255)] }

    private static func long(_ value: Int) -> [UInt8] { short(value & 65_535) + short(value >> 16 & 65_535) }
}
