import Glibc

/// Reads numbers at byte offsets of untrusted data. Every access is bounds-checked and returns `nil` if it is out of
/// bounds.
public struct ByteReader: Sendable {
    public let bytes: ArraySlice<UInt8>
    /// The byte order of ``short(_:)``, ``long(_:)`` and ``long8(_:)``.
    public let isLittle: Bool

    public init(_ bytes: ArraySlice<UInt8>, isLittle: Bool = false) {
        self.bytes = bytes
        self.isLittle = isLittle
    }

    public init(_ bytes: [UInt8]) {
        self.init(bytes[...])
    }

    public var count: Int { bytes.count }

    /// Returns the bytes `offset..<offset + length`, or `nil` if the data ends before them.
    public func slice(_ offset: Int, _ length: Int) -> ArraySlice<UInt8>? {
        guard offset >= 0, length >= 0, offset <= bytes.count, length <= bytes.count - offset else { return nil }
        let start = bytes.startIndex + offset
        return bytes[start..<start + length]
    }

    /// Returns one byte.
    public func byte(_ offset: Int) -> Int? {
        guard offset >= 0, offset < bytes.count else { return nil }
        return Int(bytes[bytes.startIndex + offset])
    }

    private func number(_ offset: Int, _ length: Int, little: Bool) -> Int? {
        guard let slice = slice(offset, length) else { return nil }
        var value: UInt64 = 0
        for byte in little ? Array(slice.reversed()) : Array(slice) { value = value << 8 | UInt64(byte) }
        return Int(exactly: value)
    }

    /// Reads a big-endian number of 16 bits.
    public func big16(_ offset: Int) -> Int? { number(offset, 2, little: false) }
    /// Reads a big-endian number of 32 bits.
    public func big32(_ offset: Int) -> Int? { number(offset, 4, little: false) }
    /// Reads a big-endian number of `length` bytes.
    public func big(_ offset: Int, _ length: Int) -> Int? { number(offset, length, little: false) }
    /// Reads a little-endian number of 16 bits.
    public func little16(_ offset: Int) -> Int? { number(offset, 2, little: true) }
    /// Reads a little-endian number of 24 bits.
    public func little24(_ offset: Int) -> Int? { number(offset, 3, little: true) }
    /// Reads a little-endian number of 32 bits.
    public func little32(_ offset: Int) -> Int? { number(offset, 4, little: true) }
    /// Reads 16 bits in the byte order of this reader.
    public func short(_ offset: Int) -> Int? { number(offset, 2, little: isLittle) }
    /// Reads 32 bits in the byte order of this reader.
    public func long(_ offset: Int) -> Int? { number(offset, 4, little: isLittle) }
    /// Reads 64 bits in the byte order of this reader; nil if the number does not fit into an `Int`.
    public func long8(_ offset: Int) -> Int? { number(offset, 8, little: isLittle) }

    /// Returns `length` bytes as text; nil if they are not UTF-8.
    public func text(_ offset: Int, _ length: Int) -> String? {
        slice(offset, length).flatMap { String(validating: $0, as: UTF8.self) }
    }

    /// Returns true if the bytes at an offset are the given text.
    public func has(_ text: StaticString, at offset: Int) -> Bool {
        guard let slice = slice(offset, text.utf8CodeUnitCount) else { return false }
        return slice.elementsEqual(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Returns the offset of the first occurrence of `needle` at or after `start`.
    public func find(_ needle: StaticString, from start: Int = 0) -> Int? {
        let length = needle.utf8CodeUnitCount
        return bytes.withUnsafeBufferPointer { buffer in
            guard start >= 0, length > 0, let base = buffer.baseAddress else { return nil }
            var at = start
            while at <= buffer.count - length {
                guard let next = memchr(base + at, Int32(needle.utf8Start.pointee), buffer.count - length + 1 - at)
                else { return nil }
                at = base.distance(to: next.assumingMemoryBound(to: UInt8.self))
                if memcmp(base + at, needle.utf8Start, length) == 0 { return at }
                at += 1
            }
            return nil
        }
    }
}
