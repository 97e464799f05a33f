import CZlib

/// A colour look-up table (LUT), the form in which programs exchange looks: a cube of points, or one curve for each
/// channel. Colours are sRGB-encoded.
public struct ColourTable: Sendable, Hashable {
    /// The number of points along each side of the cube, or of each curve.
    public let points: Int
    public let isCube: Bool
    /// Red, green and blue of each point, 0...65535; in a cube red changes fastest, then green.
    public let values: [UInt16]

    /// The points that a table may have: at most those of a HALD CLUT of level 12.
    public static let cubePoints = 2...144
    public static let curvePoints = 2...16_384

    /// Creates a table; nil if the number of points is not allowed or does not agree with the values.
    public init?(points: Int, isCube: Bool, values: [UInt16]) {
        guard (isCube ? Self.cubePoints : Self.curvePoints).contains(points),
            values.count == 3 * (isCube ? points * points * points : points)
        else { return nil }
        self.points = points
        self.isCube = isCube
        self.values = values
    }

    /// Creates a table from the pixels of an image: one row is a curve for each channel, else all pixels, row by row,
    /// are the points of a cube. A HALD CLUT of any level is such an image.
    public init?(pixels values: [UInt16], width: Int, height: Int) {
        guard width > 0, height > 0, values.count == 3 * width * height else { return nil }
        if height == 1 {
            self.init(points: width, isCube: false, values: values)
        } else {
            guard let points = Self.cubePoints.first(where: { $0 * $0 * $0 == width * height }) else { return nil }
            self.init(points: points, isCube: true, values: values)
        }
    }

    /// The table as a PNG of 16 bits: a HALD CLUT if the number of points is a square (64 points are level 8); else an
    /// image with one row for each row of the cube.
    public var png: [UInt8] {
        let (width, height) = size
        var raw: [UInt8] = []
        raw.reserveCapacity(height * (6 * width + 1))
        for row in 0..<height {
            // The filter Sub stores the differences from the pixel to the left, because neighbouring points are
            // similar.
            raw.append(1)
            var before: [UInt8] = [0, 0, 0, 0, 0, 0]
            for at in stride(from: 3 * row * width, to: 3 * (row + 1) * width, by: 3) {
                let bytes = values[at..<at + 3].flatMap { [UInt8($0 >> 8), UInt8($0 & 255)] }
                for index in 0..<6 { raw.append(bytes[index] &- before[index]) }
                before = bytes
            }
        }
        let head = Self.big(width) + Self.big(height) + [16, 2, 0, 0, 0]
        return [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + Self.chunk("IHDR", head)
            + Self.chunk("IDAT", Self.deflated(raw)) + Self.chunk("IEND", [])
    }

    private var size: (width: Int, height: Int) {
        guard isCube else { return (points, 1) }
        let side = Int(Double(points).squareRoot().rounded())
        return side * side == points ? (side * points, side * points) : (points, points * points)
    }

    private static func big(_ number: Int) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
    }

    private static func chunk(_ name: String, _ content: [UInt8]) -> [UInt8] {
        let named = Array(name.utf8) + content
        let sum = named.withUnsafeBufferPointer { crc32(0, $0.baseAddress, UInt32($0.count)) }
        return big(content.count) + named + big(Int(sum))
    }

    private static func deflated(_ bytes: [UInt8]) -> [UInt8] {
        var count = compressBound(UInt(bytes.count))
        return [UInt8](unsafeUninitializedCapacity: Int(count)) { buffer, used in
            // With a buffer of this size, compress2 can fail only if memory runs out.
            let status = compress2(buffer.baseAddress, &count, bytes, UInt(bytes.count), 9)
            used = status == Z_OK ? Int(count) : 0
        }
    }
}
