/// The values of one statement in PostgreSQL's binary form, in one block of memory.
struct ParameterBuffer {
    private(set) var count = 0
    private var bytes: [UInt8] = []
    /// The position of each value in the block; -1 for NULL.
    private var starts: [Int] = []
    private var lengths: [Int32] = []

    /// The number of bytes of all values.
    var size: Int { bytes.count }

    /// Returns the values with their natural types, for a statement that is not prepared.
    static func natural(
        _ values: [PostgreSQLValue]
    ) throws(PostgreSQLError) -> (types: [UInt32], parameters: ParameterBuffer) {
        let types = values.map(PostgreSQLType.natural)
        var parameters = ParameterBuffer()
        for (value, type) in zip(values, types) { try parameters.append(value, as: type) }
        return (types, parameters)
    }

    mutating func removeAll() {
        count = 0
        bytes.removeAll(keepingCapacity: true)
        starts.removeAll(keepingCapacity: true)
        lengths.removeAll(keepingCapacity: true)
    }

    private mutating func begin() { starts.append(bytes.count) }

    private mutating func end() {
        lengths.append(Int32(clamping: bytes.count - (starts.last ?? 0)))
        count += 1
    }

    mutating func appendNull() {
        starts.append(-1)
        lengths.append(0)
        count += 1
    }

    /// Appends a value in the binary form of a type.
    ///
    /// - Throws: ``PostgreSQLError`` if the type has no such values
    mutating func append(_ value: PostgreSQLValue, as type: UInt32) throws(PostgreSQLError) {
        switch value {
        case .null: appendNull()
        case .integer(let number): try append(number, as: type)
        case .number(let number): try append(number, as: type)
        case .text(let text): try append(text, as: type)
        case .bytes(let bytes):
            guard type == PostgreSQLType.bytea else { throw Self.mismatch("bytes", type) }
            append(bytes)
        }
    }

    mutating func append(_ number: Int64, as type: UInt32) throws(PostgreSQLError) {
        begin()
        switch type {
        case PostgreSQLType.int8: appendBigEndian(number)
        case PostgreSQLType.int4:
            guard let small = Int32(exactly: number) else { throw Self.mismatch("the number \(number)", type) }
            appendBigEndian(small)
        case PostgreSQLType.int2:
            guard let small = Int16(exactly: number) else { throw Self.mismatch("the number \(number)", type) }
            appendBigEndian(small)
        case PostgreSQLType.float8: appendBigEndian(Double(number).bitPattern)
        case PostgreSQLType.bool: bytes.append(number == 0 ? 0 : 1)
        case _ where PostgreSQLType.isText(type): bytes.append(contentsOf: String(number).utf8)
        default: throw Self.mismatch("a whole number", type)
        }
        end()
    }

    mutating func append(_ number: Double, as type: UInt32) throws(PostgreSQLError) {
        begin()
        switch type {
        case PostgreSQLType.float8: appendBigEndian(number.bitPattern)
        case PostgreSQLType.float4: appendBigEndian(Float(number).bitPattern)
        case _ where PostgreSQLType.isText(type): bytes.append(contentsOf: String(number).utf8)
        default: throw Self.mismatch("a floating-point number", type)
        }
        end()
    }

    mutating func append(_ text: String, as type: UInt32) throws(PostgreSQLError) {
        guard PostgreSQLType.isText(type) else { throw Self.mismatch("a text", type) }
        begin()
        bytes.append(contentsOf: text.utf8)
        end()
    }

    mutating func append(_ value: [UInt8]) {
        begin()
        bytes.append(contentsOf: value)
        end()
    }

    private mutating func appendBigEndian(_ number: some FixedWidthInteger) {
        withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
    }

    private static func mismatch(_ value: String, _ type: UInt32) -> PostgreSQLError {
        PostgreSQLError(.statement, "\(value) cannot be sent as the type with the identifier \(type)")
    }

    /// Calls a closure with the arrays that libpq's functions take: values, lengths and formats.
    func withArrays<Result>(
        _ body: (UnsafePointer<UnsafePointer<CChar>?>?, UnsafePointer<Int32>?, UnsafePointer<Int32>?) -> Result
    ) -> Result {
        let formats = [Int32](repeating: 1, count: count)
        // An empty array may have no address, and to libpq a missing pointer means NULL.
        let block = bytes.isEmpty ? [0] : bytes
        return block.withUnsafeBytes { block in
            let values = starts.map { start -> UnsafePointer<CChar>? in
                start < 0 ? nil : block.baseAddress?.advanced(by: start).assumingMemoryBound(to: CChar.self)
            }
            return values.withUnsafeBufferPointer { values in
                lengths.withUnsafeBufferPointer { lengths in
                    formats.withUnsafeBufferPointer { formats in
                        body(values.baseAddress, lengths.baseAddress, formats.baseAddress)
                    }
                }
            }
        }
    }
}
