/// The binary form of rows for `COPY`.
enum CopyFormat {
    /// Appends a row: the number of columns, and each value after its length; NULL has the length -1.
    static func append(_ row: [PostgreSQLValue], to block: inout [UInt8]) {
        func appendBigEndian(_ number: some FixedWidthInteger) {
            withUnsafeBytes(of: number.bigEndian) { block.append(contentsOf: $0) }
        }
        appendBigEndian(Int16(row.count))
        for value in row {
            switch value {
            case .null: appendBigEndian(Int32(-1))
            case .integer(let number):
                appendBigEndian(Int32(8))
                appendBigEndian(number)
            case .number(let number):
                appendBigEndian(Int32(8))
                appendBigEndian(number.bitPattern)
            case .text(let text):
                appendBigEndian(Int32(text.utf8.count))
                block.append(contentsOf: text.utf8)
            case .bytes(let bytes):
                appendBigEndian(Int32(bytes.count))
                block.append(contentsOf: bytes)
            }
        }
    }
}
