import Glibc
import Synchronization

/// The layout of the file: magic 8 bytes, library id 32, newest sequence 8, zeros to 64, then the slots. Numbers are in
/// the machine's byte order, because only processes of one machine share it.
enum LastChangeLayout {
    static let magic: [UInt8] = Array("SLLAST01".utf8)
    static let libraryBytes = 32
    static let sequenceOffset = 40
    static let headerBytes = 64
    static let slots = 1 << slotBits
    static let bytes = headerBytes + slots * MemoryLayout<Int64>.size
    private static let slotBits = 13

    static func header(library: String, sequence: Int64) -> [UInt8] {
        var bytes = magic + Array(library.utf8)
        withUnsafeBytes(of: sequence) { bytes.append(contentsOf: $0) }
        return bytes + [UInt8](repeating: 0, count: headerBytes - bytes.count)
    }

    /// Returns the slot of an identifier, by its last eight bytes, which are random.
    static func slot(of id: String) -> Int {
        let key = id.utf8.withContiguousStorageIfAvailable(tail) ?? Array(id.utf8).withUnsafeBufferPointer(tail)
        return Int((key &* 0x9E37_79B9_7F4A_7C15) >> (64 - UInt64(slotBits)))
    }

    private static func tail(of id: UnsafeBufferPointer<UInt8>) -> UInt64 {
        let length = MemoryLayout<UInt64>.size
        guard id.count >= length else { return id.reduce(0) { $0 << 8 | UInt64($1) } }
        return UnsafeRawBufferPointer(id).loadUnaligned(fromByteOffset: id.count - length, as: UInt64.self)
    }
}
