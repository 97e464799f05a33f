/// The reason that a .cube file cannot be read.
public struct ColourTableError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The number of the line, from 1; nil for a fault of the whole file.
    public let line: Int?
    public let reason: String

    public var description: String { line.map { "line \($0): \(reason)" } ?? reason }
}

extension ColourTable {
    /// The maximum size of a .cube file in bytes.
    public static let largestFile = 64 << 20

    /// Reads a .cube file (Adobe Cube LUT Specification 1.0, and the input ranges of DaVinci Resolve).
    ///
    /// Values beyond 0...1 are clipped. A domain other than 0...1 is resampled to it.
    ///
    /// - Throws: ``ColourTableError`` with the line at fault
    public init(cube bytes: [UInt8]) throws(ColourTableError) {
        guard bytes.count <= Self.largestFile else {
            throw ColourTableError(line: nil, reason: "a .cube file may have at most \(Self.largestFile >> 20) MiB")
        }
        var reader = CubeReader()
        // Some programs write a byte order mark before UTF-8.
        let text = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes[...]
        // Lines end with LF or CR LF, in files of old programs with CR.
        let end: UInt8 = bytes.contains(0x0A) ? 0x0A : 0x0D
        for (index, line) in text.split(separator: end, omittingEmptySubsequences: false).enumerated() {
            try reader.read(line.last == 0x0D ? line.dropLast() : line, index + 1)
        }
        self = try reader.finish()
    }

    /// Returns the table as a .cube file.
    public func cube(title: String) -> [UInt8] {
        var text = Array("TITLE \"\(title.filter { $0 != "\"" && $0 != "\n" })\"\n".utf8)
        text += Array("LUT_\(isCube ? 3 : 1)D_SIZE \(points)\n".utf8)
        text.reserveCapacity(text.count + 9 * values.count)
        for (index, value) in values.enumerated() {
            // Six digits distinguish all 65,536 values.
            let millionths = (Int(value) * 1_000_000 + 32_767) / 65_535
            text.append(UInt8(ascii: "0") + UInt8(millionths / 1_000_000))
            text.append(UInt8(ascii: "."))
            var divisor = 100_000
            while divisor > 0 {
                text.append(UInt8(ascii: "0") + UInt8(millionths / divisor % 10))
                divisor /= 10
            }
            text.append(index % 3 == 2 ? 0x0A : 0x20)
        }
        return text
    }
}
