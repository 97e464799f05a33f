/// The reason why bytes are not valid JSON.
public struct JSONError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kind of error, with the text of its description.
    public enum Reason: String, Sendable {
        case unexpectedByte = "unexpected byte"
        case unexpectedEnd = "unexpected end of text"
        case trailingBytes = "bytes after the value"
        case tooDeep = "nested too deeply"
        case tooManyValues = "too many values"
        case badNumber = "not a valid number"
        case badString = "not a valid string"
        case duplicateName = "duplicate member name"
    }

    /// The kind of error.
    public let reason: Reason
    /// The position in bytes from the start of the text.
    public let offset: Int

    public var description: String { "\(reason.rawValue) at byte \(offset)" }
}

/// Limits on JSON from an untrusted source.
public struct JSONLimits: Sendable {
    /// The maximum nesting depth of arrays and objects.
    public var depth: Int
    /// The maximum number of values in the whole text.
    public var values: Int

    public init(depth: Int = 64, values: Int = 1_000_000) {
        self.depth = depth
        self.values = values
    }
}

extension JSON {
    /// Parses one JSON text (RFC 8259, UTF-8). Refuses the cases that the RFC leaves open: duplicate names, unpaired
    /// surrogates, and numbers beyond a finite `Double`.
    public init(parsing bytes: some Collection<UInt8>, limits: JSONLimits = JSONLimits()) throws(JSONError) {
        try self.init(parsing: Array(bytes), limits: limits)
    }

    /// Parses the text in an array, without a copy of it.
    public init(parsing bytes: [UInt8], limits: JSONLimits = JSONLimits()) throws(JSONError) {
        var result: Result<JSON, JSONError> = .success(.null)
        bytes.withUnsafeBufferPointer { buffer in
            var reader = JSONReader(bytes: buffer, limits: limits)
            do throws(JSONError) { result = .success(try reader.parseDocument()) } catch { result = .failure(error) }
        }
        self = try result.get()
    }

    public init(parsing text: String, limits: JSONLimits = JSONLimits()) throws(JSONError) {
        try self.init(parsing: Array(text.utf8), limits: limits)
    }
}

private struct JSONReader {
    let bytes: UnsafeBufferPointer<UInt8>
    let limits: JSONLimits
    var offset = 0
    var values = 0

    init(bytes: UnsafeBufferPointer<UInt8>, limits: JSONLimits) {
        self.bytes = bytes
        self.limits = limits
    }

    mutating func parseDocument() throws(JSONError) -> JSON {
        let value = try parseValue(depth: 0)
        skipSpace()
        guard offset == bytes.count else { throw failure(.trailingBytes) }
        return value
    }

    private func failure(_ reason: JSONError.Reason) -> JSONError { JSONError(reason: reason, offset: offset) }

    private mutating func skipSpace() {
        while offset < bytes.count {
            switch bytes[offset] {
            case 0x20, 0x09, 0x0A, 0x0D: offset += 1
            default: return
            }
        }
    }

    private mutating func peek() throws(JSONError) -> UInt8 {
        guard offset < bytes.count else { throw failure(.unexpectedEnd) }
        return bytes[offset]
    }

    private mutating func expect(_ byte: UInt8) throws(JSONError) {
        guard try peek() == byte else { throw failure(.unexpectedByte) }
        offset += 1
    }

    private mutating func parseWord(_ text: StaticString, _ value: JSON) throws(JSONError) -> JSON {
        for index in 0..<text.utf8CodeUnitCount { try expect(text.utf8Start[index]) }
        return value
    }

    private mutating func parseValue(depth: Int) throws(JSONError) -> JSON {
        guard depth <= limits.depth else { throw failure(.tooDeep) }
        values += 1
        guard values <= limits.values else { throw failure(.tooManyValues) }
        skipSpace()
        switch try peek() {
        case UInt8(ascii: "{"): return try parseObject(depth: depth)
        case UInt8(ascii: "["): return try parseArray(depth: depth)
        case UInt8(ascii: "\""): return .string(try parseString())
        case UInt8(ascii: "t"): return try parseWord("true", .bool(true))
        case UInt8(ascii: "f"): return try parseWord("false", .bool(false))
        case UInt8(ascii: "n"): return try parseWord("null", .null)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try parseNumber()
        default: throw failure(.unexpectedByte)
        }
    }

    private mutating func parseArray(depth: Int) throws(JSONError) -> JSON {
        try expect(UInt8(ascii: "["))
        var elements: [JSON] = []
        skipSpace()
        if try peek() == UInt8(ascii: "]") {
            offset += 1
            return .array(elements)
        }
        while true {
            elements.append(try parseValue(depth: depth + 1))
            skipSpace()
            if try peek() == UInt8(ascii: ",") {
                offset += 1
                continue
            }
            try expect(UInt8(ascii: "]"))
            return .array(elements)
        }
    }

