extension JSON {
    /// The encoded value: no white space, members in order, and for each number the shortest text that parses back
    /// equal.
    public var bytes: [UInt8] {
        var writer = JSONWriter()
        writer.write(self)
        return writer.output
    }

    /// ``bytes`` as text.
    public var text: String { String(decoding: bytes, as: UTF8.self) }

    /// The value on several indented lines, for people.
    public var prettyText: String {
        var writer = JSONWriter(isPretty: true)
        writer.write(self)
        return String(decoding: writer.output, as: UTF8.self)
    }

    /// The value with the members of every object sorted by the UTF-8 bytes of their names. Used for hashes that must
    /// be equal for equivalent values.
    public var canonical: JSON {
        switch self {
        case .array(let elements): return .array(elements.map(\.canonical))
        case .object(let object):
            var sorted = JSONObject()
            for (name, value) in object.members.sorted(by: { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }) {
                sorted[name] = value.canonical
            }
            return .object(sorted)
        default: return self
        }
    }
}

private struct JSONWriter {
    var output: [UInt8] = []
    var isPretty = false
    private var depth = 0

    init(isPretty: Bool = false) {
        self.isPretty = isPretty
        output.reserveCapacity(256)
    }

    mutating func write(_ value: JSON) {
        switch value {
        case .null: append("null")
        case .bool(let flag): append(flag ? "true" : "false")
        case .int(let number): append(String(number))
        case .double(let number): write(number)
        case .string(let text): write(text)
        case .array(let elements):
            open("[")
            for (index, element) in elements.enumerated() {
                separate(index)
                write(element)
            }
            close("]", isEmpty: elements.isEmpty)
        case .object(let object):
            open("{")
            for (index, member) in object.members.enumerated() {
                separate(index)
                write(member.name)
                append(isPretty ? ": " : ":")
                write(member.value)
            }
            close("}", isEmpty: object.isEmpty)
        }
    }

    private mutating func append(_ text: String) { output.append(contentsOf: text.utf8) }

    private mutating func open(_ bracket: String) {
        append(bracket)
        depth += 1
    }

    private mutating func separate(_ index: Int) {
        if index > 0 { append(",") }
        newLine()
    }

    private mutating func close(_ bracket: String, isEmpty: Bool) {
        depth -= 1
        if !isEmpty { newLine() }
        append(bracket)
    }

    private mutating func newLine() {
        guard isPretty else { return }
        output.append(0x0A)
        output.append(contentsOf: repeatElement(0x20, count: depth * 2))
    }

    /// JSON has neither infinity nor NaN: both are written as null, which every decoder refuses for a number.
    private mutating func write(_ number: Double) {
        guard number.isFinite else { return append("null") }
        if number == number.rounded(), abs(number) < 1e15 {
            append(String(Int64(number)))
            append(".0")
        } else {
            append(String(describing: number))
        }
    }

    private mutating func write(_ text: String) {
        output.append(UInt8(ascii: "\""))
        // Nearly every text needs no escapes.
        let isPlain = text.utf8.withContiguousStorageIfAvailable { bytes in
            guard bytes.allSatisfy({ $0 >= 0x20 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }) else {
                return false
            }
            output.append(contentsOf: bytes)
            return true
        }
        if isPlain != true { escape(text) }
        output.append(UInt8(ascii: "\""))
    }

    private mutating func escape(_ text: String) {
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                output.append(UInt8(ascii: "\\"))
                output.append(byte)
            case 0x0A: append("\\n")
            case 0x0D: append("\\r")
            case 0x09: append("\\t")
            case 0..<0x20: append("\\u00" + (byte < 0x10 ? "0" : "1") + String(byte & 0xF, radix: 16))
            default: output.append(byte)
            }
        }
    }
}
