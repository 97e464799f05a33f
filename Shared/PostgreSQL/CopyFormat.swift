/// The binary form of rows for `COPY`.
enum CopyFormat {
    /// Appends a row: the number of columns, and each value after its length; NULL has the length -1.
    static func append(_ row: [PostgreSQLValue], to block: inout [UInt8]) {
        func bigEndian(_ number: some FixedWidthInteger) {
            withUnsafeBytes(of: number.bigEndian) { block.append(contentsOf: $0) }
        }
        bigEndian(Int16(row.count))
        for value in row {
            switch value {
            case .null: bigEndian(Int32(-1))
            case .integer(let number):
                bigEndian(Int32(8))
                bigEndian(number)
            case .number(let number):
                bigEndian(Int32(8))
                bigEndian(number.bitPattern)
            case .text(let text):
                bigEndian(Int32(text.utf8.count))
                block.append(contentsOf: text.utf8)
            case .bytes(let bytes):
                bigEndian(Int32(bytes.count))
                block.append(contentsOf: bytes)
            }
        }
    }
}
