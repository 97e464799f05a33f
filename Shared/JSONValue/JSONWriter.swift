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

/// Writes JSON text into one buffer: whole values, or the parts of an object one after the other without a value for
/// each.
///
/// The functions for parts do not check the grammar. Tests compare the text of every type that is written this way with
/// that of its ``JSONTable``.
///
/// The buffer is not an array, because an array would check for each part that it is uniquely referenced.
public struct JSONWriter: ~Copyable {
    private var start: UnsafeMutablePointer<UInt8>
    /// The bytes written so far.
    public private(set) var count = 0
    private var capacity: Int
    /// False while the buffer is that of an array to be returned.
    private var ownsBuffer = true
    private var isPretty = false
    private var depth = 0

    /// - Parameter capacity: the expected bytes of the text
    public init(capacity: Int = 256) {
        self.capacity = max(64, capacity)
        start = .allocate(capacity: self.capacity)
    }

    private init(into buffer: UnsafeMutableBufferPointer<UInt8>, at start: UnsafeMutablePointer<UInt8>) {
        capacity = buffer.count
        self.start = start
        ownsBuffer = false
    }

    /// Returns the text that a closure writes. If it needs no more than the capacity, it is written straight into the
    /// array.
    public static func bytes(capacity: Int, _ write: (inout JSONWriter) -> Void) -> [UInt8] {
        var larger: [UInt8]?
        let bytes = [UInt8](unsafeUninitializedCapacity: max(64, capacity)) { buffer, count in
            guard let start = buffer.baseAddress else { return }
            var writer = JSONWriter(into: buffer, at: start)
            write(&writer)
            if writer.ownsBuffer { larger = writer.output } else { count = writer.count }
        }
        return larger ?? bytes
    }

    fileprivate init(isPretty: Bool) {
        self.init()
        self.isPretty = isPretty
    }

    deinit { if ownsBuffer { start.deallocate() } }

    /// A copy of the text written so far.
    public var output: [UInt8] { Array(UnsafeBufferPointer(start: start, count: count)) }

    /// Reserves memory for bytes, and returns the position at which they are to be written; they count as written.
    private mutating func advance(_ bytes: Int) -> UnsafeMutablePointer<UInt8> {
        if capacity - count < bytes { grow(bytes) }
        defer { count += bytes }
        return start + count
    }

    private mutating func grow(_ bytes: Int) {
        capacity = max(count + bytes, capacity * 2)
        let larger = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
        larger.moveInitialize(from: start, count: count)
        if ownsBuffer { start.deallocate() }
        ownsBuffer = true
        start = larger
    }

    private mutating func append(byte: UInt8) { advance(1).pointee = byte }

    private mutating func append(bytes: UnsafeBufferPointer<UInt8>) {
        guard let source = bytes.baseAddress else { return }
        advance(bytes.count).initialize(from: source, count: bytes.count)
    }

    // MARK: Values

    public mutating func write(_ value: JSON) {
        switch value {
        case .null: append("null")
        case .bool(let flag): write(flag)
        case .int(let number): write(number)
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

    public mutating func write(_ flag: Bool) { append(flag ? "true" : "false") }

    public mutating func write(_ number: Int) { write(Int64(number)) }

    public mutating func write(_ number: Int64) {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 20) { digits in
            var position = digits.count
            var magnitude = number.magnitude
            repeat {
                let (quotient, digit) = magnitude.quotientAndRemainder(dividingBy: 10)
                position -= 1
                digits[position] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: digit)
                magnitude = quotient
            } while magnitude > 0
            if number < 0 {
                position -= 1
                digits[position] = UInt8(ascii: "-")
            }
            append(bytes: UnsafeBufferPointer(rebasing: digits[position...]))
        }
    }

    /// Writes a number. JSON has neither infinity nor NaN: both are written as null, which every decoder refuses for a
    /// number.
    public mutating func write(_ number: Double) {
        guard number.isFinite else { return append("null") }
        if number == number.rounded(), abs(number) < 1e15 {
            write(Int64(number))
            append(".0")
        } else {
            var text = number.description
            text.withUTF8 { append(bytes: $0) }
        }
    }

    public mutating func write(_ text: String) {
        var text = text
        text.withUTF8 { write(text: $0) }
    }

    /// Writes a string, from its UTF-8 bytes.
    public mutating func write(text: UnsafeBufferPointer<UInt8>) {
        guard Self.isPlain(text) else {
            append(byte: UInt8(ascii: "\""))
            escape(text)
            return append(byte: UInt8(ascii: "\""))
        }
        let target = advance(text.count + 2)
        target[0] = UInt8(ascii: "\"")
        if let source = text.baseAddress { (target + 1).initialize(from: source, count: text.count) }
        target[text.count + 1] = UInt8(ascii: "\"")
    }