    private mutating func parseObject(depth: Int) throws(JSONError) -> JSON {
        try expect(UInt8(ascii: "{"))
        var object = JSONObject()
        skipSpace()
        if try peek() == UInt8(ascii: "}") {
            offset += 1
            return .object(object)
        }
        // Most objects are small: one allocation instead of three growing ones.
        object.reserveCapacity(4)
        while true {
            skipSpace()
            guard try peek() == UInt8(ascii: "\"") else { throw failure(.unexpectedByte) }
            let name = try parseString()
            let end = offset
            skipSpace()
            try expect(UInt8(ascii: ":"))
            let value = try parseValue(depth: depth + 1)
            guard object.append(new: name, value) else {
                throw JSONError(reason: .duplicateName, offset: end)
            }
            skipSpace()
            if try peek() == UInt8(ascii: ",") {
                offset += 1
                continue
            }
            try expect(UInt8(ascii: "}"))
            return .object(object)
        }
    }

    private mutating func skipDigits() throws(JSONError) {
        let start = offset
        while offset < bytes.count, bytes[offset] >= UInt8(ascii: "0"), bytes[offset] <= UInt8(ascii: "9") {
            offset += 1
        }
        guard offset > start else { throw failure(.badNumber) }
    }

    private mutating func parseNumber() throws(JSONError) -> JSON {
        let start = offset
        if bytes[offset] == UInt8(ascii: "-") { offset += 1 }
        let first = offset
        try skipDigits()
        if bytes[first] == UInt8(ascii: "0"), offset > first + 1 { throw failure(.badNumber) }
        var isWhole = true
        if offset < bytes.count, bytes[offset] == UInt8(ascii: ".") {
            isWhole = false
            offset += 1
            try skipDigits()
        }
        if offset < bytes.count, bytes[offset] | 0x20 == UInt8(ascii: "e") {
            isWhole = false
            offset += 1
            if offset < bytes.count, bytes[offset] == UInt8(ascii: "+") || bytes[offset] == UInt8(ascii: "-") {
                offset += 1
            }
            try skipDigits()
        }
        // Eighteen digits cannot overflow.
        if isWhole, offset - first <= 18 {
            var whole: Int64 = 0
            for index in first..<offset { whole = whole * 10 + Int64(bytes[index] - UInt8(ascii: "0")) }
            return .int(first > start ? -whole : whole)
        }
        let text = String(decoding: bytes[start..<offset], as: UTF8.self)
        if isWhole, let whole = Int64(text) { return .int(whole) }
        guard let number = Double(text), number.isFinite else { throw failure(.badNumber) }
        return .double(number)
    }

    private mutating func parseString() throws(JSONError) -> String {
        try expect(UInt8(ascii: "\""))
        let start = offset
        var needsUnescaping = false
        var bits: UInt8 = 0
        while true {
            let byte = try peek()
            if byte == UInt8(ascii: "\"") { break }
            bits |= byte
            guard byte >= 0x20 else { throw failure(.badString) }
            if byte == UInt8(ascii: "\\") {
                needsUnescaping = true
                offset += 1
                _ = try peek()
            }
            offset += 1
        }
        let raw = bytes[start..<offset]
        offset += 1
        guard needsUnescaping else {
            let content = UnsafeBufferPointer(rebasing: raw)
            // ASCII is valid UTF-8, and making a string of it without `validating` takes a third of the time.
            if bits < 0x80 { return String(decoding: content, as: UTF8.self) }
            guard let text = String(validating: content, as: UTF8.self) else { throw failure(.badString) }
            return text
        }
        return try unescaped(raw)
    }

    private func unescaped(_ raw: Slice<UnsafeBufferPointer<UInt8>>) throws(JSONError) -> String {
        var output: [UInt8] = []
        output.reserveCapacity(raw.count)
        var index = raw.startIndex
        while index < raw.endIndex {
            let byte = raw[index]
            index += 1
            guard byte == UInt8(ascii: "\\") else {
                output.append(byte)
                continue
            }
            let escape = raw[index]
            index += 1
            switch escape {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): output.append(escape)
            case UInt8(ascii: "b"): output.append(0x08)
            case UInt8(ascii: "f"): output.append(0x0C)
            case UInt8(ascii: "n"): output.append(0x0A)
            case UInt8(ascii: "r"): output.append(0x0D)
            case UInt8(ascii: "t"): output.append(0x09)
            case UInt8(ascii: "u"):
                var unit = try codeUnit(raw, at: &index)
                if (0xD800..<0xDC00).contains(unit) {
                    guard index + 1 < raw.endIndex, raw[index] == UInt8(ascii: "\\"),
                        raw[index + 1] == UInt8(ascii: "u")
                    else { throw failure(.badString) }
                    index += 2
                    let low = try codeUnit(raw, at: &index)
                    guard (0xDC00..<0xE000).contains(low) else { throw failure(.badString) }
                    unit = 0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00)
                }
                guard let scalar = Unicode.Scalar(unit) else { throw failure(.badString) }
                output.append(contentsOf: String(Character(scalar)).utf8)
            default: throw failure(.badString)
            }
        }
        guard let text = String(validating: output, as: UTF8.self) else { throw failure(.badString) }
        return text
    }

    private func codeUnit(_ raw: Slice<UnsafeBufferPointer<UInt8>>, at index: inout Int) throws(JSONError) -> UInt32 {
        guard index + 4 <= raw.endIndex else { throw failure(.badString) }
        var unit: UInt32 = 0
        for _ in 0..<4 {
            guard let digit = Character(Unicode.Scalar(raw[index])).hexDigitValue else { throw failure(.badString) }
            unit = unit << 4 | UInt32(digit)
            index += 1
        }
        return unit
    }
}
