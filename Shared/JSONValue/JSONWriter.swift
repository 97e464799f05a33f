extension JSON {
    /// The one text of this value: no white space, members in their order, the shortest number that reads back equal.
    public var bytes: [UInt8] {
        var writer = JSONWriter()
        writer.write(self)
        return writer.output
    }

    public var text: String { String(decoding: bytes, as: UTF8.self) }

    /// The same value on several lines, for people.
    public var prettyText: String {
        var writer = JSONWriter(isPretty: true)
        writer.write(self)
        return String(decoding: writer.output, as: UTF8.self)
    }

    /// The same value with the members of every object in the order of their names' UTF-8 bytes: what is hashed when
    /// two spellings of one value must be equal.
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

    /// JSON has no infinity and no not-a-number: they are written as null, and every decoder here refuses null where a
    /// number is due.
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
        // Nearly every text stands as it is.
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
