import Basics
import JSONValue

/// Reads small requests of the simplest form without parsing them into a tree: the id is a number or a string, no
/// string has escapes, and params has no member but `deadlineMs`. All other requests, and all errors, are left to the
/// JSON parser.
struct PlainRequestReader {
    /// The maximum size of a frame to read, in bytes.
    static let maxBytes = 512

    private let frame: Bytes
    private var position = 0

    private init(_ frame: Bytes) { self.frame = frame }

    /// Returns the request in a frame of at most ``maxBytes``; nil if it does not have this form.
    static func request(in frame: Bytes, limits: MessagingLimits) -> RPCMessage.Request? {
        var reader = PlainRequestReader(frame)
        return reader.request(maxDeadline: limits.maxDeadline.microseconds / 1000)
    }

    private mutating func request(maxDeadline: Int64) -> RPCMessage.Request? {
        var hasVersion = false
        var hasParams = false
        var id: JSON?
        var method: Range<Int>?
        var deadline: Int64?
        guard take(UInt8(ascii: "{")) else { return nil }
        repeat {
            guard let name = string(), take(UInt8(ascii: ":")) else { return nil }
            if has(name, "id"), id == nil {
                guard let value = self.id() else { return nil }
                id = value
            } else if has(name, "method"), method == nil {
                guard let value = string() else { return nil }
                method = value
            } else if has(name, "params"), !hasParams {
                hasParams = true
                guard params(&deadline, maxDeadline) else { return nil }
            } else if has(name, "jsonrpc"), !hasVersion {
                guard let version = string(), has(version, "2.0") else { return nil }
                hasVersion = true
            } else {
                return nil
            }
        } while take(UInt8(ascii: ","))
        guard take(UInt8(ascii: "}")), isAtEnd, hasVersion, let id, let method, (1...128).contains(method.count),
            !hasPrefix(method, "rpc.")
        else { return nil }
        return RPCMessage.Request(id: id, method: text(method), params: [:], deadline: deadline.map { $0 * 1000 })
    }

    private mutating func params(_ deadline: inout Int64?, _ maxDeadline: Int64) -> Bool {
        guard take(UInt8(ascii: "{")) else { return false }
        if take(UInt8(ascii: "}")) { return true }
        guard let name = string(), has(name, "deadlineMs"), take(UInt8(ascii: ":")), let milliseconds = number(),
            (1...maxDeadline).contains(milliseconds), take(UInt8(ascii: "}"))
        else { return false }
        deadline = milliseconds
        return true
    }

    private mutating func id() -> JSON? {
        if let number = number() { return .int(number) }
        guard let string = string(), string.count <= 128 else { return nil }
        return .string(text(string))
    }

    // MARK: Tokens

    private var isAtEnd: Bool {
        mutating get {
            skipSpace()
            return position == frame.count
        }
    }

    private mutating func skipSpace() {
        while position < frame.count, frame[position] == 0x20 { position += 1 }
    }

    /// Skips a byte, and spaces before it, if it is the next one; returns false otherwise.
    private mutating func take(_ byte: UInt8) -> Bool {
        skipSpace()
        guard position < frame.count, frame[position] == byte else { return false }
        position += 1
        return true
    }

    /// Returns the range of a string of printable ASCII without escapes.
    private mutating func string() -> Range<Int>? {
        guard take(UInt8(ascii: "\"")) else { return nil }
        let start = position
        while position < frame.count {
            let byte = frame[position]
            position += 1
            if byte == UInt8(ascii: "\"") { return start..<(position - 1) }
            guard (0x20..<0x7F).contains(byte), byte != UInt8(ascii: "\\") else { return nil }
        }
        return nil
    }

    /// Returns a whole number of at most 18 digits, without a sign.
    private mutating func number() -> Int64? {
        skipSpace()
        let start = position
        var value: Int64 = 0
        while position < frame.count, position - start < 18, (0x30...0x39).contains(frame[position]) {
            value = value * 10 + Int64(frame[position] - 0x30)
            position += 1
        }
        guard position > start, position - start == 1 || frame[start] != 0x30 else {
            position = start
            return nil
        }
        // A longer number, or one with a fraction, ends here too, and the byte after it is refused.
        return value
    }

    private func has(_ range: Range<Int>, _ text: StaticString) -> Bool {
        range.count == text.utf8CodeUnitCount && hasPrefix(range, text)
    }

    private func hasPrefix(_ range: Range<Int>, _ text: StaticString) -> Bool {
        guard range.count >= text.utf8CodeUnitCount else { return false }
        for offset in 0..<text.utf8CodeUnitCount where frame[range.lowerBound + offset] != text.utf8Start[offset] {
            return false
        }
        return true
    }

    private func text(_ range: Range<Int>) -> String { String(decoding: frame[range], as: UTF8.self) }
}
