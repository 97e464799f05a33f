import Glibc

/// Reads along a JSON text without making values of it: for those who pass most of it on as it is.
///
/// What is passed over is checked no further than its brackets and quotation marks tell where it ends: only texts of a
/// trusted writer are passed on so. Strangers' texts are read by ``JSON``.
public struct JSONCursor {
    private let bytes: UnsafeBufferPointer<UInt8>
    /// Where it stands, in bytes from the start of the text.
    public private(set) var offset = 0

    /// Reads along a text.
    public static func reading<Value>(
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

    /// Goes on at another place, where a value begins.
    public mutating func move(to offset: Int) throws(JSONError) {
        guard bytes.indices.contains(offset) else { throw failure(.unexpectedEnd) }
        self.offset = offset
    }

    // MARK: Into values

    /// The first byte of the value that comes next; it stays there.
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

    /// Steps into an object; its members follow.
    public mutating func enterObject() throws(JSONError) { try expect(UInt8(ascii: "{")) }

    /// The name of the next member, whose value comes next; nil at the object's end, which is passed.
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
        let name = try string()
        try expect(UInt8(ascii: ":"))
        return name
    }

    /// Steps into an array; its elements follow.
    public mutating func enterArray() throws(JSONError) { try expect(UInt8(ascii: "[")) }

    /// Whether an element comes next; false at the array's end, which is passed.
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

    /// Passes over a value.
    ///
    /// - Returns: where it stands
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

    /// Passes over the rest of the object or array that it stands in.
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
            // The backslash before the first byte of a string is never its own: a quotation mark stands there.
            if escapes.isMultiple(of: 2) {
                offset = position
                return
            }
        }
        throw failure(.unexpectedEnd)
    }

    /// Reads a string.
    public mutating func string() throws(JSONError) -> String {
        guard try peek() == UInt8(ascii: "\"") else { throw failure(.unexpectedByte) }
        let start = offset
        try skipString()
        let content = bytes[start + 1..<offset - 1]
        if !content.contains(UInt8(ascii: "\\")), let text = String(validating: content, as: UTF8.self) { return text }
        guard case .string(let text) = try JSON(parsing: bytes[start..<offset]) else { throw failure(.badString) }
        return text
    }

    /// Reads a whole number; nil for any other value, which is passed.
    public mutating func integer() throws(JSONError) -> Int64? {
        let range = try skip()
        return Int64(String(decoding: bytes[range], as: UTF8.self))
    }
}
