import Glibc

/// A cursor over JSON text that does not build values, for code that copies most of the text unchanged.
///
/// Skipped values are not validated, apart from the brackets and quotation marks needed to find their end. Use it only
/// for text from a trusted writer; text from clients is parsed by ``JSON``.
public struct JSONCursor {
    private let bytes: UnsafeBufferPointer<UInt8>
    /// The position in bytes from the start of the text.
    public private(set) var offset = 0

    /// Runs a closure with a cursor over a text.
    public static func read<Value>(
        _ text: [UInt8],
        _ body: (inout JSONCursor) throws(JSONError) -> Value
    ) throws(JSONError) -> Value {
        var result: Result<Value, JSONError>?
        text.withUnsafeBufferPointer { buffer in
            var cursor = JSONCursor(bytes: buffer)
            do throws(JSONError) { result = .success(try body(&cursor)) } catch { result = .failure(error) }
        }
        guard let result else { throw JSONError(reason: .unexpectedEnd, offset: 0) }
        return try result.get()
    }

    private init(bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

    private func failure(_ reason: JSONError.Reason) -> JSONError { JSONError(reason: reason, offset: offset) }

    /// Moves to another offset, at which a value begins.
    public mutating func move(to offset: Int) throws(JSONError) {
        guard bytes.indices.contains(offset) else { throw failure(.unexpectedEnd) }
        self.offset = offset
    }

    // MARK: Structure

    /// Returns the first byte of the next value without consuming it.
    public mutating func peek() throws(JSONError) -> UInt8 {
        while offset < bytes.count {
            switch bytes[offset] {
            case 0x20, 0x09, 0x0A, 0x0D: offset += 1
            case let byte: return byte
            }
        }
        throw failure(.unexpectedEnd)
    }

    private mutating func expect(_ byte: UInt8) throws(JSONError) {
        guard try peek() == byte else { throw failure(.unexpectedByte) }
        offset += 1
    }

    /// Enters an object. Its members follow.
    public mutating func enterObject() throws(JSONError) { try expect(UInt8(ascii: "{")) }

    /// Returns the name of the next member, whose value follows; nil at the end of the object, which is consumed.
    public mutating func nextMember() throws(JSONError) -> String? {
        var byte = try peek()
        if byte == UInt8(ascii: ",") {
            offset += 1
            byte = try peek()
        }
        if byte == UInt8(ascii: "}") {
            offset += 1
            return nil
        }
        let name = try parseString()
        try expect(UInt8(ascii: ":"))
        return name
    }

    /// Enters an array. Its elements follow.
    public mutating func enterArray() throws(JSONError) { try expect(UInt8(ascii: "[")) }

    /// Returns true if an element follows; false at the end of the array, which is consumed.
    public mutating func nextElement() throws(JSONError) -> Bool {
        var byte = try peek()
        if byte == UInt8(ascii: ",") {
            offset += 1
            byte = try peek()
        }
        guard byte == UInt8(ascii: "]") else { return true }
        offset += 1
        return false
    }

    // MARK: Values

    /// Skips a value.
    ///
    /// - Returns: its range in the text
    @discardableResult
    public mutating func skip() throws(JSONError) -> Range<Int> {
        let first = try peek()
        let start = offset
        switch first {
        case UInt8(ascii: "\""): try skipString()
        case UInt8(ascii: "{"), UInt8(ascii: "["):
            offset += 1
            try leave()
        default:
            while offset < bytes.count, !Self.isEnd(bytes[offset]) { offset += 1 }
            guard offset > start else { throw failure(.unexpectedByte) }
        }
        return start..<offset
    }

    /// Skips the rest of the enclosing object or array.
    public mutating func leave() throws(JSONError) {
        var depth = 1
        while depth > 0 {
            guard offset < bytes.count else { throw failure(.unexpectedEnd) }
            switch bytes[offset] {
            case UInt8(ascii: "\""):
                try skipString()
                continue
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
            default: break
            }
            offset += 1
        }
    }

    private static func isEnd(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: ","), UInt8(ascii: "]"), UInt8(ascii: "}"), UInt8(ascii: ":"), 0x20, 0x09, 0x0A, 0x0D: true
        default: false
        }
    }

    private mutating func skipString() throws(JSONError) {
        var position = offset + 1
        while let base = bytes.baseAddress, position < bytes.count,
            let found = memchr(base + position, 0x22, bytes.count - position)
        {
            let quote = UnsafeRawPointer(base).distance(to: UnsafeRawPointer(found))
            var escapes = 0
            while bytes[quote - 1 - escapes] == UInt8(ascii: "\\") { escapes += 1 }
            position = quote + 1
            // The backslashes end at the opening quotation mark of the string at the latest.
            if escapes.isMultiple(of: 2) {
                offset = position
                return
            }
        }
        throw failure(.unexpectedEnd)
    }

    /// Parses a string.
    public mutating func parseString() throws(JSONError) -> String {
        guard try peek() == UInt8(ascii: "\"") else { throw failure(.unexpectedByte) }
        let start = offset
        try skipString()
        let content = bytes[start + 1..<offset - 1]
        if !content.contains(UInt8(ascii: "\\")), let text = String(validating: content, as: UTF8.self) { return text }
        guard case .string(let text) = try JSON(parsing: bytes[start..<offset]) else { throw failure(.badString) }
        return text
    }

    /// Parses a whole number; nil for any other value, which is skipped.
    public mutating func parseInteger() throws(JSONError) -> Int64? {
        let range = try skip()
        return Int64(String(decoding: bytes[range], as: UTF8.self))
    }
}
