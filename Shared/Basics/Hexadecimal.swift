extension Sequence<UInt8> {
    /// The bytes as lower-case hexadecimal text, two digits a byte.
    public var hexadecimal: String {
        var text: [UInt8] = []
        text.reserveCapacity(2 * underestimatedCount)
        for byte in self {
            text.append(Self.digit(byte >> 4))
            text.append(Self.digit(byte & 15))
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns the ASCII digit of a number from 0 to 15.
    fileprivate static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
    }
}

extension UnsafeRawBufferPointer {
    /// The bytes as lower-case hexadecimal text, without a sequence of bytes in between.
    public var hexadecimal: String {
        String(unsafeUninitializedCapacity: 2 * count) { text in
            for (position, byte) in enumerated() {
                text[2 * position] = Self.digit(byte >> 4)
                text[2 * position + 1] = Self.digit(byte & 15)
            }
            return 2 * count
        }
    }
}

extension Array<UInt8> {
    /// Decodes hexadecimal text, two lower-case digits a byte; `nil` for any other text.
    public init?(hexadecimal text: String) {
        let digits = Array(text.utf8)
        guard digits.count.isMultiple(of: 2) else { return nil }
        self.init()
        reserveCapacity(digits.count / 2)
        for position in stride(from: 0, to: digits.count, by: 2) {
            guard let high = Self.value(of: digits[position]), let low = Self.value(of: digits[position + 1]) else {
                return nil
            }
            append(high << 4 | low)
        }
    }

    private static func value(of digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        default: nil
        }
    }
}

extension RandomNumberGenerator {
    /// Returns random bytes as hexadecimal text: a unique name.
    ///
    /// - Parameter byteCount: the number of random bytes
    public mutating func nextHexadecimal(byteCount: Int = 16) -> String {
        (0..<byteCount).map { _ in UInt8.random(in: .min ... .max, using: &self) }.hexadecimal
    }

    /// Returns a unique name that sorts by the time: a UUID of version 7 (RFC 9562, section 5.7), as 32 digits.
    ///
    /// - Parameter milliseconds: since 1970; the lower 48 bits are used
    public mutating func nextTimeOrderedHexadecimal(milliseconds: Int64) -> String {
        let time = UInt64(truncatingIfNeeded: milliseconds) << 16 | 0x7000 | .random(in: 0...0xFFF, using: &self)
        let rest: UInt64 = 1 << 63 | .random(in: 0..<1 << 62, using: &self)
        return [time, rest].flatMap { word in withUnsafeBytes(of: word.bigEndian, Array.init) }.hexadecimal
    }
}
