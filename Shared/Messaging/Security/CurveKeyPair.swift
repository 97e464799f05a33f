import Basics
import CZeroMQ

/// A public CURVE key: 32 bytes, written as 40 characters of Z85 (ZeroMQ RFC 32). It is not secret.
public struct CurvePublicKey: Sendable, Hashable, CustomStringConvertible {
    /// The 40 Z85 characters.
    public let text: String
    let bytes: Bytes

    /// Parses the 40 characters; nil if they are not a key.
    public init?(_ text: String) {
        guard let bytes = Z85.decode(text) else { return nil }
        self.text = text
        self.bytes = bytes
    }

    init?(bytes: Bytes) {
        guard let text = Z85.encode(bytes) else { return nil }
        self.text = text
        self.bytes = bytes
    }

    public var description: String { text }
}

/// A secret CURVE key. Descriptions and mirrors do not contain it; only ``text`` does.
public struct CurveSecretKey: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
    /// The 40 Z85 characters, for the owner's key file.
    public let text: String
    let bytes: Bytes

    /// Parses the 40 characters; nil if they are not a key.
    public init?(_ text: String) {
        guard let bytes = Z85.decode(text) else { return nil }
        self.text = text
        self.bytes = bytes
    }

    /// A constant text without the key.
    public var description: String { "a secret key" }
    /// A mirror without children, so that `dump` does not print the key.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// The public and the secret key of one side of a connection.
public struct CurveKeyPair: Sendable, Hashable {
    /// The public key, which peers put on their lists or connect to.
    public let publicKey: CurvePublicKey
    /// The secret key that belongs to it.
    public let secretKey: CurveSecretKey

    /// Makes a pair from stored keys; nil if they do not belong together.
    public init?(publicKey: CurvePublicKey, secretKey: CurveSecretKey) {
        guard Self.publicText(of: secretKey) == publicKey.text else { return nil }
        self.publicKey = publicKey
        self.secretKey = secretKey
    }

    /// Generates a new pair with libsodium's random numbers; throws ``MessagingError/noCurve`` without CURVE support.
    public static func generate() throws(MessagingError) -> CurveKeyPair {
        var publicText = [CChar](repeating: 0, count: Z85.keyLength + 1)
        var secretText = publicText
        guard zmq_curve_keypair(&publicText, &secretText) == 0,
            let publicKey = CurvePublicKey(Z85.string(publicText)),
            let secretKey = CurveSecretKey(Z85.string(secretText)),
            let pair = CurveKeyPair(publicKey: publicKey, secretKey: secretKey)
        else { throw .noCurve }
        return pair
    }

    private static func publicText(of secret: CurveSecretKey) -> String? {
        var text = [CChar](repeating: 0, count: Z85.keyLength + 1)
        return zmq_curve_public(&text, secret.text) == 0 ? Z85.string(text) : nil
    }
}
