import CCrypto

/// HMAC with SHA-256 (RFC 2104), computed by libcrypto.
public enum HMACSHA256 {
    /// Returns the authentication code of a message, 32 bytes.
    public static func code(of message: [UInt8], key: [UInt8]) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: 32) { buffer, count in
            var length: UInt32 = 0
            _ = HMAC(EVP_sha256(), key, Int32(key.count), message, message.count, buffer.baseAddress, &length)
            count = Int(length)
        }
    }
}
