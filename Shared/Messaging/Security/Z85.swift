import Basics
import CZeroMQ

/// Encoding and decoding of keys as Z85 text.
enum Z85 {
    static let keyLength = 40
    static let keyBytes = 32
    static let alphabet = Set(
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#".utf8
    )

    static func decode(_ text: String) -> Bytes? {
        guard text.utf8.count == keyLength, text.utf8.allSatisfy(alphabet.contains) else { return nil }
        var bytes = Bytes(repeating: 0, count: keyBytes)
        return zmq_z85_decode(&bytes, text) == nil ? nil : bytes
    }

    static func encode(_ bytes: Bytes) -> String? {
        guard bytes.count == keyBytes else { return nil }
        var text = [CChar](repeating: 0, count: keyLength + 1)
        return zmq_z85_encode(&text, bytes, bytes.count) == nil ? nil : string(text)
    }

    static func string(_ text: [CChar]) -> String {
        String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}