    // MARK: Parts

    /// Appends a part of the text as it is, such as `,"name":`.
    public mutating func append(_ part: StaticString) {
        append(bytes: UnsafeBufferPointer(start: part.utf8Start, count: part.utf8CodeUnitCount))
    }

    /// Appends the text of a value, or a part of it, that is already encoded.
    public mutating func append(encoded value: [UInt8]) { value.withUnsafeBufferPointer { append(bytes: $0) } }

    /// Appends the text of a value, or a part of it, that is already encoded.
    public mutating func append(encoded value: ArraySlice<UInt8>) {
        value.withUnsafeBufferPointer { append(bytes: $0) }
    }

    /// Appends a copy of a part of the text written so far.
    public mutating func append(again part: Range<Int>) {
        precondition(part.upperBound <= count, "a part of the text that is not written yet")
        let target = advance(part.count)
        target.initialize(from: start + part.lowerBound, count: part.count)
    }

    /// Writes a member, without the comma before it.
    public mutating func writeMember(_ name: String, _ value: JSON) {
        write(name)
        append(":")
        write(value)
    }

    /// Writes an object whose members are written by a closure, each with a comma before it: the first comma becomes
    /// the brace.
    public mutating func writeObject<Failure>(
        _ members: (inout JSONWriter) throws(Failure) -> Void
    ) throws(Failure) {
        let first = count
        try members(&self)
        if count == first { append(byte: UInt8(ascii: "{")) } else { start[first] = UInt8(ascii: "{") }
        append(byte: UInt8(ascii: "}"))
    }

    /// Writes a list with a closure for each element.
    public mutating func writeList<Element>(_ elements: [Element], _ write: (inout JSONWriter, Element) -> Void) {
        append(byte: UInt8(ascii: "["))
        for index in elements.indices {
            if index > 0 { append(byte: UInt8(ascii: ",")) }
            write(&self, elements[index])
        }
        append(byte: UInt8(ascii: "]"))
    }

    /// Writes a list with a closure for each position. For large elements: a closure that takes an element gets a copy
    /// of it.
    public mutating func writeList(count: Int, _ write: (inout JSONWriter, Int) -> Void) {
        append(byte: UInt8(ascii: "["))
        for position in 0..<count {
            if position > 0 { append(byte: UInt8(ascii: ",")) }
            write(&self, position)
        }
        append(byte: UInt8(ascii: "]"))
    }

    // MARK: Layout

    private mutating func open(_ bracket: StaticString) {
        append(bracket)
        depth += 1
    }

    private mutating func separate(_ index: Int) {
        if index > 0 { append(",") }
        newLine()
    }

    private mutating func close(_ bracket: StaticString, isEmpty: Bool) {
        depth -= 1
        if !isEmpty { newLine() }
        append(bracket)
    }

    private mutating func newLine() {
        guard isPretty else { return }
        append(byte: 0x0A)
        for _ in 0..<depth * 2 { append(byte: 0x20) }
    }

    // MARK: Strings

    /// Returns true if a text needs no escapes, as nearly every text. Compares eight bytes at a time.
    private static func isPlain(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        let (ones, highs): (UInt64, UInt64) = (0x0101_0101_0101_0101, 0x8080_8080_8080_8080)
        let raw = UnsafeRawBufferPointer(text)
        var offset = 0
        while offset + 8 <= raw.count {
            let word = raw.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            let quotes = word ^ (ones &* 0x22)
            let slashes = word ^ (ones &* 0x5C)
            // The high bit of a byte is set by subtraction if the byte is below the subtrahend, or if a byte below it
            // borrowed, which happens only beside one that is itself below.
            let found =
                ((word &- ones &* 0x20) & ~word) | ((quotes &- ones) & ~quotes) | ((slashes &- ones) & ~slashes)
            if found & highs != 0 { return false }
            offset += 8
        }
        while offset < raw.count {
            let byte = raw[offset]
            if byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { return false }
            offset += 1
        }
        return true
    }

    private mutating func escape(_ text: UnsafeBufferPointer<UInt8>) {
        for byte in text {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                append(byte: UInt8(ascii: "\\"))
                append(byte: byte)
            case 0x0A: append("\\n")
            case 0x0D: append("\\r")
            case 0x09: append("\\t")
            case 0..<0x20:
                append(byte < 0x10 ? "\\u000" : "\\u001")
                let digit = byte & 0xF
                append(byte: digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
            default: append(byte: byte)
            }
        }
    }
}
