import Foundation
import ImageFormats

/// The parts of an ICC profile (ICC.1:2022) by which common colour spaces are recognized. Its name is not used.
struct ICCProfile {
    /// The colour space of the values to which the profile applies: four characters, such as "RGB " or "GRAY".
    let colourSpace: String

    private let reader: ByteReader
    private let tags: [(name: String, content: ByteReader)]

    /// Parses the header and the table of tags; nil if the bytes are not a profile.
    init?(_ bytes: [UInt8]) {
        reader = ByteReader(bytes)
        guard reader.has("acsp", at: 36), let space = reader.text(16, 4), let count = reader.big32(128), count <= 256
        else { return nil }
        colourSpace = space
        var tags: [(name: String, content: ByteReader)] = []
        for start in stride(from: 132, to: 132 + 12 * count, by: 12) {
            guard let name = reader.text(start, 4), let offset = reader.big32(start + 4),
                let size = reader.big32(start + 8), let content = reader.slice(offset, size)
            else { continue }
            tags.append((name, ByteReader(content)))
        }
        self.tags = tags
    }

    /// X, Y and Z of a colour, relative to white point D50.
    typealias Colorant = (x: Double, y: Double, z: Double)

    /// Returns true if the profile has these primaries and the tone curve of sRGB, and no tables, which would take
    /// precedence.
    ///
    /// Programs round the primaries of one space differently, and some write the curve as a table with few points.
    func isMatrix(red: Colorant, green: Colorant, blue: Colorant) -> Bool {
        guard colourSpace == "RGB ", reader.has("XYZ ", at: 20), !tags.contains(where: { $0.name.hasPrefix("A2B") })
        else { return false }
        for (letter, colorant) in [("r", red), ("g", green), ("b", blue)] {
            guard let found = content("\(letter)XYZ").flatMap(Self.colorant),
                abs(found.x - colorant.x) < 0.002, abs(found.y - colorant.y) < 0.002,
                abs(found.z - colorant.z) < 0.002, let curve = content("\(letter)TRC"), Self.isCurveOfSRGB(curve)
            else { return false }
        }
        return true
    }

    private func content(_ name: String) -> ByteReader? { tags.first { $0.name == name }?.content }

    private static func colorant(_ content: ByteReader) -> Colorant? {
        guard content.has("XYZ ", at: 0), let x = fixed(content, 8), let y = fixed(content, 12),
            let z = fixed(content, 16)
        else { return nil }
        return (x, y, z)
    }

    /// Reads a signed fixed-point number with 16 fractional bits.
    private static func fixed(_ content: ByteReader, _ offset: Int) -> Double? {
        content.big32(offset).map { Double(Int32(truncatingIfNeeded: $0)) / 65_536 }
    }

    /// Compares encoded values, whose steps are about equally visible. A curve with an exponent of 2.2 differs by 0.03.
    private static func isCurveOfSRGB(_ curve: ByteReader) -> Bool {
        (0...32).allSatisfy { step in
            let value = Double(step) / 32
            guard let linear = linear(value, curve) else { return false }
            let encoded = linear <= 0.003_130_8 ? 12.92 * linear : 1.055 * pow(linear, 1 / 2.4) - 0.055
            return abs(encoded - value) < 0.008
        }
    }

    /// Returns the value of a tone curve at 0...1; nil if the curve is damaged.
    private static func linear(_ value: Double, _ curve: ByteReader) -> Double? {
        if curve.has("curv", at: 0) { return sampled(value, curve) }
        guard curve.has("para", at: 0), let kind = curve.big16(8), let gamma = fixed(curve, 12) else { return nil }
        func parameter(_ index: Int) -> Double? { fixed(curve, 12 + 4 * index) }
        if kind == 0 { return pow(value, gamma) }
        guard (1...4).contains(kind), let a = parameter(1), let b = parameter(2) else { return nil }
        func upper(_ offset: Double) -> Double { pow(a * value + b, gamma) + offset }
        if kind == 1 { return a * value + b >= 0 ? upper(0) : 0 }
        guard let c = parameter(3) else { return nil }
        if kind == 2 { return a * value + b >= 0 ? upper(c) : c }
        guard let d = parameter(4) else { return nil }
        if kind == 3 { return value >= d ? upper(0) : c * value }
        guard let e = parameter(5), let f = parameter(6) else { return nil }
        return value >= d ? upper(e) : c * value + f
    }

    /// Returns the value of a curve that is written as an exponent or as a table.
    private static func sampled(_ value: Double, _ curve: ByteReader) -> Double? {
        guard let count = curve.big32(8) else { return nil }
        if count == 0 { return value }
        if count == 1 { return curve.big16(12).map { pow(value, Double($0) / 256) } }
        let position = value * Double(count - 1)
        let index = min(count - 2, Int(position))
        guard let first = curve.big16(12 + 2 * index), let second = curve.big16(14 + 2 * index) else { return nil }
        return (Double(first) + (position - Double(index)) * Double(second - first)) / 65_535
    }
}
