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
        // Lines end with LF or CR LF, or with CR in files of old programs.
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

/// Collects the lines of a .cube file.
struct CubeReader {
    private var points: Int?
    private var isCube = false
    private var low = [0.0, 0, 0]
    private var high = [1.0, 1, 1]
    private var values: [Double] = []

    private var expectedCount: Int { (points ?? 0) * (isCube ? (points ?? 0) * (points ?? 0) : 1) }

    mutating func read(_ line: ArraySlice<UInt8>, _ number: Int) throws(ColourTableError) {
        func fault(_ reason: String) -> ColourTableError { ColourTableError(line: number, reason: reason) }
        let line = line.drop { $0 == 0x20 || $0 == 0x09 }
        guard let first = line.first, first != UInt8(ascii: "#") else { return }
        guard line.count <= 1024 else { throw fault("longer than 1024 bytes") }
        let words = line.split { $0 == 0x20 || $0 == 0x09 }.map { String(decoding: $0, as: UTF8.self) }
        guard let word = words.first else { return }
        let numbers = words.dropFirst().map { Double($0) }
        switch word {
        case "TITLE": return
        case "LUT_1D_SIZE", "LUT_3D_SIZE":
            guard points == nil else { throw fault("a second table; a file may have one") }
            isCube = word == "LUT_3D_SIZE"
            let allowed = isCube ? ColourTable.cubePoints : 2...65_536
            guard words.count == 2, let size = Int(words[1]), allowed.contains(size) else {
                throw fault("\(word) must be \(allowed.lowerBound)...\(allowed.upperBound)")
            }
            points = size
        case "DOMAIN_MIN", "DOMAIN_MAX":
            let found = numbers.compactMap(\.self)
            guard words.count == 4, found.count == 3, found.allSatisfy(\.isFinite) else {
                throw fault("\(word) needs three numbers")
            }
            if word == "DOMAIN_MIN" { low = found } else { high = found }
        case "LUT_1D_INPUT_RANGE", "LUT_3D_INPUT_RANGE":
            let found = numbers.compactMap(\.self)
            guard words.count == 3, found.count == 2, found.allSatisfy(\.isFinite) else {
                throw fault("\(word) needs two numbers")
            }
            (low, high) = (Array(repeating: found[0], count: 3), Array(repeating: found[1], count: 3))
        default:
            let found = words.compactMap { Double($0) }
            guard found.count == words.count else { throw fault("\"\(word.prefix(40))\" is not known") }
            guard found.count == 3, found.allSatisfy(\.isFinite) else { throw fault("a point needs three numbers") }
            guard points != nil else { throw fault("a point before LUT_1D_SIZE or LUT_3D_SIZE") }
            guard values.count < 3 * expectedCount else { throw fault("more than \(expectedCount) points") }
            values += found
        }
    }

    func finish() throws(ColourTableError) -> ColourTable {
        func fault(_ reason: String) -> ColourTableError { ColourTableError(line: nil, reason: reason) }
        guard let points else { throw fault("there is no LUT_1D_SIZE and no LUT_3D_SIZE") }
        guard values.count == 3 * expectedCount else {
            throw fault("there are \(values.count / 3) points instead of \(expectedCount)")
        }
        guard zip(low, high).allSatisfy({ $0 < $1 }) else { throw fault("DOMAIN_MIN must be below DOMAIN_MAX") }
        let count = isCube ? points : min(points, ColourTable.curvePoints.upperBound)
        let isAsIs = count == points && low == [0, 0, 0] && high == [1, 1, 1]
        let samples = isAsIs ? values : resampled(points, count)
        let table = ColourTable(
            points: count,
            isCube: isCube,
            values: samples.map { UInt16((min(1, max(0, $0)) * 65_535).rounded()) }
        )
        guard let table else { throw fault("the table has a wrong number of points") }
        return table
    }

    /// Returns the values at `count` points over 0...1.
    private func resampled(_ points: Int, _ count: Int) -> [Double] {
        // For each channel and point: the index of the next lower point of the file, and the weight of the point after
        // it.
        let positions = (0..<3).map { channel in
            (0..<count).map { index -> (Int, Double) in
                let value = Double(index) / Double(count - 1)
                let at = min(1, max(0, (value - low[channel]) / (high[channel] - low[channel]))) * Double(points - 1)
                let below = min(points - 2, Int(at))
                return (below, at - Double(below))
            }
        }
        var result: [Double] = []
        guard isCube else {
            for index in 0..<count {
                for channel in 0..<3 {
                    let (below, weight) = positions[channel][index]
                    let (from, to) = (values[3 * below + channel], values[3 * below + 3 + channel])
                    result.append(from + weight * (to - from))
                }
            }
            return result
        }
        result.reserveCapacity(values.count)
        for blue in positions[2] {
            for green in positions[1] {
                for red in positions[0] {
                    for channel in 0..<3 {
                        var sum = 0.0
                        for corner in 0..<8 {
                            let (r, g, b) = (corner & 1, corner >> 1 & 1, corner >> 2)
                            let weight =
                                (r == 1 ? red.1 : 1 - red.1) * (g == 1 ? green.1 : 1 - green.1)
                                * (b == 1 ? blue.1 : 1 - blue.1)
                            let at = red.0 + r + points * (green.0 + g + points * (blue.0 + b))
                            sum += weight * values[3 * at + channel]
                        }
                        result.append(sum)
                    }
                }
            }
        }
        return result
    }
}
