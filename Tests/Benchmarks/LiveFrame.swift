import Glibc

/// Access to the numbers in the JSON bytes of a live message.
enum LiveFrame {
    /// Returns the number after a member's name; nil if there is none.
    static func number(_ name: StaticString, in frame: UnsafeRawBufferPointer) -> Int64? {
        guard let start = offset(after: name, in: frame) else { return nil }
        var value: Int64 = 0
        for byte in frame[start...] {
            guard (0x30...0x39).contains(byte) else { break }
            value = value &* 10 &+ Int64(byte - 0x30)
        }
        return value
    }

    /// Overwrites the number after a member's name, with the same number of digits.
    static func write(_ value: Int64, to name: StaticString, in frame: inout [UInt8]) {
        guard let start = frame.withUnsafeBytes({ offset(after: name, in: $0) }) else { return }
        var end = start
        while end < frame.count, (0x30...0x39).contains(frame[end]) { end += 1 }
        var rest = value
        for index in (start..<end).reversed() {
            frame[index] = 0x30 + UInt8(rest % 10)
            rest /= 10
        }
    }

    private static func offset(after name: StaticString, in frame: UnsafeRawBufferPointer) -> Int? {
        guard let base = frame.baseAddress else { return nil }
        let length = name.utf8CodeUnitCount
        var position = 0
        // The numbers are near the beginning, so a scan from quote to quote is fast.
        while position + length <= frame.count,
            let quote = memchr(base + position, 0x22, frame.count - position - length + 1)
        {
            position = base.distance(to: quote)
            if memcmp(quote, name.utf8Start, length) == 0 { return position + length }
            position += 1
        }
        return nil
    }

    static let sequence: StaticString = "\"sequence\":"
    static let date: StaticString = "\"date\":"
}
